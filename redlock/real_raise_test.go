package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The max TTL of a deployment is raised while clients lock. Their locks stay held, longer TTLs are refused before and
// granted afterwards, and a master that then loses its data waits for the new max TTL, although only a client with the
// old one is running.
func TestTheGuardTimeIsRaisedInARunningDeployment(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	old := f.admitted(redlock.WithMaxTTL(5*time.Second), redlock.WithTTL(2*time.Second))
	raised := f.locker(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(2*time.Second))
	_, err := raised.TryLock(bounded(t), "long", redlock.WithTTL(30*time.Second))
	if !errors.Is(err, redlock.ErrTTLTooLong) {
		t.Errorf("before: %v, want ErrGuardTime", err)
	}
	lock := held(t)(old.Lock(bounded(t), "held throughout"))
	stop := workAlong(t, old)
	if err := raised.Admin().RaiseMaxTTL(bounded(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	for i := range f.servers {
		if m := f.record(i); !strings.Contains(m, " longest=60000 quarantine=60000 state=admitted ") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
	long := held(t)(raised.Lock(bounded(t), "long", redlock.WithTTL(30*time.Second)))
	if n := stop(); n == 0 {
		t.Error("no client locked meanwhile")
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
		t.Errorf("%v left of the quarantine, the max TTL is a minute", left)
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

// H80, H120: all masters must be up. While one is down nothing is written, and the error names it. A second call when
// it is back raises the max TTL everywhere.
func TestTheGuardTimeIsRaisedOnAllOrNone(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, durableArgs...)
	durable := redlock.WithDurableMasters()
	l := locker(t, f.dial(pool.WithHeartbeat(100*time.Millisecond)), redlock.WithTTL(2*time.Second), durable)
	f.admit(l)
	f.kill(4)
	stateOf(t, l, 4, "down")
	err := l.Admin().RaiseMaxTTL(bounded(t), time.Minute)
	if !errors.Is(err, redlock.ErrNoQuorum) || !strings.Contains(err.Error(), f.servers[4].Addr()) {
		t.Errorf("with one away: %v, want it named", err)
	}
	for i := range 4 {
		if m := f.record(i); !strings.Contains(m, " longest=30000 quarantine=30000 ") {
			t.Errorf("master %d has the record %q", i, m)
		}
	}
	long := f.locker(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(40*time.Second), durable)
	if _, err := long.Lock(bounded(t), "n"); !errors.Is(err, redlock.ErrTTLTooLong) {
		t.Errorf("a long TTL: %v", err)
	}
	f.restart(4) // with its data
	stateOf(t, l, 4, "voting")
	if err := l.Admin().RaiseMaxTTL(bounded(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	eventually(t, hang, func() string {
		lock, err := long.TryLock(bounded(t), "n")
		if err != nil {
			return err.Error()
		}
		return text(lock.Unlock(bounded(t)))
	})
}

// text is that of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A quarantine continues when the max TTL is raised, and lasts for the new one.
func TestRaisingTheGuardTimeEndsNoQuarantine(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithMaxTTL(5*time.Minute), redlock.WithTTL(2*time.Second))
	f.restart(0)
	stateOf(t, l, 0, "quarantine")
	before := f.record(0)
	if err := l.Admin().RaiseMaxTTL(bounded(t), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	rest := func(record string) string { return strings.TrimPrefix(record, scripts.StampOf(record)) }
	if after := f.record(0); rest(after) != strings.ReplaceAll(rest(before), "=300000", "=600000") || after == before {
		t.Errorf("the record is %q, was %q", after, before)
	}
}

// An invalid value is refused before anything is written.
func TestTheGuardTimeIsNotLoweredByAccident(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	l := f.admitted(redlock.WithMaxTTL(time.Minute), redlock.WithTTL(2*time.Second))
	records := func() (all string) {
		for i := range f.servers {
			all += f.record(i)
		}
		return all
	}
	before := records()
	for name, g := range map[string]time.Duration{
		"smaller": 30 * time.Second, "zero": 0, "below a millisecond": time.Minute + 1, "huge": 1000 * time.Hour,
		"above the default repl-backlog-ttl": 2 * time.Hour,
	} {
		if err := l.Admin().RaiseMaxTTL(bounded(t), g); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	err := f.locker(redlock.WithoutRestartGuard()).Admin().RaiseMaxTTL(bounded(t), time.Minute)
	if !errors.Is(err, redlock.ErrInvalid) {
		t.Errorf("with the guard off: %v", err)
	}
	if now := records(); now != before {
		t.Errorf("the records are %q, were %q", now, before)
	}
}
