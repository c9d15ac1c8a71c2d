package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

const (
	// short is the timeout of the context of a call whose masters hang, slack the time that the call may take beyond that.
	// The pool's own timeout is far longer than both, so only the context ends the call.
	short      = 100 * time.Millisecond
	slack      = 2 * time.Second
	farTimeout = 30 * time.Second
)

// H31, H32: with three of five masters hung every call returns with its context, and says so.
func TestEveryCallReturnsWithItsContextWhenAMajorityHangs(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	l := locker(t, f.dial(pool.WithTimeout(farTimeout), pool.WithHeartbeat(farTimeout)), redlock.WithTTL(30*time.Second))
	f.admit(l)
	lock := held(t)(l.Lock(bounded(t), "held"))
	inner := held(t)(l.Lock(lock.Context(bounded(t)), "held"))
	exported := held(t)(l.Lock(bounded(t), "exported"))
	handle := must[string](t)(exported.Export())
	f.pause(2, 3, 4)

	calls := []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"Lock", func(ctx context.Context) error { _, err := l.Lock(ctx, "a"); return err }},
		{"TryLock", func(ctx context.Context) error { _, err := l.TryLock(ctx, "b"); return err }},
		{"Lock of what is held", func(ctx context.Context) error { _, err := l.Lock(ctx, "held"); return err }},
		{"Do", func(ctx context.Context) error {
			return l.Do(ctx, "c", func(context.Context) error { t.Error("the function runs"); return nil })
		}},
		{"Extend", lock.Extend},
		{"re-entry", func(ctx context.Context) error { _, err := l.Lock(lock.Context(ctx), "held"); return err }},
		{"Import", func(ctx context.Context) error { _, err := l.Import(ctx, handle); return err }},
		{"Inspect", func(ctx context.Context) error { _, err := l.Inspect(ctx, "held"); return err }},
		{"inner Unlock", inner.Unlock},
		{"Unlock", lock.Unlock},
		{"Close", l.Close},
		{"second Close", l.Close},
	}
	for _, c := range calls {
		within(t, short+slack, c.name, func() {
			ctx, cancel := context.WithTimeout(context.Background(), short)
			defer cancel()
			err := c.call(ctx)
			end, _ := ctx.Deadline()
			t.Logf("%s returned %v after the end of its context", c.name, time.Since(end).Round(10*time.Microsecond))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want the end of the context", c.name, err)
			}
		})
	}
	f.resume(2, 3, 4)
	f.noLocks(hang)
}

// H31: a context that is canceled before or during the call is distinguished from one whose deadline has passed.
func TestACancelledCallReturnsAtOnceWhenAMajorityHangs(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := locker(t, f.dial(pool.WithTimeout(farTimeout)), redlock.WithTTL(30*time.Second))
	f.admit(l)
	f.pause(1, 2)
	for _, before := range []bool{true, false} {
		ctx, cancel := context.WithCancelCause(context.Background())
		if before {
			cancel(errBody)
		} else {
			timer := time.AfterFunc(20*time.Millisecond, func() { cancel(errBody) })
			defer timer.Stop()
		}
		within(t, slack, "Lock", func() {
			_, err := l.Lock(ctx, "n")
			if !errors.Is(err, context.Canceled) || !errors.Is(err, errBody) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("canceled before the call %v: %v", before, err)
			}
		})
		cancel(nil)
	}
	f.resume(1, 2)
	f.noLocks(hang)
}

// H36: New and Dial need no live master: with all of them dead, or hung from the start, they return at once, and a call
// fails with the reasons of the masters, or with its context.
func TestNewReturnsAtOnceWithNoMasterAlive(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	start := func() *redlock.Locker {
		return locker(t, f.dial(pool.WithDialTimeout(farTimeout), pool.WithTimeout(farTimeout)))
	}
	f.pause(0, 1, 2)
	within(t, 3*short+slack, "hung", func() {
		l := start()
		for name, call := range map[string]func(ctx context.Context) error{
			"TryLock": func(ctx context.Context) error { _, err := l.TryLock(ctx, "n"); return err },
			"Admit":   l.Admin().Admit,
			"Ready":   func(ctx context.Context) error { l.Ready(ctx); return ctx.Err() },
		} {
			ctx, cancel := context.WithTimeout(context.Background(), short)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s with all hung: %v, want the end of the context", name, err)
			}
			cancel()
		}
	})
	f.kill(0, 1, 2)
	within(t, slack, "dead", func() {
		l := start()
		if _, err := l.TryLock(context.Background(), "n"); !errors.Is(err, redlock.ErrNoQuorum) ||
			!errors.Is(err, pool.ErrDown) {
			t.Errorf("TryLock with all dead: %v, want ErrNoQuorum and the masters down", err)
		}
	})
}

