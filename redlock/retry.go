package redlock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/internal/waitqueue"
)

// A Retry bounds the attempts of a call and sets the pauses between them, for [WithRetry].
type Retry struct {
	// Tries is the maximum number of attempts, including the first. 0 means no bound.
	Tries int
	// Pause returns the pause before a retry; the first retry is 1. A negative pause ends the call. The default is 10 ms,
	// growing by half with each retry to 250 ms, plus a random part of up to 20 ms.
	Pause func(retry int) time.Duration
}

// WithRetry makes a call retry until its tries are used up or its context ends, instead of waiting in the queues of
// this Locker and of the masters. If other clients wait for the name, the call may never get it. The zero Retry
// restores the default: a call waits in the queues, and is woken when the name is free.
func WithRetry(r Retry) LockOption {
	return lockOption(func(c *lockConfig) { c.tries, c.pauseFunc = r.Tries, r.Pause })
}

// delays describes exponential pauses. The pause before retry n (from 1) is
//
//	min(Fixed * Growth^(n-1), Cap) + a random part of Random
//
// A zero Growth means 1, a zero Cap means no cap.
type delays struct {
	Fixed  time.Duration
	Random time.Duration
	Growth float64
	Cap    time.Duration
}

var defaultDelays = delays{
	Fixed: 10 * time.Millisecond, Random: 20 * time.Millisecond, Growth: 1.5, Cap: 250 * time.Millisecond,
}

// Delay returns the pause before retry n (from 1); random is a random number in [0, 1).
func (d delays) Delay(n int, random float64) time.Duration {
	growth, limit, fixed := cmp.Or(d.Growth, 1), cmp.Or(d.Cap, math.MaxInt64/4), 0.0
	if d.Fixed > 0 { // otherwise 0 times an infinite growth is NaN
		fixed = min(float64(d.Fixed)*math.Pow(growth, float64(n-1)), float64(limit))
	}
	return time.Duration(fixed) + time.Duration(random*float64(d.Random))
}

// pause returns the pause before retry n of a call that does not wait in the queues.
func (c *lockConfig) pause(n int) time.Duration {
	if c.pauseFunc != nil {
		return c.pauseFunc(n)
	}
	return c.delays.Delay(n, jitter.Float64())
}

// Pauses implements queue.Delays. The pauses never end.
func (c *lockConfig) Pauses() func() time.Duration {
	n := 0
	return func() time.Duration {
		n++
		return cmp.Or(c.delays.Delay(n, jitter.Float64()), time.Millisecond)
	}
}

// repeat calls try until it succeeds, ctx ends or the tries are used up. If once is set, it calls try once.
func (l *shard) repeat(ctx context.Context, op, name string, cfg *lockConfig, once bool, try func() error) error {
	var last error
	for n := 1; ; n++ {
		changed := l.voters.Changed()
		err := waitqueue.WithLastFailure(last, try())
		last = err
		if err == nil || once || n == cfg.tries || !waitqueue.Waitable(err) {
			return failed(op, name, err)
		}
		delay := cfg.pause(n)
		if delay < 0 {
			return failed(op, name, err)
		}
		if view := l.voters.View(); view.Config.Rule.Won(view.Voting) {
			changed = nil // a quorum votes, so the full pause is due
		}
		select {
		case <-time.After(delay):
			continue
		case <-changed:
			continue
		case <-ctx.Done():
			err = contextError(ctx)
		case <-l.closing:
			err = ErrClosed
		}
		if f, ok := round.AsFailure(last); ok { // add the reason why no other try follows
			c := *f
			c.Cause, err = err, &c
		}
		return failed(op, name, err)
	}
}

// WithWaitLimit bounds how long a call waits for the lock, independently of the context of the work. When the limit has
// expired, the call fails with [ErrHeld] if another client holds the name, or with [ErrNoQuorum] if too few masters
// have answered, and not with context.DeadlineExceeded. d must be positive; without the option only the context limits
// the wait. TryLock and calls with bounded tries do not wait for another holder: for them the limit bounds the wait for
// answers, and how long an attempt is repeated while the votes are split (by default half a second).
func WithWaitLimit(d time.Duration) LockOption {
	if d == 0 {
		d = -1 // refused: a computed limit that has come down to 0 must not mean "forever"
	}
	return lockOption(func(c *lockConfig) { c.waitLimit = d })
}

// errWaited is the cause of a context that ends with the wait limit.
var errWaited = errors.New("the wait limit has expired")

// limited returns ctx with the wait limit of the call.
func (c *lockConfig) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.waitLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, c.waitLimit, errWaited)
}

// waited returns err with its context error removed if the wait limit has expired rather than the caller's context.
func waited(caller, limited context.Context, err error) error {
	var e *LockError
	if !errors.As(err, &e) || e.cause == nil || caller.Err() != nil || !errors.Is(context.Cause(limited), errWaited) {
		return err
	}
	over := *e
	if over.cause = nil; over.decided == nil {
		over.decided = ErrNoQuorum
	}
	return &over
}

// waitReady implements [Locker.WaitReady] for one shard.
func (l *shard) waitReady(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	for {
		view, err := l.voters.Await(ctx, func(v *admission.View) bool { return v.Config.Rule.Won(v.Voting) })
		if err != nil {
			return failed("wait for a quorum of", l.cfg.prefix, l.sender.NoQuorum(view, "vote", err))
		}
		_, _ = l.voters.Await(ctx, (*admission.View).Settled) // a quorum votes, also if this ends early
		f := l.unhealthy(ctx)
		if f == nil {
			return nil
		}
		select {
		case <-time.After(readyPause):
		case <-ctx.Done():
			return failed("wait for a quorum of", l.cfg.prefix, f.Ended(contextError(ctx)))
		case <-l.closing:
			return ErrClosed
		}
	}
}
