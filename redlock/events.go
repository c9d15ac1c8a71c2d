package redlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// events sends log records and trace events through one queue. It implements lease.Events.
type events struct {
	*dispatch.Queue
	trace       *redlockinfo.Trace
	clock       *clock.Clock
	addr        func(master int) string
	unconfirmed atomic.Uint64 // releases that no quorum confirmed in time
}

// join returns a Trace that calls all of the traces, one after the other. An event reaches all of them even if one
// panics; each Do gets the context that the one before returned.
func join(traces []*redlockinfo.Trace) *redlockinfo.Trace {
	all := &redlockinfo.Trace{}
	for _, t := range traces {
		if t == nil {
			continue
		}
		if first := all.Event; first == nil {
			all.Event = t.Event
		} else if t.Event != nil {
			all.Event = func(e redlockinfo.Event) {
				defer t.Event(e)
				first(e)
			}
		}
		if first := all.Do; first == nil {
			all.Do = t.Do
		} else if t.Do != nil {
			all.Do = func(ctx context.Context, name string) context.Context { return t.Do(first(ctx, name), name) }
		}
	}
	return all
}

// post queues an event, unless the trace has no callback. An event without a time happens now.
func (e *events) post(v redlockinfo.Event) {
	if f := e.trace.Event; f != nil {
		if v.Time.IsZero() {
			v.Time = time.Now()
		}
		e.Post(func() { f(v) })
	}
}

// errUnfinished is the error of a call that did not return, because it panicked or its goroutine ended.
var errUnfinished = errors.New("redlock: the call has not returned")

// A tracedCall is the event of a call. It is reported when the call ends.
type tracedCall struct {
	redlockinfo.Event
	course *lease.AcquireStats // allocated separately, since the lock keeps it
}

// call runs f and reports it as one call. f sets the fields that it knows.
func (e *events) call(ctx context.Context, op, name string, f func(*tracedCall) error) error {
	err := errUnfinished
	c := &tracedCall{
		Event:  redlockinfo.Event{Kind: "call", Time: time.Now(), Context: ctx, Op: op, Name: name},
		course: &lease.AcquireStats{},
	}
	defer func() {
		c.Elapsed, c.Err = time.Since(c.Time), err
		c.Attempts, c.Place = c.course.Rounds, c.course.Place
		c.Votes = redlockinfo.Votes{Granted: c.course.Granted, N: c.course.N}
		if failed := (*LockError)(nil); c.Attempts == 0 && errors.As(err, &failed) {
			c.Votes = redlockinfo.Votes{Granted: failed.failure.Granted, N: failed.failure.N}
		}
		e.post(c.Event)
	}()
	err = f(c)
	return err
}

// acquiring runs f and reports it as one call, like call does, for a call that acquires a lock.
func (e *events) acquiring(
	ctx context.Context, op, name string, f func(*lease.AcquireStats) (*Lock, error),
) (k *Lock, err error) {
	err = e.call(ctx, op, name, func(c *tracedCall) (err error) {
		if k, err = f(c.course); err == nil {
			c.Token = k.Token()
		}
		return err
	})
	return k, err
}

// within returns the context for the rest of a Do.
func (e *events) within(ctx context.Context, name string) context.Context {
	if e.trace.Do == nil {
		return ctx
	}
	next := ctx
	e.Guard(func() { next = e.trace.Do(ctx, name) })
	return cmp.Or(next, ctx)
}

// master reports the state of a master.
func (e *events) master(m *redlockinfo.Master) {
	e.post(redlockinfo.Event{Kind: "master", Master: m.Addr, State: m.State, Left: m.Left, Err: m.Err})
}

// vote implements round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, _ bool) {
	e.post(redlockinfo.Event{
		Kind: "vote", Time: r.At(v), Op: r.Op, Master: e.addr(i), State: v.Outcome.String(), Elapsed: v.After, Err: v.Err,
	})
}

// describe posts an event about a lease, and so about all its holds, or about one hold, as info describes it.
func (e *events) describe(kind string, g *lease.Lease, info func() lease.Info, err error) {
	if e.trace.Event == nil {
		return
	}
	i := info()
	if i.Kept > 0 && !errors.Is(err, ErrExported) { // an exported lock is held elsewhere
		i.Left = i.Kept
	}
	e.post(redlockinfo.Event{
		Kind: kind, Name: g.Name, ID: g.ID, Token: i.Token, Left: i.Left, Held: i.Held, Err: err,
	})
}

