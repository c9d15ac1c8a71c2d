package redlock

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// WithQuorumWait limits how long a call waits while no quorum of masters can grant a lock. When that has lasted for d,
// counted from the beginning of the call at the earliest, the call fails with [ErrNoQuorum] and the reason of each
// master. So in an outage a call fails after d, while behind another holder it may wait for [WithWaitLimit], or until
// its context ends. An outage that begins while the call waits behind a holder counts too. 0, the default, means no
// limit. [Locker.Lead] ignores it.
//
// A master that does not answer counts as down only after the timeout of the pool ([pool.WithTimeout]), which adds to
// d. A new Locker has no quorum until it is connected, so d should be longer than the dial timeout. A master that has
// refused a call is tried again after 5 s or by the next call that it grants, so a shorter d may also end a call during
// a shorter outage.
func WithQuorumWait(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.quorumWait = d })
}

// errOutage is the cause of a context that ended because there was no quorum for the quorum wait.
var errOutage = errors.New("there is no quorum")

// An outage records since when no quorum of masters can grant a lock.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero while a quorum can grant a lock
}

// noteQuorum records whether a quorum can grant a lock now. It is called when the view or the health of a master has
// changed.
func (l *shard) noteQuorum() {
	l.outage.mu.Lock()
	defer l.outage.mu.Unlock()
	switch view := l.voters.View(); {
	case view.Config.Rule.Won(l.sender.Able(view)):
		l.outage.since = time.Time{}
	case l.outage.since.IsZero():
		l.outage.since = time.Now()
	}
}

// left returns how much of the quorum wait d of a call that began at began is left.
func (o *outage) left(d time.Duration, began time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.since.IsZero():
		return d
	case o.since.After(began):
		began = o.since
	}
	return d - time.Since(began)
}

// limited returns ctx with the wait limit and the quorum wait of a call, if it has them.
func (l *shard) limited(ctx context.Context, c *lockConfig) (context.Context, context.CancelFunc) {
	ctx, cancel := c.limited(ctx)
	if c.quorumWait == 0 {
		return ctx, cancel
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	began := time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() { // started only below, when timer is set
		switch left := l.outage.left(c.quorumWait, began); {
		case left <= 0:
			giveUp(errOutage)
		case ctx.Err() == nil: // a call that ends at this instant may have stopped the timer already: it fires once more
			timer.Reset(left)
		}
	})
	timer.Reset(c.quorumWait)
	return ctx, func() {
		timer.Stop()
		giveUp(nil)
		cancel()
	}
}

// waited returns err, the error of a call with this caller's context and this limited one, unless a limit has ended the
// call. Then it returns an error without the error of the context.
func (l *shard) waited(caller, limited context.Context, err error) error {
	var e *LockError
	if caller.Err() == nil && errors.As(err, &e) && e.failure.Cause != nil &&
		errors.Is(context.Cause(limited), errOutage) {
		return failed(e.Op, e.Name, l.sender.NoQuorum(l.voters.View(), e.Op, nil))
	}
	return waited(caller, limited, err)
}
