package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// H30: an Unlock whose context has ended still releases the lock, and returns nil if the masters are fast.
func TestUnlockWithDeadContextReleases(t *testing.T) {
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		subtest(t, delay.String(), 3, func(w *cluster) {
			k := must(w.locker().Lock(w.Context(), "a"))(w)
			w.delay(delay)
			start := time.Now()
			err := k.Unlock(deadContext())
			if delay == 0 && err != nil {
				w.Error(err)
			}
			if delay > 0 {
				w.isError(err, context.Canceled)
			}
			w.wantSince(start, 20*time.Millisecond)
			after(time.Second)
			w.wantOn("a", 0)
		})
	}
}

// H31, H32: if a majority hangs, is dead, refuses commands or is slow, every call returns no later than the end of its
// context. Lock and Do wait until then, and their errors match the error of the context.
func TestEveryCallReturnsWithItsContext(t *testing.T) {
	for how, harm := range map[string]func(m *memory.Master){
		"hung":    func(m *memory.Master) { m.Hang() },
		"stopped": func(m *memory.Master) { m.Stop() },
		"refuse":  func(m *memory.Master) { m.Refuse("MISCONF Redis is configured to save RDB snapshots") },
		"slow":    func(m *memory.Master) { m.Delay(400 * time.Millisecond) },
	} {
		for _, long := range []time.Duration{300 * time.Millisecond, 2500 * time.Millisecond} {
			subtest(t, fmt.Sprint(how, " ", long), 5, func(w *cluster) { everyCall(w, harm, long) })
		}
	}
}

func everyCall(w *cluster, harm func(m *memory.Master), long time.Duration) {
	l := w.locker()
	held, free := must(l.Lock(w.Context(), "held"))(w), must(l.Lock(w.Context(), "free"))(w)
	exported := must(l.Lock(w.Context(), "exported"))(w)
	handle := must(exported.Export())(w)
	outer := must(l.Lock(w.Context(), "nested"))(w)
	nested := must(l.Lock(outer.Context(w.Context()), "nested", redlock.WithReentry()))(w)
	after(time.Second)
	w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1, 2)
	calls := map[string]func(ctx context.Context) error{
		"lock":    func(ctx context.Context) error { _, err := l.Lock(ctx, "a"); return err },
		"trylock": func(ctx context.Context) error { _, err := l.TryLock(ctx, "b"); return err },
		"re-enter": func(ctx context.Context) error {
			return errOf(l.Lock(held.Context(ctx), "held", redlock.WithReentry()))
		},
		"extend":  held.Extend,
		"import":  func(ctx context.Context) error { _, err := l.Import(ctx, handle); return err },
		"inspect": func(ctx context.Context) error { _, err := l.Inspect(ctx, "held"); return err },
		"inner":   nested.Unlock,
		"unlock":  free.Unlock,
		"do": func(ctx context.Context) error {
			return l.Do(ctx, "c", nothing)
		},
		"admit": func(ctx context.Context) error { return admin.Of(l).Admit(ctx) },
		"ready": func(ctx context.Context) error { client.SetOf(l).AwaitKnown(ctx); return nil },
	}
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			ctx := w.withTimeout(long)
			start := time.Now()
			err := call(ctx)
			if took := time.Since(start); took > long+15*time.Millisecond {
				w.Errorf("%s took %v with a context of %v: %v", name, took, long, err)
			}
			if name == "lock" || name == "do" { // these calls wait until their context ends
				w.isError(err, context.DeadlineExceeded)
			}
			if err != nil && ctx.Err() == nil {
				w.notError(err, context.DeadlineExceeded, context.Canceled)
			}
		})
	}
	all.Wait()
	w.each(func(_ int, m *memory.Master) {
		m.Resume()
		m.Refuse("")
		m.Delay(0)
		if m.Connections() == 0 {
			m.Restart(true)
		}
	})
}

// H36: New needs no master, and a minority of masters that hang or are dead does not add to the time that a lock
// takes.
func TestHungMinorityAddsNoTime(t *testing.T) {
	for how, harm := range map[string]func(m *memory.Master){
		"hung":    func(m *memory.Master) { m.Hang() },
		"stopped": func(m *memory.Master) { m.Stop() },
		"slow":    func(m *memory.Master) { m.Delay(time.Second) },
	} {
		for _, before := range []bool{true, false} {
			subtest(t, fmt.Sprint(how, " before the start ", before), 5, func(w *cluster) {
				w.delay(7 * time.Millisecond)
				if before {
					w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1)
				}
				l := w.locker()
				if !before {
					w.each(func(_ int, m *memory.Master) { harm(m) }, 0, 1)
				}
				for range 50 {
					start := time.Now()
					k := must(l.Lock(w.Context(), "a"))(w)
					equal(w, time.Since(start), 14*time.Millisecond, "time of a lock")
					w.noError(k.Unlock(w.Context()))
					equal(w, time.Since(start), 28*time.Millisecond, "time of lock and unlock")
					after(100 * time.Millisecond)
				}
				w.resume()
				w.delay(0)
			})
		}
	}
}