// Attempted implements lease.Events.
func (e *events) Attempted(g *lease.Lease, r *round.Round, ballot int64, err error) {
	if e.trace.Event != nil {
		count := r.Tally()
		e.post(redlockinfo.Event{
			Kind: "attempt", Name: g.Name, ID: g.ID, Token: ballot, Elapsed: e.clock.Now().Sub(r.Start),
			Votes: redlockinfo.Votes{Granted: count.Of(quorum.Granted).Len(), N: count.Rule.N()},
			Err:   failed(r.Op, g.Name, err),
		})
	}
}

// NotSent implements lease.Events.
func (e *events) NotSent(op, name string, f *round.Failure) {
	if e.trace.Event != nil {
		e.post(redlockinfo.Event{
			Kind: "attempt", Name: name, Votes: redlockinfo.Votes{N: f.N}, Err: failed(op, name, f),
		})
	}
}

// longHold is the time after which a lock without a max hold is logged, once.
const longHold = time.Hour

const (
	hintLongHold = "if its work has ended, an Unlock is missing; WithMaxHold limits the hold, and stops this warning"
	hintOwnHold  = "to re-enter that lock, pass its context (Lock.Context)"
)

// logLock logs a record about a lock, with how long it has been held.
func (e *events) logLock(level slog.Level, text string, g *lease.Lease, more ...slog.Attr) {
	i := g.Info()
	e.Log(level, text, append([]slog.Attr{
		slog.String("lock", g.Name), slog.Int64("token", i.Token), seconds("held", i.Held),
	}, more...)...)
}

// ownHold logs that a call of this Locker waits for a lock of this Locker, perhaps for its own.
func (e *events) ownHold(g *lease.Lease) {
	e.logLock(slog.LevelWarn, "redlock: call without a deadline waits for a lock of this Locker", g,
		slog.String("reason", "held already"), slog.String("hint", hintOwnHold))
}

// Acquired implements lease.Events.
func (e *events) Acquired(h lease.Holder) { e.describe("acquired", h.Lease(), h.Info, nil) }

// Extended implements lease.Events.
func (e *events) Extended(g *lease.Lease, err error) {
	if g.HeldLong(longHold) {
		e.logLock(slog.LevelWarn, "redlock: lock held for an hour without a max hold", g, slog.String("hint", hintLongHold))
	}
	e.describe("extended", g, g.Info, failed("extend", g.Name, err))
}

// Repaired implements lease.Events.
func (e *events) Repaired(g *lease.Lease, i int) {
	e.post(redlockinfo.Event{Kind: "repaired", Name: g.Name, ID: g.ID, Master: e.addr(i)})
}

// Lost implements lease.Events.
func (e *events) Lost(g *lease.Lease, cause error) {
	level, text := slog.LevelWarn, "redlock: lock was lost"
	if errors.Is(cause, ErrMaxHold) { // WithMaxHold requested it
		level, text = slog.LevelInfo, "redlock: lock released at its max hold"
	}
	e.logLock(level, text, g, slog.String("reason", plain(cause)))
	e.describe("lost", g, g.Info, cause)
}

// Released implements lease.Events.
func (e *events) Released(h lease.Holder, err error) {
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrExported) && !errors.Is(err, ErrClosed) {
		e.unconfirmed.Add(1)
	}
	e.describe("released", h.Lease(), h.Info, failed("unlock", h.Lease().Name, err))
}

// Stats holds the counts of one Locker. They are exact even while events of a [redlockinfo.Trace] are dropped.
type Stats struct {
	Held []string // the names held now, once for each lock, without re-entries
	// Waiting contains, by reason, the number of calls that wait in Lock, Do or LockAll: "held" if another lock has the
	// name, or another client is first; "no_quorum" if no quorum of the masters can grant it.
	Waiting     map[string]int
	Unconfirmed uint64 // releases that no quorum confirmed in time; the background delivers them
	Dropped     uint64 // log records and events dropped because their queue was full
	Panics      uint64 // calls of trace callbacks and of the log handler that panicked
}

// add adds the counts of a shard.
func (s *Stats) add(l *shard) {
	for _, g := range l.leases.All() {
		if !g.Idle() {
			s.Held = append(s.Held, g.Name)
		}
	}
	waiting := l.queue.Waiting()
	s.Waiting[Outcome(ErrHeld)] += waiting.Held
	s.Waiting[Outcome(ErrNoQuorum)] += waiting.NoQuorum
	s.Unconfirmed += l.events.unconfirmed.Load()
	dropped, panics := l.events.Counts()
	s.Dropped, s.Panics = s.Dropped+dropped, s.Panics+panics
}
