package redlock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/queue"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Backoff says how long a blocked call waits before it tries again. One is made for each call and used by it alone.
type Backoff interface {
	// Next returns the pause before the next try, and false to give up.
	Next() (pause time.Duration, again bool)
}

// Delays is the usual [Backoff] policy: before try n (from 1) it waits
//
//	min(Fixed * Growth^(n-1), Cap) + a random part of Random
//
// A zero Growth is 1, a zero Cap is no cap, and zero Tries go on until the context ends.
type Delays struct {
	Fixed  time.Duration
	Random time.Duration
	Growth float64
	Cap    time.Duration
	Tries  int // bounds the attempts, the first one included
}

// DefaultDelays are the delays of a Locker that was given no other.
var DefaultDelays = Delays{
	Fixed: 10 * time.Millisecond, Random: 20 * time.Millisecond, Growth: 1.5, Cap: 250 * time.Millisecond,
}

// Delay is the pause before retry n (from 1); random is the draw, from 0 to below 1.
func (d Delays) Delay(n int, random float64) time.Duration {
	growth, limit, fixed := cmp.Or(d.Growth, 1), cmp.Or(d.Cap, math.MaxInt64/4), 0.0
	if d.Fixed > 0 { // else 0 times a growth that has become infinite is no number
		fixed = min(float64(d.Fixed)*math.Pow(growth, float64(n-1)), float64(limit))
	}
	return time.Duration(fixed) + time.Duration(random*float64(d.Random))
}

// Start makes the Backoff of one call.
func (d Delays) Start() Backoff { return &delaying{delays: d} }

// check reports what is wrong with d, or nil.
func (d Delays) check() error {
	switch {
	case d.Fixed < 0 || d.Random < 0 || d.Cap < 0:
		return invalid("delays %v + random %v, cap %v: none may be negative", d.Fixed, d.Random, d.Cap)
	case math.IsNaN(d.Growth) || d.Growth < 0 || math.IsInf(d.Growth, 0) || d.Growth > 0 && d.Growth < 1:
		return invalid("the growth of the delays is %v: it is 0 (none) or at least 1", d.Growth)
	case d.Fixed == 0 && d.Random == 0:
		return invalid("delays without a pause would flood the masters: give Fixed or Random")
	case d.Cap > 0 && d.Cap < d.Fixed:
		return invalid("the delays are capped at %v, below the fixed part of %v", d.Cap, d.Fixed)
	case d.Tries < 0:
		return invalid("%d tries: 0 means until the context ends", d.Tries)
	case d.Fixed > time.Hour || d.Random > time.Hour || d.Cap > time.Hour:
		return invalid("delays %v + random %v, cap %v: an hour is the most", d.Fixed, d.Random, d.Cap)
	}
	return nil
}

type delaying struct {
	delays Delays
	n      int
}

func (d *delaying) Next() (time.Duration, bool) {
	d.n++
	if d.delays.Tries > 0 && d.n >= d.delays.Tries {
		return 0, false
	}
	return d.delays.Delay(d.n, jitter.Float64()), true
}

// pauses makes the pauses of one call that waits and cannot hear the masters. It does not give up.
func (d Delays) pauses() func() time.Duration {
	n := 0
	return func() time.Duration {
		n++
		return cmp.Or(d.Delay(n, jitter.Float64()), time.Millisecond)
	}
}

// repeat calls try until it succeeds, ctx ends or the tries are used up; once: it calls it once.
func (l *Locker) repeat(ctx context.Context, op, name string, cfg *lockConfig, once bool, try func() error) error {
	var backoff Backoff
	var last error
	for n := 1; ; n++ {
		changed := l.voters.Changed()
		err := queue.Told(last, try())
		last = err
		if err == nil || once || n == cfg.tries || !queue.Waitable(err) {
			return failed(op, name, err)
		}
		if backoff == nil {
			if backoff = cfg.start(); backoff == nil {
				return invalid("the function given to WithBackoff returned nil")
			}
		}
		delay, again := backoff.Next()
		if !again {
			return failed(op, name, err)
		}
		if view := l.voters.View(); view.Config.Rule.Won(view.Voting) {
			changed = nil // it was asked, and a pause is due
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
		if f, ok := round.AsFailure(last); ok { // with the reason why no other try follows
			c := *f
			c.Cause, err = err, &c
		}
		return failed(op, name, err)
	}
}

// WithWaitLimit bounds how long a call waits for the lock, apart from the context of the work: when the limit is over,
// the call fails with [ErrHeld] where another holds the name, with [ErrNoQuorum] where too few masters have answered,
// and not with context.DeadlineExceeded. 0, the default, is no limit but the context. TryLock and calls with a bound of
// their tries do not wait for another holder: the limit bounds the wait for answers, and how long an attempt asks again
// while the votes are split (by default half a second).
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
	var e *LockError
	if !errors.As(err, &e) || e.Cause == nil || caller.Err() != nil || !errors.Is(context.Cause(limited), errWaited) {
		return err
	}
	over := *e
	if over.Cause = nil; over.Decision == nil {
		over.Decision = ErrNoQuorum
	}
	return &over
}

// WaitReady waits until a quorum of masters votes, and returns nil then. From then on a lock can be taken, unless
// another holds it. Programs call it at their start, to say early what is wrong. Masters beyond the quorum may not be
// connected yet; [Locker.Ready] waits for all. Errors: [ErrNoQuorum] with the error of ctx and why each master does not
// vote; ErrClosed.
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
