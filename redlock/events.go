package redlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/dispatch"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// events sends log records and trace events through one queue. It implements lease.Events.
type events struct {
	*dispatch.Queue
	trace       *redlockinfo.Trace
	clock       *clock.Clock
	addr        func(master int) string
	unconfirmed atomic.Uint64 // number of releases that no quorum confirmed in time
}

// join returns a Trace that calls all of the traces, one after the other. An event reaches all traces even if one
// panics. Each Do callback gets the context that the previous one returned.
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

// post queues v if the trace has an Event callback. If v has no time, post sets the present time.
func (e *events) post(v redlockinfo.Event) {
	if f := e.trace.Event; f != nil {
		if v.Time.IsZero() {
			v.Time = time.Now()
		}
		var slot scripts.Slot
		v.Name, slot = scripts.CutSlot(v.Name)
		v.Slot = slot.Number
		e.Post(func() { f(v) })
	}
}

// errUnfinished is the error of a call that panicked, or whose goroutine ended.
var errUnfinished = errors.New("redlock: the call did not return")

// A tracedCall is the event of a call, which is posted when the call ends.
type tracedCall struct {
	redlockinfo.Event
	stats *lease.AcquireStats // allocated separately, because the lock keeps a reference
}

// call runs f and posts an event for the call. f sets the fields that only f knows.
func (e *events) call(ctx context.Context, op, name string, f func(*tracedCall) error) error {
	err := errUnfinished
	c := &tracedCall{
		Event: redlockinfo.Event{Kind: "call", Time: time.Now(), Context: ctx, Op: op, Name: name},
		stats: &lease.AcquireStats{},
	}
	defer func() {
		c.Elapsed, c.Err = time.Since(c.Time), err
		c.Attempts, c.Place = c.stats.Rounds, c.stats.Place
		c.Votes = redlockinfo.Votes{Granted: c.stats.Granted, N: c.stats.N}
		if failed := (*LockError)(nil); c.Attempts == 0 && errors.As(ofCall(err), &failed) {
			c.Votes = redlockinfo.Votes{Granted: failed.failure.Granted, N: failed.failure.N}
		}
		e.post(c.Event)
	}()
	err = f(c)
	return err
}

// acquiring is call for an f that acquires a lock.
func (e *events) acquiring(
	ctx context.Context, op, name string, f func(*lease.AcquireStats) (*Lock, error),
) (k *Lock, err error) {
	err = e.call(ctx, op, name, func(c *tracedCall) (err error) {
		if k, err = f(c.stats); err == nil {
			c.Token = k.Token()
		}
		return err
	})
	return k, err
}

// within returns the context in which a Do continues: the result of the Do callback, if there is one.
func (e *events) within(ctx context.Context, name string) context.Context {
	if e.trace.Do == nil {
		return ctx
	}
	next := ctx
	e.Guard(func() { next = e.trace.Do(ctx, name) })
	return cmp.Or(next, ctx)
}

// master posts the state of a master.
func (e *events) master(m *redlockinfo.Master) {
	e.post(redlockinfo.Event{Kind: "master", Master: m.Addr, State: m.State, Left: m.Left, Err: m.Err})
}

// vote implements round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, _ bool) {
	e.post(redlockinfo.Event{
		Kind: "vote", Time: r.At(v), Op: r.Op, Master: e.addr(i), State: v.Outcome.String(), Elapsed: v.After, Err: v.Err,
	})
}

