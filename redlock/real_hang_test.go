package redlock_test

import (
	"context"
	"errors"
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