// H36: no master is alive when the Locker is made. The Locker acquires locks when the masters have started.
func TestNewNeedsNoMaster(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.hang()
		early := w.newLocker(w.pool())
		ctx := w.withTimeout(20 * time.Millisecond)
		w.isError(errOf(early.TryLock(ctx, "a")), redlock.ErrNoQuorum, context.DeadlineExceeded) // no master has answered
		w.resume()
		w.stop()
		start := time.Now()
		l, err := redlock.New(w.pool(), redlock.WithClock(clock.Runtime()))
		if err != nil || time.Since(start) != 0 {
			w.Fatalf("New returned %v after %v, want nil immediately", err, time.Since(start))
		}
		defer l.Close()
		w.isError(errOf(l.TryLock(w.Context(), "a")), redlock.ErrNoQuorum, pool.ErrDown)
		time.AfterFunc(10*time.Second, func() {
			w.each(func(_ int, m *memory.Master) {
				m.Restart(true)
				m.Admit(redlock.DefaultPrefix, redlock.DefaultMaxTTL)
			})
		})
		k := must(l.Lock(w.Context(), "a"))(w)
		if took := time.Since(start); took < 10*time.Second || took > 13*time.Second {
			w.Errorf("the lock took %v, want 10 to 13 s", took)
		}
		_ = k.Unlock(w.Context())
	})
}

// H37: Close releases all held locks in about one round trip, ends their contexts and the waiting calls, and stops
// its goroutines; a second Close is harmless.
func TestCloseReleasesEverything(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.pool()
		l := w.readyLocker(p)
		k := must(l.Lock(w.Context(), "exported"))(w)
		var contexts []context.Context
		for n := range 100 {
			contexts = append(contexts, must(l.Lock(w.Context(), fmt.Sprint("n", n)))(w).Context(w.Context()))
		}
		w.masters.Take("taken", 25*time.Second)
		waiting := w.goLock(w.Context(), l, "taken")
		w.delay(10 * time.Millisecond)
		after(time.Second)
		start := time.Now()
		w.noError(l.Close())
		w.wantSince(start, 50*time.Millisecond)
		w.isError(waiting.mustFail(time.Second), redlock.ErrClosed)
		for n, ctx := range contexts {
			if ctx.Err() == nil {
				w.Fatalf("the context of lock %d has not ended", n)
			}
			w.isError(context.Cause(ctx), redlock.ErrClosed)
			w.wantOn(fmt.Sprint("n", n), 0)
		}
		w.noError(l.Close())
		w.isError(errOf(l.Lock(w.Context(), "a")), redlock.ErrClosed)
		w.isError(errOf(k.Export()), redlock.ErrClosed)
		w.delay(0)
		w.readyLocker(p) // the pool is still open
	})
}

// H38: after each kind of end of a lock, the calls and the context return the error of that end.
func TestErrorIdentities(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "released"))(w)
		ctx := k.Context(w.Context())
		w.noError(k.Unlock(w.Context()))
		w.isError(k.Unlock(w.Context()), redlock.ErrReleased)
		w.isError(k.Extend(w.Context()), redlock.ErrReleased)
		w.isError(errOf(k.Export()), redlock.ErrReleased)
		w.isError(context.Cause(ctx), redlock.ErrReleased)
		w.isError(k.Err(), redlock.ErrReleased)

		k = must(l.Lock(w.Context(), "lost"))(w)
		ctx = k.Context(w.Context())
		w.masters.Lose("lost")
		w.isError(k.Extend(w.Context()), redlock.ErrLost)
		w.isError(context.Cause(ctx), redlock.ErrLost)
		w.notError(context.Cause(ctx), redlock.ErrMaxHold)
		w.isError(k.Unlock(w.Context()), redlock.ErrLost)
		w.isError(k.Unlock(w.Context()), redlock.ErrReleased)

		k = must(l.Lock(w.Context(), "lost unseen"))(w)
		w.masters.Lose("lost unseen")
		w.isError(k.Unlock(w.Context()), redlock.ErrLost)

		k = must(l.Lock(w.Context(), "exported"))(w)
		w.noError(errOf(k.Export()))
		w.isError(k.Unlock(w.Context()), redlock.ErrExported)

		w.isError(errOf(l.Lock(w.Context(), "", redlock.WithTTL(time.Second))), redlock.ErrInvalid)
		w.isError(errOf(l.Lock(w.Context(), "a", redlock.WithTTL(time.Hour))), redlock.ErrInvalid)
		w.isError(errOf(redlock.New(nil)), redlock.ErrInvalid)
	})
}

