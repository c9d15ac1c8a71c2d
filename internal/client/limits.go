package client

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/round"
)

// An outage records since when no quorum of masters can grant a lock.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero while a quorum can grant a lock
}

// noteQuorum records whether a quorum can grant a lock now. It is called when the view or the health of a master has
// changed.
func (c *Client) noteQuorum() {
	c.outage.mu.Lock()
	defer c.outage.mu.Unlock()
	switch view := c.monitor.View(); {
	case view.Config.Rule.Won(c.sender.Able(view)):
		c.outage.since = time.Time{}
	case c.outage.since.IsZero():
		c.outage.since = time.Now()
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

// Causes of a context that a limit has ended.
var (
	errOutage = errors.New("there is no quorum")
	errWaited = errors.New("the wait limit has expired")
)

// limited calls f with a context that also ends when a limit is reached: when the time wait has passed, or when no
// quorum of masters could grant a lock for the time quorum; 0 is no limit. If a limit rather than the caller has ended
// f, limited returns the error of f without the error of the context.
func (c *Client) limited(caller context.Context, wait, quorum time.Duration, f func(context.Context) error) error {
	ctx := caller
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, errWaited)
		defer cancel()
	}
	if quorum > 0 {
		var cancel context.CancelFunc
		ctx, cancel = c.withQuorumWait(ctx, quorum)
		defer cancel()
	}
	err := f(ctx)
	if ctx == caller || caller.Err() != nil {
		return err
	}
	var e *Error
	if !errors.As(err, &e) || e.Failure.Cause == nil {
		return err
	}
	switch limit := context.Cause(ctx); {
	case errors.Is(limit, errOutage):
		return failed(e.Op, e.Name, c.sender.NoQuorum(c.monitor.View(), nil))
	case errors.Is(limit, errWaited):
		changed := *e
		changed.Failure.Cause, changed.Failure.Decision = nil, cmp.Or(e.Failure.Decision, round.ErrNoQuorum)
		return &changed
	}
	return err
}

// withQuorumWait returns a copy of ctx that ends when there was no quorum for the time wait.
func (c *Client) withQuorumWait(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, giveUp := context.WithCancelCause(ctx)
	began := time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() { // started only below, when timer is set
		switch left := c.outage.left(wait, began); {
		case left <= 0:
			giveUp(errOutage)
		case ctx.Err() == nil: // a call that ends at this instant may have stopped the timer already: it fires once more
			timer.Reset(left)
		}
	})
	timer.Reset(wait)
	return ctx, func() {
		timer.Stop()
		giveUp(nil)
	}
}

// endless reports whether neither ctx nor the wait limit ends the wait of a call.
func (s *Settings) endless(ctx context.Context) bool { return ctx.Done() == nil && s.WaitLimit == 0 }
