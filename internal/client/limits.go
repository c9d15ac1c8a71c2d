package client

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/round"
)

// errOutage is the cause of a context that ended because there was no quorum for the quorum wait.
var errOutage = errors.New("there is no quorum")

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

// limited returns ctx with the wait limit and the quorum wait of a call, if it has them.
func (c *Client) limited(ctx context.Context, s *Settings) (context.Context, context.CancelFunc) {
	ctx, cancel := s.withWaitLimit(ctx)
	if s.QuorumWait == 0 {
		return ctx, cancel
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	began := time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() { // started only below, when timer is set
		switch left := c.outage.left(s.QuorumWait, began); {
		case left <= 0:
			giveUp(errOutage)
		case ctx.Err() == nil: // a call that ends at this instant may have stopped the timer already: it fires once more
			timer.Reset(left)
		}
	})
	timer.Reset(s.QuorumWait)
	return ctx, func() {
		timer.Stop()
		giveUp(nil)
		cancel()
	}
}

// waited returns err, the error of a call with this caller's context and this limited one, unless a limit has ended the
// call. Then it returns an error without the error of the context.
func (c *Client) waited(caller, limited context.Context, err error) error {
	var e *Error
	if caller.Err() == nil && errors.As(err, &e) && e.Failure.Cause != nil &&
		errors.Is(context.Cause(limited), errOutage) {
		return failed(e.Op, e.Name, c.sender.NoQuorum(c.monitor.View(), nil))
	}
	return limitReached(caller, limited, err)
}

// errWaited is the cause of a context that ended because the wait limit has expired.
var errWaited = errors.New("the wait limit has expired")

// withWaitLimit returns ctx with the wait limit of the call, if it has one.
func (s *Settings) withWaitLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.WaitLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, s.WaitLimit, errWaited)
}

// limitReached returns err. If the wait limit ended the call rather than the caller's context, it removes the context
// error.
func limitReached(caller, limited context.Context, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Failure.Cause == nil || caller.Err() != nil ||
		!errors.Is(context.Cause(limited), errWaited) {
		return err
	}
	changed := *e
	if changed.Failure.Cause = nil; changed.Failure.Decision == nil {
		changed.Failure.Decision = round.ErrNoQuorum
	}
	return &changed
}
