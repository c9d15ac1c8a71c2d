package redlock

import (
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

// join returns a Trace that calls all of the traces, one after the other.
func join(traces []*redlockinfo.Trace) *redlockinfo.Trace {
	all := &redlockinfo.Trace{}
	for _, t := range traces {
		if t == nil {
			continue
		}
		all = &redlockinfo.Trace{Do: bothDo(all.Do, t.Do), Event: both(all.Event, t.Event)}
	}
	return all
}

// both returns a function that calls f and then g, even if f panics; either may be nil.
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

// bothDo combines two callbacks like both, for Trace.Do: g gets the context that f returned.
func bothDo(f, g func(context.Context, string) context.Context) func(context.Context, string) context.Context {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	return func(ctx context.Context, name string) context.Context { return g(f(ctx, name), name) }
}

// post queues an event, unless the trace has no callback.
func (e *events) post(v redlockinfo.Event) {
	if f := e.trace.Event; f != nil {
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
		Event:  redlockinfo.Event{Kind: kindCall, Time: time.Now(), Context: ctx, Op: op, Name: name},
		course: &lease.AcquireStats{},
	}
	defer func() {
		c.Elapsed, c.Err = time.Since(c.Time), err
		c.Attempts, c.Place = c.course.Rounds, c.course.Place
		c.Votes = redlockinfo.Votes{Granted: c.course.Granted, N: c.course.N}
		if failed := (*LockError)(nil); c.Attempts == 0 && errors.As(err, &failed) {
			c.Votes = redlockinfo.Votes{Granted: failed.granted, N: failed.n}
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
	if next == nil {
		return ctx
	}
	return next
}

// master reports the state of a master.
func (e *events) master(m *redlockinfo.Master) {
	e.post(redlockinfo.Event{
		Kind: kindMaster, Time: time.Now(), Master: m.Addr, State: m.State, Left: m.Left, Err: m.Err,
	})
}

// vote implements round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, _ bool) {
	e.post(redlockinfo.Event{
		Kind: kindVote, Time: r.At(v), Op: r.Op, Master: e.addr(i), State: v.Outcome.String(), Elapsed: v.After, Err: v.Err,
	})
}

// lock posts an event about one lock.
func (e *events) lock(kind string, h lease.Holder, err error) {
	if e.trace.Event != nil {
		e.describe(kind, h.Lease(), h.Info(), err)
	}
}

// grant posts an event about a lease, and so about all its holds.
func (e *events) grant(kind string, g *lease.Lease, err error) {
	if e.trace.Event != nil {
		e.describe(kind, g, g.Info(), err)
	}
}

func (e *events) describe(kind string, g *lease.Lease, i lease.Info, err error) {
	if i.Kept > 0 && !errors.Is(err, ErrExported) { // an exported lock is held elsewhere
		i.Left = i.Kept
	}
	e.post(redlockinfo.Event{
		Kind: kind, Time: time.Now(), Name: g.Name, ID: g.ID, Token: i.Token, Left: i.Left, Held: i.Held, Err: err,
	})
}

// Attempted implements lease.Events.
func (e *events) Attempted(g *lease.Lease, r *round.Round, ballot int64, err error) {
	if e.trace.Event != nil {
		count := r.Tally()
		e.post(redlockinfo.Event{
			Kind: kindAttempt, Time: time.Now(), Name: g.Name, ID: g.ID, Token: ballot, Elapsed: e.clock.Now().Sub(r.Start),
			Votes: redlockinfo.Votes{Granted: count.Of(quorum.Granted).Len(), N: count.Rule.N()},
			Err:   failed(r.Op, g.Name, err),
		})
	}
}

// NotSent implements lease.Events.
func (e *events) NotSent(op, name string, f *round.Failure) {
	if e.trace.Event != nil {
		e.post(redlockinfo.Event{
			Kind: kindAttempt, Time: time.Now(), Name: name, Votes: redlockinfo.Votes{N: f.N},
			Err: failed(op, name, f),
		})
	}
}

// longHold is the time after which a lock without a max hold is logged, once.
const longHold = time.Hour

const (
	hintLongHold = "if its work has ended, an Unlock is missing; WithMaxHold limits the hold, and stops this warning"
	hintOwnHold  = "to lock it again inside of that one, pass the context of that lock (Lock.Context)"
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
func (e *events) Acquired(h lease.Holder) { e.lock(kindAcquired, h, nil) }

// Extended implements lease.Events.
func (e *events) Extended(g *lease.Lease, err error) {
	if g.HeldLong(longHold) {
		e.logLock(slog.LevelWarn, "redlock: lock held for an hour without a max hold", g, slog.String("hint", hintLongHold))
	}
	e.grant(kindExtended, g, failed("extend", g.Name, err))
}

// Repaired implements lease.Events.
func (e *events) Repaired(g *lease.Lease, i int) {
	if e.trace.Event != nil {
		e.post(redlockinfo.Event{Kind: kindRepaired, Time: time.Now(), Name: g.Name, ID: g.ID, Master: e.addr(i)})
	}
}

// Lost implements lease.Events.
func (e *events) Lost(g *lease.Lease, cause error) {
	level, text := slog.LevelWarn, "redlock: lock was lost"
	if errors.Is(cause, ErrMaxHold) { // WithMaxHold requested it
		level, text = slog.LevelInfo, "redlock: lock released at its max hold"
	}
	e.logLock(level, text, g, slog.String("reason", plain(cause)))
	e.grant(kindLost, g, cause)
}

// Released implements lease.Events.
func (e *events) Released(h lease.Holder, err error) {
	if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrExported) && !errors.Is(err, ErrClosed) {
		e.unconfirmed.Add(1)
	}
	e.lock(kindReleased, h, failed("unlock", h.Lease().Name, err))
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

// stats returns the counts of the shard.
func (l *shard) stats() Stats {
	w := l.queue.Waiting()
	s := Stats{
		Held: []string{}, Unconfirmed: l.events.unconfirmed.Load(),
		Waiting: map[string]int{Outcome(ErrHeld): w.Held, Outcome(ErrNoQuorum): w.NoQuorum},
	}
	for _, g := range l.leases.All() {
		if !g.Idle() {
			s.Held = append(s.Held, g.Name)
		}
	}
	s.Dropped, s.Panics = l.events.Counts()
	return s
}

// The kinds of events.
const (
	kindCall         = "call"
	kindAttempt      = "attempt"
	kindVote         = "vote"
	kindAcquired     = "acquired"
	kindReleased     = "released"
	kindLost         = "lost"
	kindExtended     = "extended"
	kindRepaired     = "repaired"
	kindMaster       = "master"
	kindReconfigured = "reconfigured"
	kindWarning      = "warning"
)
