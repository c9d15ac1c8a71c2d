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

// H03, H04: one of three masters grants, two hang, and the attempt fails. The granted key is released although the
// context has ended. An acquire that the hung masters read after they resume is refused or undone: by a roll-back
// behind it on the connection, even if the connection is dropped afterwards, or by a pending release if the connection
// was dropped before there was anything to roll back.
func TestRollbackLeavesNoKeyOnHungMasters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		timeout, call time.Duration
		want          error
		down          bool // the masters are known to be down before they resume
	}{
		{"dead context, connection kept", hang, 60 * time.Millisecond, context.DeadlineExceeded, false},
		{"dead context, connection given up", 200 * time.Millisecond, 60 * time.Millisecond, context.DeadlineExceeded, true},
		{"connection given up first", 100 * time.Millisecond, hang, redlock.ErrNoQuorum, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newDeployment(t, 3)
			p := f.dial(pool.WithTimeout(c.timeout))
			l := locker(t, p, redlock.WithTTL(30*time.Second))
			f.admit(l)
			for round := range 3 {
				name := fmt.Sprint("n", round)
				f.pause(1, 2)
				ctx, cancel := context.WithTimeout(context.Background(), c.call)
				_, err := l.TryLock(ctx, name)
				cancel()
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, want %v", err, c.want)
				}
				eventually(t, hang, func() string { return leftOn(f, 0) })
				if c.down {
					stateOf(t, l, 1, "down")
					stateOf(t, l, 2, "down")
				}
				f.resume(1, 2)
				settled(f, p)
				f.noLocks(hang)
				for i := range f.servers[1:] { // the fence refuses an even later message
					if f.do(i+1, "GET", redlock.DefaultPrefix+":{"+name+"}:fence") == nil {
						t.Errorf("master %d has no fence against a late acquire", i+1)
					}
				}
				stateOf(t, l, 1, "voting")
				stateOf(t, l, 2, "voting")
			}
			other := f.locker()
			for round := range 3 {
				got := held(t)(other.Lock(bounded(t), fmt.Sprint("n", round)))
				if err := got.Unlock(bounded(t)); err != nil {
					t.Error(err)
				}
			}
			f.noLocks(hang)
		})
	}
}

func leftOn(f *deployment, i int) string {
	if left := f.keys(i, "lock"); len(left) > 0 {
		return fmt.Sprintf("master %d has %v", i, left)
	}
	return ""
}

// settled waits until no releases are pending, and the masters have read all messages that were sent to them.
func settled(f *deployment, p *pool.Pool) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, hang, func() string {
			if n := p.Transport().Pending(i); n > 0 {
				return fmt.Sprintf("master %d has %d pending releases", i, n)
			}
			if n := f.connections(i); n > 1 {
				return fmt.Sprintf("master %d has %d connections, old ones among them", i, n)
			}
			return ""
		})
	}
}

// H03: a release that was sent to a hung master, and one that was never sent because the master was known to be down,
// stay pending, and are delivered when the master resumes: long before the TTL.
func TestUnlockReachesMastersThatHungMeanwhile(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
	p := f.dial(pool.WithTimeout(500 * time.Millisecond))
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

// H30: an Unlock with a context that is already canceled releases on every master.
func TestUnlockWithACancelledContextReleasesEverywhere(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5)
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
		end() // the request ends while its work is in progress
		return errBody
	})
	if !errors.Is(err, errBody) {
		t.Errorf("%v hides the error of the function", err)
	}
	f.noLocks(hang)
}

var errBody = errors.New("the body failed")