// H31: an Unlock without a deadline waits for the masters no longer than the lock was valid. Then the release is not
// confirmed, for lack of a quorum.
func TestUnlockWaitsNoLongerThanTheLockIsValid(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := locker(t, f.dial(pool.WithTimeout(farTimeout), pool.WithHeartbeat(farTimeout)))
	f.admit(l)
	lock := held(t)(l.Lock(bounded(t), "n", redlock.WithTTL(500*time.Millisecond), redlock.WithExtension(false)))
	f.pause(0, 1)
	within(t, slack, "Unlock", func() {
		if err := lock.Unlock(context.Background()); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("%v, want ErrNoQuorum", err)
		}
	})
	f.resume(0, 1)
	f.noLocks(hang)
}

// H36: a minority that hangs or is dead, from the start or during the work, neither stops nor slows the work: the
// pool's timeout is so long that a single wait for such a master would fail the test.
func TestAMinorityThatIsHungOrDeadDoesNotStopTheWork(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"hung", "dead"} {
		for _, many := range []int{1, 2} {
			for _, when := range []string{"from the start", "mid-work"} {
				t.Run(fmt.Sprintf("%d %s %s", many, how, when), func(t *testing.T) {
					t.Parallel()
					workWithMinority(t, how, when == "mid-work", many)
				})
			}
		}
	}
}

func workWithMinority(t *testing.T, how string, midWork bool, many int) {
	f := newDeployment(t, 5)
	bad := []int{0, 3}[:many]
	fell := f.kill
	if how == "hung" {
		fell = f.pause
	}
	if !midWork {
		f.admitted() // so the work begins with masters that vote
		fell(bad...)
	}
	l := locker(t, f.dial(pool.WithTimeout(farTimeout), pool.WithDialTimeout(farTimeout)), redlock.WithTTL(20*time.Second))
	if midWork {
		f.admit(l)
	}
	ctx := bounded(t)
	const pairs = 60
	for i := range pairs {
		if midWork && i == pairs/2 {
			fell(bad...)
		}
		lock := held(t)(l.Lock(ctx, "n"))
		if err := lock.Extend(ctx); err != nil {
			t.Fatal(err)
		}
		inner := held(t)(l.Lock(lock.Context(ctx), "n"))
		if err := errors.Join(inner.Unlock(ctx), lock.Unlock(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if how == "hung" {
		f.resume(bad...)
		f.noLocks(hang)
	}
}

// H36: an address at which no server listens counts as a dead minority.
func TestAnAddressWithoutAServerIsADeadMinority(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 2)
	nobody := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	f.urls = append(f.urls, "redis://"+nobody.Addr().String())
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	l := f.locker()
	ctx, cancel := context.WithTimeout(bounded(t), 2*time.Second) // Admit retries the dead master until its context ends
	defer cancel()
	if err := l.Admin().Admit(ctx); !errors.Is(err, pool.ErrDown) {
		t.Fatalf("Admit: %v, want the dead master named", err)
	}
	lock := held(t)(l.TryLock(bounded(t), "n"))
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// H05: a held name stays "held" when a minority is dead, and no quorum stays "no quorum" when the name is held.
func TestADeadMinorityDoesNotTurnHeldIntoNoQuorum(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	holder, other := f.admitted(), f.locker()
	for i := range f.servers {
		stateOf(t, other, i, "voting") // otherwise masters that are not connected yet have no vote
	}
	lock := held(t)(holder.Lock(bounded(t), "n"))
	for { // acquire on all masters: a slow one may have voted for other calls first, and is repaired
		if on, n := lock.HeldOn(); on == n {
			break
		}
		if err := lock.Extend(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(dead int, name string, want, not error) {
		t.Helper()
		if _, err := other.TryLock(bounded(t), name); !errors.Is(err, want) || errors.Is(err, not) {
			t.Errorf("%d of 5 dead: %v, want %v", dead, err, want)
		}
	}
	check(0, "n", redlock.ErrHeld, redlock.ErrNoQuorum)
	f.kill(0)
	check(1, "n", redlock.ErrHeld, redlock.ErrNoQuorum)
	f.kill(1)
	check(2, "n", redlock.ErrHeld, redlock.ErrNoQuorum)
	free := held(t)(other.TryLock(bounded(t), "free"))
	if err := free.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	f.kill(2)
	stateOf(t, other, 2, "down") // otherwise "held" of the others may arrive before this master's failure
	check(3, "n", redlock.ErrNoQuorum, redlock.ErrHeld)
	check(3, "free", redlock.ErrNoQuorum, redlock.ErrHeld)
	if err := lock.Unlock(bounded(t)); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("Unlock with 3 of 5 dead: %v, want ErrNoQuorum", err)
	}
}
