package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// WithWaitLimit bounds how long a call waits for the lock, apart from the context of the work: when the limit is over,
// the call fails with [ErrHeld] where another holds the name, with [ErrNoQuorum] where too few masters have answered,
// and not with context.DeadlineExceeded. 0, the default, is no limit but the context. TryLock does not wait for
// another holder, only for answers.
func WithWaitLimit(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.waitLimit = d })
}

// errWaited is the cause of a context that ends with the wait limit.
var errWaited = errors.New("the limit of the wait is over")

// limited is ctx with the wait limit of the call.
func (c *lockConfig) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.waitLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.waitLimit, errWaited)
}

// waited is err as a call fails whose wait limit has ended, and not the context of its caller.
func waited(caller, limited context.Context, err error) error {
	f, ok := round.AsFailure(err)
	if !ok || f.Cause == nil || caller.Err() != nil || !errors.Is(context.Cause(limited), errWaited) {
		return err
	}
	over := *f
	if over.Cause = nil; over.Decision == nil {
		over.Decision = ErrNoQuorum
	}
	return &over
}

// WaitReady waits until a quorum of masters votes, and returns nil then; a lock can be had from there on, unless
// another holds it. Programs call it at their start, to say early what is wrong. Errors: [ErrNoQuorum] with the error
// of ctx and why each master does not vote; ErrClosed.
func (l *Locker) WaitReady(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	view, err := l.voters.Await(ctx, func(v *admission.View) bool { return v.Config.Rule.Won(v.Voting) })
	if err == nil {
		return nil
	}
	return failed("wait for a quorum of", l.cfg.prefix, l.sender.NoQuorum(view, "vote", err))
}