// describe posts an event about a lease or one of its holds. info returns the details.
func (e *events) describe(kind string, g *lease.Lease, info func() lease.Info, err error) {
	if e.trace.Event == nil {
		return
	}
	i := info()
	if i.Kept > 0 && !errors.Is(err, ErrExported) { // no minimum hold: an exported lock is still held
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

const (
	hintLongHold = "if its work has ended, an Unlock is missing; WithMaxHold limits the hold, and stops this warning"
	hintOwnHold  = "if the holder waits for this call, pass the context of its lock to the call: see ErrReentry"
)

// logLock logs a record about a lock, with the time for which it has been held.
func (e *events) logLock(level slog.Level, text string, g *lease.Lease, more ...slog.Attr) {
	i := g.Info()
	name, _ := scripts.CutSlot(g.Name)
	e.Log(level, text, append([]slog.Attr{
		slog.String("lock", name), slog.Int64("token", i.Token), seconds("held", i.Held),
	}, more...)...)
}

// ownHold logs that a call of this Locker waits for a lock of this Locker, possibly of the same goroutine.
func (e *events) ownHold(g *lease.Lease) {
	e.logLock(slog.LevelWarn, "redlock: call without a deadline waits for a lock of this Locker", g,
		slog.String("reason", "held already"), slog.String("hint", hintOwnHold))
}

// Acquired implements lease.Events.
func (e *events) Acquired(h lease.Holder) { e.describe("acquired", h.Lease(), h.Info, nil) }

// Extended implements lease.Events.
func (e *events) Extended(g *lease.Lease, err error) {
	if g.HeldLong() {
		e.logLock(slog.LevelWarn, "redlock: lock held for long without a max hold", g, slog.String("hint", hintLongHold))
	}
	e.describe("extended", g, g.Info, failed("extend", g.Name, err))
}

// Repaired implements lease.Events.
func (e *events) Repaired(g *lease.Lease, i int) {
	e.post(redlockinfo.Event{Kind: "repaired", Name: g.Name, ID: g.ID, Master: e.addr(i)})
}

// Lost implements lease.Events.
func (e *events) Lost(g *lease.Lease, cause error) {
	if errors.Is(cause, ErrMaxHold) { // requested by WithMaxHold
		e.logLock(slog.LevelInfo, "redlock: lock reached its max hold, releasing it", g)
	} else {
		e.logLock(slog.LevelWarn, "redlock: lock was lost", g,
			slog.String("reason", strings.TrimPrefix(cause.Error(), ErrLost.Error()+": "))) // the message says that it was lost
	}
	e.describe("lost", g, g.Info, cause)
}

// Released implements lease.Events.
func (e *events) Released(h lease.Holder, err error) {
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrExported) && !errors.Is(err, errClosed) {
		e.unconfirmed.Add(1)
	}
	e.describe("released", h.Lease(), h.Info, failed("unlock", h.Lease().Name, err))
}

// Stats holds the counts of one Locker. They are exact even if events of a [redlockinfo.Trace] were dropped.
type Stats struct {
	Held []string // names of the held locks; re-entries are not counted
	// Waiting is the number of calls that wait in Lock, Do or LockAll, by reason: "held" if another lock has the name, or
	// another client is first in the queue; "no_quorum" if no quorum of the masters can grant the lock.
	Waiting     map[string]int
	Unconfirmed uint64 // number of releases that no quorum confirmed in time; they are resent in the background
	Dropped     uint64 // number of log records and events that were dropped because their queue was full
	Panics      uint64 // number of calls of trace callbacks and of the log handler that panicked
	// Spare is the number of masters that may still fail, in the worst case, before no lock can be acquired: 0 if the next
	// failure is an outage, and -1 if no lock can be acquired now.
	Spare int
	// FileUnusable reports that redlockfile.Follow cannot use its file: the Locker keeps the masters that it has.
	FileUnusable bool
}

// add adds the counts of shard l.
func (s *Stats) add(l *shard) {
	for _, g := range l.leases.All() {
		if !g.Idle() {
			name, _ := scripts.CutSlot(g.Name)
			s.Held = append(s.Held, name)
		}
	}
	waiting := l.queue.Waiting()
	s.Waiting[Outcome(ErrHeld)] += waiting.Held
	s.Waiting[Outcome(ErrNoQuorum)] += waiting.NoQuorum
	s.Unconfirmed += l.events.unconfirmed.Load()
	dropped, panics := l.events.Counts()
	s.Dropped, s.Panics = s.Dropped+dropped, s.Panics+panics
}