// H32: the errors of calls that were cancelled, have timed out, or have made their last attempt differ, and each
// contains the last replies of the masters.
func TestCancelledAndExhaustedErrorsDiffer(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		w.refuse("OOM command not allowed")
		errWhy := errors.New("the user went home")
		cancelled, cancel := context.WithCancelCause(w.Context())
		time.AfterFunc(time.Second, func() { cancel(errWhy) })
		_, err := l.Lock(cancelled, "a")
		w.isError(err, context.Canceled, errWhy, redlock.ErrNoQuorum)
		w.notError(err, context.DeadlineExceeded, redlock.ErrHeld)

		_, err = l.Lock(w.withTimeout(time.Second), "a")
		w.isError(err, context.DeadlineExceeded, redlock.ErrNoQuorum)
		w.notError(err, context.Canceled)
		var m *transport.Error
		if !errors.As(err, &m) || m.Unknown {
			w.Errorf("no master is named in %v", err)
		}

		_, err = l.Lock(w.Context(), "a", redlock.WithTries(3))
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, context.DeadlineExceeded, context.Canceled)
		w.refuse("")

		w.masters.Take("a", 20*time.Second)
		_, err = l.Lock(w.withTimeout(time.Second), "a")
		w.isError(err, context.DeadlineExceeded, redlock.ErrHeld)
		w.notError(err, redlock.ErrNoQuorum)

		w.wire.clear()
		w.isError(errOf(l.Lock(deadContext(), "b")), context.Canceled)
		equal(w, len(w.wire.sent("acquire")), 0, "acquires with a dead context")
	})
}

func deadContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// H01, H28: the masters keep the lock until the last Unlock; an inner lock neither shortens nor ends the outer one.
func TestInnerUnlockKeepsOuter(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		ctx := k.Context(w.Context())
		depth := func(want int, least time.Duration) {
			w.Helper()
			synctest.Wait()
			w.each(func(i int, m *memory.Master) {
				if _, depth, left := m.Holds("a"); depth != want || left < least {
					w.Errorf("master %d: depth %d, TTL %v; want %d, at least %v", i, depth, left, want, least)
				}
			})
		}
		long := must(l.Lock(ctx, "a", redlock.WithReentry(), redlock.WithTTL(28*time.Second)))(w)
		depth(2, 28*time.Second)
		until := validUntil(k)
		short := must(l.Lock(ctx, "a", redlock.WithReentry(), redlock.WithTTL(time.Second)))(w)
		depth(3, 28*time.Second)
		for i, inner := range []*redlock.Lock{short, long} {
			w.noError(inner.Unlock(w.Context()))
			depth(2-i, 28*time.Second)
			if validUntil(k).Before(until) || k.Err() != nil {
				w.Errorf("the outer lock is valid until %v, was until %v; %v", validUntil(k), until, k.Err())
			}
		}
		after(time.Minute)
		depth(1, 15*time.Second)
		err := k.Unlock(w.Context())
		synctest.Wait()
		if err != nil || w.on("a") != 0 {
			w.Errorf("Unlock returned %v, and the lock is on %d masters", err, w.on("a"))
		}
	})
}

// H29: a lock is owned by a context. Another goroutine that uses the owner's context re-enters the lock on request, and
// a goroutine that uses a different context waits.
func TestOwnershipIsThroughContext(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := must(l.Lock(w.Context(), "a"))(w)
		w.isError(errOf(l.TryLock(w.Context(), "a")), redlock.ErrHeld)
		ctx := k.Context(w.Context())
		inner, other := w.goLock(ctx, l, "a", redlock.WithReentry()), w.goLock(w.Context(), l, "a")
		after(time.Minute)
		if other.returned() {
			w.Error("the goroutine with a different context got the lock")
		}
		w.noError(inner.mustLock(time.Second).Unlock(w.Context()), k.Unlock(w.Context()))
		w.wantLater(other.mustLock(time.Second), k)
	})
}
