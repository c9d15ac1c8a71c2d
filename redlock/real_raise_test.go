package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The guard time of a fleet is raised while programs lock. Their locks go on, longer TTLs are refused before and granted
// after, and a master that then forgets waits for the new one, although only a program with the old one is there.
func TestTheGuardTimeIsRaisedInARunningFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	old := f.admitted(redlock.WithGuardTime(5*time.Second), redlock.WithTTL(2*time.Second))
	raised := f.locker(redlock.WithGuardTime(time.Minute), redlock.WithTTL(2*time.Second))
	if _, err := raised.TryLock(bounded(t), "long", redlock.WithTTL(30*time.Second)); !errors.Is(err, redlock.ErrGuardTime) {
		t.Errorf("before: %v, want ErrGuardTime", err)
	}
	lock := held(t)(old.Lock(bounded(t), "held throughout"))
	stop := workAlong(t, old)
	if err := raised.RaiseGuardTime(bounded(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	for i := range f.servers {
		if m := f.marker(i); !strings.HasSuffix(m, "guard=60000 epoch=0 state=admitted") {
			t.Errorf("master %d has the marker %q", i, m)
		}
	}
	long := held(t)(raised.Lock(bounded(t), "long", redlock.WithTTL(30*time.Second)))
	if n := stop(); n == 0 {
		t.Error("nobody locked meanwhile")
	}
	if lock.Err() != nil {
		t.Errorf("the lock that was held is %v", lock.Err())
	}
	if err := errors.Join(lock.Unlock(bounded(t)), long.Unlock(bounded(t)), raised.Close(bounded(t))); err != nil {
		t.Error(err)
	}
	f.restart(0, 1)
	f.kill(4)
	if left := quarantined(t, old, 0, 1); left < 50*time.Second {
		t.Errorf("%v left of the quarantine, the guard time is a minute", left)
	}
}

// workAlong locks and unlocks until the function that it returns is called, which says how often.
func workAlong(t *testing.T, l *redlock.Locker) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	n := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			lock, err := l.Lock(ctx, "along")
			if err == nil {
				n++
				err = lock.Unlock(context.WithoutCancel(ctx))
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return n
	}
}

// A minority that cannot be reached does not stop the raising; it keeps the old one, refuses longer TTLs when it is back,
// is named by the check, and has it after the next time. With a majority away there is no success.
func TestTheGuardTimeIsRaisedOnWhatCanBeReached(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5, durableArgs...)
	l := locker(t, f.dial(pool.WithHeartbeat(100*time.Millisecond)), redlock.WithGuardTime(5*time.Second), redlock.WithTTL(2*time.Second), redlock.WithDurableMasters())
	f.admit(l)
	f.kill(0, 1)
	stateOf(t, l, 0, "down")
	stateOf(t, l, 1, "down")
	if err := l.RaiseGuardTime(bounded(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	f.restart(0, 1) // with their memory, and the old guard time in it
	stateOf(t, l, 0, "voting")
	stateOf(t, l, 1, "voting")
	findings := must[[]pool.Finding](t)(l.Check(bounded(t)))
	for i, x := range findings {
		if x.About != "guard time" || x.Master != f.servers[i].Addr() || x.Severity != pool.Warning || !strings.Contains(x.Do, "guard -set 1m0s") {
			t.Errorf("%v", x)
		}
	}
	if len(findings) != 2 {
		t.Errorf("%d findings: %v", len(findings), findings)
	}
	f.kill(2)
	stateOf(t, l, 2, "down")
	long := f.locker(redlock.WithGuardTime(time.Minute), redlock.WithTTL(30*time.Second))
	long.Ready(bounded(t))
	if _, err := long.TryLock(bounded(t), "n"); !errors.Is(err, redlock.ErrGuardTime) || !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("a long TTL on two masters with the new one: %v", err)
	}
	if err := l.RaiseGuardTime(bounded(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	held(t)(long.Lock(bounded(t), "n"))
	f.kill(3, 4)
	for _, i := range []int{3, 4} {
		stateOf(t, l, i, "down")
	}
	err := l.RaiseGuardTime(bounded(t), 2*time.Minute)
	if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), f.servers[4].Addr()) {
		t.Errorf("with two of five: %v, want ErrNoQuorum that names the others", err)
	}
}

// A quarantine keeps its deadline when the guard time is raised.
func TestRaisingTheGuardTimeEndsNoQuarantine(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	l := f.admitted(redlock.WithGuardTime(5*time.Minute), redlock.WithTTL(2*time.Second))
	f.restart(0)
	stateOf(t, l, 0, "quarantine")
	before := f.marker(0)
	if err := l.RaiseGuardTime(bounded(t), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if after := f.marker(0); after != strings.Replace(before, "guard=300000", "guard=600000", 1) || after == before {
		t.Errorf("the marker is %q, was %q", after, before)
	}
}

// Lowering is asked for by name, and what cannot be right is refused before anything is written.
func TestTheGuardTimeIsNotLoweredByAccident(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	l := f.admitted(redlock.WithGuardTime(time.Minute), redlock.WithTTL(2*time.Second), redlock.WithBarTTL(2*time.Minute))
	markers := func() (all string) {
		for i := range f.servers {
			all += f.marker(i)
		}
		return all
	}
	before := markers()
	for name, g := range map[string]time.Duration{"smaller": 30 * time.Second, "zero": 0, "below a millisecond": time.Minute + 1, "above the bars": 3 * time.Minute, "huge": 1000 * time.Hour} {
		if err := l.RaiseGuardTime(bounded(t), g); !errors.Is(err, redlock.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	if err := f.locker(redlock.WithoutGuard()).RaiseGuardTime(bounded(t), time.Minute); !errors.Is(err, redlock.ErrInvalidOption) {
		t.Errorf("with the guard off: %v", err)
	}
	if now := markers(); now != before {
		t.Errorf("the markers are %q, were %q", now, before)
	}
	if err := l.LowerGuardTime(bounded(t), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if now := markers(); now != strings.ReplaceAll(before, "guard=60000", "guard=30000") {
		t.Errorf("the markers are %q, were %q", now, before)
	}
	if _, err := l.TryLock(bounded(t), "n", redlock.WithTTL(40*time.Second)); !errors.Is(err, redlock.ErrGuardTime) && !errors.Is(err, redlock.ErrQuarantine) {
		t.Errorf("a TTL above the new guard time: %v", err)
	}
}
