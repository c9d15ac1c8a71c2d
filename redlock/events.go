package redlock

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// events reports what happens to the log and the Trace, through one queue. It implements grant.Events.
type events struct {
	*dispatch.Queue
	trace       *Trace
	clock       *clock.Clock
	addr        func(master int) string
	unconfirmed atomic.Uint64 // releases
}

// join is one Trace that calls all of these, one after the other.
func join(traces []*Trace) *Trace {
	all := &Trace{}
	for _, t := range traces {
		if t == nil {
			continue
		}
		all = &Trace{
			Do: bothDo(all.Do, t.Do), Call: both(all.Call, t.Call),
			Attempt: both(all.Attempt, t.Attempt), Vote: both(all.Vote, t.Vote),
			Acquired: both(all.Acquired, t.Acquired), Released: both(all.Released, t.Released),
			Lost: both(all.Lost, t.Lost), Extended: both(all.Extended, t.Extended),
			Repaired: both(all.Repaired, t.Repaired), Changed: both(all.Changed, t.Changed),
			Master: both(all.Master, t.Master), Warning: both(all.Warning, t.Warning),
		}
	}
	return all
}

// both calls f and then g, also if f panics; either may be nil.
func both[T any](f, g func(T)) func(T) {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	return func(t T) {
		defer g(t)
		f(t)
	}
}

// bothDo is both for Trace.Do: g gets the context of f.
func bothDo(f, g func(context.Context, string) context.Context) func(context.Context, string) context.Context {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	return func(ctx context.Context, name string) context.Context { return g(f(ctx, name), name) }
}

// post queues f(v), unless f is nil.
func post[T any](e *events, f func(T), v T) {
	if f != nil {
		e.Post(func() { f(v) })
	}
}

// errUnfinished is the error of a call that did not return: it has panicked, or its goroutine has ended.
var errUnfinished = errors.New("redlock: the call has not returned")

// A tracedCall is a call that is reported when it ends.
type tracedCall struct {
	CallInfo
	course grant.Course
}

// call runs f and reports it as one call. f fills in what it knows.
func (e *events) call(ctx context.Context, op, name string, f func(*tracedCall) error) error {
	err := errUnfinished
	c := &tracedCall{CallInfo: CallInfo{Context: ctx, Op: op, Name: name, Start: time.Now()}}
	defer func() {
		c.Elapsed, c.Err = time.Since(c.Start), err
		c.Attempts, c.Place = c.course.Rounds, c.course.Place
		c.Granted, c.Quorum, c.N = c.course.Granted, c.course.Quorum, c.course.N
		if failed := (*LockError)(nil); c.Attempts == 0 && errors.As(err, &failed) {
			c.Granted, c.Quorum, c.N = failed.Granted, failed.Quorum, failed.N
		}
		post(e, e.trace.Call, c.CallInfo)
	}()
	err = f(c)
	return err
}

// acquiring is call for one that acquires a lock.
func (e *events) acquiring(
	ctx context.Context, op, name string, f func(*grant.Course) (*Lock, error),
) (k *Lock, err error) {
	err = e.call(ctx, op, name, func(c *tracedCall) (err error) {
		if k, err = f(&c.course); err == nil {
			c.Token = k.Token()
		}
		return err
	})
	return k, err
}

// within returns the context with which a Do goes on.
func (e *events) within(ctx context.Context, name string) context.Context {
	if e.trace.Do == nil {
		return ctx
	}
	next := ctx
	e.Guard(func() { next = e.trace.Do(ctx, name) })
	if next == nil {
		return ctx
	}
	return next
}

// vote is round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, decides bool) {
	post(e, e.trace.Vote, VoteInfo{
		At: r.At(v), Op: r.Op, Master: e.addr(i), Kind: v.Kind.String(), Elapsed: v.After, Decides: decides, Err: v.Err,
	})
}

// lock reports a lock to f, unless f is nil.
func (e *events) lock(f func(LockInfo), h *grant.Handle, err error) {
	if f != nil {
		e.describe(f, h.Grant(), h.Info(), err)
	}
}

// grant reports what concerns all locks of a grant to f, unless f is nil.
func (e *events) grant(f func(LockInfo), g *grant.Grant, err error) {
	if f != nil {
		e.describe(f, g, g.Info(), err)
	}
}

func (e *events) describe(f func(LockInfo), g *grant.Grant, i grant.Info, err error) {
	if errors.Is(err, ErrExported) {
		i.Kept = 0 // it goes on elsewhere
	}
	post(e, f, LockInfo{
		At: time.Now(), Name: g.Name, ID: g.ID, Token: i.Token, Depth: i.Depth, Left: i.Left, Held: i.Held, Kept: i.Kept,
		Err: err,
	})
}

// Asked implements grant.Events.
func (e *events) Asked(g *grant.Grant, r *round.Round, ballot int64, err error) {
	if e.trace.Attempt != nil {
		count := r.Tally()
		post(e, e.trace.Attempt, AttemptInfo{
			At: time.Now(), Name: g.Name, ID: g.ID, Ballot: ballot, Elapsed: e.clock.Since(r.Start),
			Granted: count.Of(scripts.Granted).Len(), Quorum: count.Rule.Least(), N: count.Rule.N(),
			Err: failed(r.Op, g.Name, err),
		})
	}
}

// Unasked implements grant.Events.
func (e *events) Unasked(op, name string, f *round.Failure) {
	if e.trace.Attempt != nil {
		post(e, e.trace.Attempt, AttemptInfo{
			At: time.Now(), Name: name, Quorum: f.Quorum, N: f.N, Err: failed(op, name, f),
		})
	}
}

// Acquired implements grant.Events.
func (e *events) Acquired(h *grant.Handle) { e.lock(e.trace.Acquired, h, nil) }

// Extended implements grant.Events.
func (e *events) Extended(g *grant.Grant, err error) {
	e.grant(e.trace.Extended, g, failed("extend", g.Name, err))
}

// Repaired implements grant.Events.
func (e *events) Repaired(g *grant.Grant, i int) {
	if e.trace.Repaired != nil {
		post(e, e.trace.Repaired, RepairInfo{At: time.Now(), Name: g.Name, ID: g.ID, Master: e.addr(i)})
	}
}

// Lost implements grant.Events.
func (e *events) Lost(g *grant.Grant, cause error) {
	level, text := slog.LevelWarn, "redlock: lock was lost"
	if errors.Is(cause, ErrMaxHold) { // its limit was asked for
		level, text = slog.LevelInfo, "redlock: lock has ended at its longest hold"
	}
	e.Log(level, text, slog.String("lock", g.Name), slog.Int64("token", g.Info().Token), slog.Any("error", cause))
	e.grant(e.trace.Lost, g, cause)
}

// Released implements grant.Events.
func (e *events) Released(h *grant.Handle, err error) {
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrExported) && !errors.Is(err, ErrClosed) {
		e.unconfirmed.Add(1)
	}
	e.lock(e.trace.Released, h, failed("unlock", h.Grant().Name, err))
}
