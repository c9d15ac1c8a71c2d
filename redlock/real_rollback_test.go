package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H03, H04: one of three masters grants, two hang, and the context of the call ends. What was granted goes although
// that context is dead; what the hung masters read when they run on is refused or undone, whether the connection it
// came on still stands or has been given up.
func TestRollbackOnADeadContextLeavesNoKeyOnHungMasters(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"connection kept": hang, "connection given up": 150 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3)
			p := f.dial(pool.WithTimeout(timeout))
			l := locker(t, p, redlock.WithTTL(30*time.Second))
			f.admit(l)
			for round := range 3 {
				lock := fmt.Sprintf("n%d", round)
				f.pause(1, 2)
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
				_, err := l.Lock(ctx, lock, redlock.WithBackoff(giveUp))
				cancel()
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v, want the end of the context", err)
				}
				eventually(t, hang, func() string { return leftOn(f, 0) })
				if timeout < hang {
					stateOf(t, l, 1, "down")
					stateOf(t, l, 2, "down")
				}
				f.resume(1, 2)
				settled(f, p)
				f.noLocks(hang)
				for i := range f.servers { // the tombstone is what refuses a message that is later still
					if bar := f.do(i, "GET", redlock.DefaultPrefix+":{"+lock+"}:bar"); bar == nil && i > 0 {
						t.Errorf("master %d has no bar against a late acquire", i)
					}
				}
				stateOf(t, l, 1, "voting")
				stateOf(t, l, 2, "voting")
			}
			other := f.locker()
			for round := range 3 {
				got := held(t)(other.Lock(bounded(t), fmt.Sprintf("n%d", round)))
				if err := got.Unlock(bounded(t)); err != nil {
					t.Error(err)
				}
			}
			f.noLocks(hang)
		})
	}
}

// giveUp is a Backoff that does not try again before the context of a test has ended.
func giveUp() redlock.Backoff { return redlock.Delays{Fixed: time.Hour}.Start() }

func leftOn(f *fleet, i int) string {
	if left := f.keys(i, "lock"); len(left) > 0 {
		return fmt.Sprintf("master %d has %v", i, left)
	}
	return ""
}

// settled waits until the masters have been paid what they are owed, and have read all that was sent to them.
func settled(f *fleet, p *pool.Pool) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, hang, func() string {
			if n := p.Owed(i); n > 0 {
				return fmt.Sprintf("master %d is owed %d debts", i, n)
			}
			if n := f.connections(i); n > 1 {
				return fmt.Sprintf("master %d has %d connections, old ones among them", i, n)
			}
			return ""
		})
	}
}

// H03: a release that a hung master was sent, and one that was never sent because the master was known to be down, are
// owed to it, and paid when it runs on: long before the TTL.
func TestUnlockReachesMastersThatHungMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	p := f.dial(pool.WithTimeout(150 * time.Millisecond))
	l := locker(t, p, redlock.WithTTL(30*time.Second))
	f.admit(l)
	locks := make([]*redlock.Lock, 20)
	for i := range locks {
		locks[i] = held(t)(l.Lock(bounded(t), fmt.Sprint("n", i)))
	}
	for i, lock := range locks {
		eventually(t, hang, func() string {
			if on, n := lock.HeldOn(); on < n {
				return fmt.Sprintf("lock %d is on %d of %d", i, on, n)
			}
			return ""
		})
	}
	f.pause(3, 4)
	for i, lock := range locks {
		if i == len(locks)/2 {
			stateOf(t, l, 3, "down")
			stateOf(t, l, 4, "down")
		}
		if err := lock.Unlock(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	f.resume(3, 4)
	f.noLocks(hang)
}

// H30: an Unlock whose context was cancelled before releases on every master.
func TestUnlockWithACancelledContextReleasesEverywhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 5)
	l := f.admitted(redlock.WithTTL(30 * time.Second))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 50 {
		lock := held(t)(l.Lock(bounded(t), fmt.Sprint("n", i)))
		if err := lock.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	f.noLocks(hang)
	lock := held(t)(l.Lock(bounded(t), "do"))
	if err := lock.Unlock(bounded(t)); err != nil {
		t.Fatal(err)
	}
	body, end := context.WithCancel(context.Background())
	err := l.Do(body, "do", func(context.Context) error {
		end() // the request is over while its work is being done
		return errBody
	})
	if !errors.Is(err, errBody) {
		t.Errorf("%v hides the body's error", err)
	}
	f.noLocks(hang)
}

var errBody = errors.New("the body failed")
