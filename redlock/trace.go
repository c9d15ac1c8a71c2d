package redlock

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/queue"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Trace is a set of functions that a [Locker] calls when something happens, for logs, metrics and spans. Any of them
// may be nil. They are called outside all locks, some from the goroutines of the connections: they must be safe for
// concurrent use and must not block. They never see credentials.
type Trace struct {
	// Call is told that a call begins: "lock" (Lock), "try lock", "import", "do", "extend" or "unlock"; of a Shared
	// also "rlock", "try rlock" and "downgrade". It returns the context with which the call goes on, made from that
	// of the call, and the function that is told of its end, once, whatever the call comes to; nil: none is. What a
	// Do does, its Lock and its Unlock have the context of the Do. An end may be told after Close has returned.
	Call func(ctx context.Context, op, name string) (context.Context, func(CallInfo))
	// Attempt is told of each round of an acquire or an import once it is decided, or given up.
	Attempt func(AttemptInfo)
	// Vote is told of each vote of each round as it comes: how far away the masters are, and which of them decide.
	Vote func(VoteInfo)
	// Acquired is told of each lock that is won, or handed on, re-entries excepted. Each has one end: Released, or Lost.
	Acquired func(LockInfo)
	// Released is told of each lock that was unlocked, once the release is confirmed or given up; was handed on; was
	// exported (Err is ErrExported); or was released by Close (ErrClosed).
	Released func(LockInfo)
	// Lost is told when a lock ends before its release.
	Lost func(LockInfo)
	// Extended is told of each extension that was decided, successful (Err nil) or not.
	Extended func(LockInfo)
	// Repaired is told when a master that lacked a lock has it again.
	Repaired func(RepairInfo)
	// Changed is told of each change of the masters that was made, or could not be (Err): see [Locker.ChangeMasters].
	Changed func(ChangeInfo)
	// Master is told when a master's state changes: down, in quarantine, voting.
	Master func(MasterInfo)
	// Warning is told, by New, what is unwise in a configuration that is allowed.
	Warning func(text string)
}

// CallInfo describes a call that has ended.
type CallInfo struct {
	Op      string        // as Trace.Call was told
	Name    string        // as the caller gave it, also where it is invalid; "" where a handle to import names none
	Token   int64         // of the lock; 0 where the call got none, and of a "do"
	Elapsed time.Duration // without the time for which the machine was suspended
	// Held is how long the lock was held that an "unlock" has ended. It is 0 for a lock that was lost before, and for
	// one that goes on since it was entered more than once.
	Held time.Duration
	// Attempts are the rounds that were sent for a new lock or an import. It is 0 where the lock was handed on.
	Attempts int
	// Place is where the call stood when it first waited: 1 is the first, of this Locker's calls for the name or in the
	// queues of the masters. 0: it has not waited in one.
	Place int
	// Granted of N masters had said yes at the end of the last attempt, and Quorum were needed. A call that made none,
	// and failed, has what its LockError has.
	Granted, Quorum, N int
	Err                error // nil: it succeeded
}

// AttemptInfo describes one round of an acquire.
type AttemptInfo struct {
	Name    string
	ID      string        // of the grant
	Ballot  int64         // what it was tried with; 0 where nothing was sent
	Elapsed time.Duration // from before the first byte to the decision
	Granted int           // votes at the decision
	Quorum  int
	N       int
	Err     error // nil: a quorum granted
}

// VoteInfo describes what one master said in one round.
type VoteInfo struct {
	Op      string        // "lock", "unlock", "extend", "roll back", ...
	Master  string        // its address
	Kind    string        // "granted", "held", "missing", "failed", ...
	Elapsed time.Duration // from before the call was queued to its reply
	Decides bool          // it is the vote that won or lost the round
	Err     error         // why the master has not answered, or was not asked; nil: this is its own word
}

// LockInfo describes a lock at one moment.
type LockInfo struct {
	Name  string
	ID    string // of the grant
	Token int64
	Depth int
	Left  time.Duration // validity left
	Held  time.Duration // since it was acquired; of one that was unlocked, until then
	// Kept is for how long the masters still keep the name of a lock that has ended, by [WithMinHold].
	Kept time.Duration
	Err  error
}

// RepairInfo describes that a master was given back a lock.
type RepairInfo struct {
	Name   string
	ID     string // of the grant
	Master string // its address
}

// MasterInfo describes the state of one master.
type MasterInfo struct {
	Addr  string
	Group int           // the number of its group, from 1; 0 where there are no groups
	State string        // "connecting", "down", "quarantine", "voting" or "blocked"
	Left  time.Duration // how long a quarantine still lasts
	// Guard is the longest TTL in its admission record, and Epoch the epoch, 0 where none was read; see
	// [Locker.RaiseGuardTime] and [Locker.ChangeMasters].
	Guard time.Duration
	Epoch int64
	Owed  int   // names of which it still has to get a release; the Lockers of one pool share this
	Err   error // why it does not vote
}

// events tells the Trace and the local queue what happens in the rooms below.
type events struct {
	trace *Trace
	log   *slog.Logger
	clock *clock.Clock
	addr  func(master int) string
	queue *queue.Queue
}

// join is one Trace that tells all of these, one after the other.
func join(traces []*Trace) *Trace {
	all := &Trace{}
	for _, t := range traces {
		if t == nil {
			continue
		}
		all = &Trace{
			Call: bothCalls(all.Call, t.Call), Attempt: both(all.Attempt, t.Attempt), Vote: both(all.Vote, t.Vote),
			Acquired: both(all.Acquired, t.Acquired), Released: both(all.Released, t.Released),
			Lost: both(all.Lost, t.Lost), Extended: both(all.Extended, t.Extended),
			Repaired: both(all.Repaired, t.Repaired), Changed: both(all.Changed, t.Changed),
			Master: both(all.Master, t.Master), Warning: both(all.Warning, t.Warning),
		}
	}
	return all
}

// both tells f and g; either may be nil.
func both[T any](f, g func(T)) func(T) {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	return func(t T) {
		f(t)
		g(t)
	}
}

// bothCalls is both for Trace.Call. Of the ends the later one is told first.
func bothCalls(f, g callFunc) callFunc {
	if f == nil {
		return g
	}
	if g == nil {
		return f
	}
	return func(ctx context.Context, op, name string) (context.Context, func(CallInfo)) {
		ctx, outer := f(ctx, op, name)
		ctx, inner := g(ctx, op, name)
		return ctx, both(inner, outer)
	}
}

// A callFunc is Trace.Call.
type callFunc = func(ctx context.Context, op, name string) (context.Context, func(CallInfo))

// errUnfinished is how a call ended that did not return: it has panicked, or its goroutine has ended.
var errUnfinished = errors.New("redlock: the call has not returned")

// A tracedCall is what is known of a call by its end.
type tracedCall struct {
	CallInfo
	course grant.Course
}

// call does f, and has its begin and its end told. f gets the context of the trace, and fills in what it knows.
func (e *events) call(ctx context.Context, op, name string, f func(context.Context, *tracedCall) error) error {
	began, err := time.Now(), errUnfinished
	c := &tracedCall{CallInfo: CallInfo{Op: op, Name: name}}
	ctx, end := e.trace.Call(ctx, op, name)
	if end != nil {
		defer func() {
			c.Elapsed, c.Err = time.Since(began), err
			c.Attempts, c.Place = c.course.Rounds, c.course.Place
			c.Granted, c.Quorum, c.N = c.course.Granted, c.course.Quorum, c.course.N
			if failed := (*LockError)(nil); c.Attempts == 0 && errors.As(err, &failed) {
				c.Granted, c.Quorum, c.N = failed.Granted, failed.Quorum, failed.N
			}
			end(c.CallInfo)
		}()
	}
	err = f(ctx, c)
	return err
}

// taking is call for one that takes a lock, a K.
func taking[K interface {
	Token() int64
	drop()
}](
	ctx context.Context, e *events, op, name string, f func(context.Context, *grant.Course) (K, error),
) (k K, err error) {
	got, told := false, false
	defer func() {
		if got && !told { // a trace has panicked: the caller gets no lock to release
			k.drop()
		}
	}()
	err = e.call(ctx, op, name, func(ctx context.Context, c *tracedCall) (err error) {
		if k, err = f(ctx, &c.course); err == nil {
			got, c.Token = true, k.Token()
		}
		return err
	})
	told = true
	return k, err
}

// vote is round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, decides bool) {
	e.trace.Vote(VoteInfo{
		Op: r.Op, Master: e.addr(i), Kind: v.Kind.String(), Elapsed: v.After, Decides: decides, Err: v.Err,
	})
}

// lock tells f of a lock, unless f is nil.
func (e *events) lock(f func(LockInfo), h *grant.Handle, err error) {
	if f != nil {
		describe(f, h.Grant(), h.Info(), err)
	}
}

// grant tells f what concerns all locks of a grant, unless f is nil.
func (e *events) grant(f func(LockInfo), g *grant.Grant, err error) {
	if f != nil {
		describe(f, g, g.Info(), err)
	}
}

func describe(f func(LockInfo), g *grant.Grant, i grant.Info, err error) {
	if errors.Is(err, ErrExported) {
		i.Kept = 0 // it goes on elsewhere
	}
	f(LockInfo{
		Name: g.Name, ID: g.ID, Token: i.Token, Depth: i.Depth, Left: i.Left, Held: i.Held, Kept: i.Kept, Err: err,
	})
}

// The methods below implement grant.Events.

func (e *events) Asked(g *grant.Grant, r *round.Round, ballot int64, err error) {
	if e.trace.Attempt != nil {
		count := r.Tally()
		e.trace.Attempt(AttemptInfo{
			Name: g.Name, ID: g.ID, Ballot: ballot, Elapsed: e.clock.Since(r.Start), Granted: count.Of(scripts.Granted).Len(),
			Quorum: count.Rule.Least(), N: count.Rule.N(), Err: failed(r.Op, g.Name, err),
		})
	}
}

func (e *events) Unasked(op, name string, f *round.Failure) {
	if e.trace.Attempt != nil {
		e.trace.Attempt(AttemptInfo{Name: name, Quorum: f.Quorum, N: f.N, Err: failed(op, name, f)})
	}
}

func (e *events) Acquired(h *grant.Handle) { e.lock(e.trace.Acquired, h, nil) }

func (e *events) Extended(g *grant.Grant, err error) {
	e.grant(e.trace.Extended, g, failed("extend", g.Name, err))
}

func (e *events) Repaired(g *grant.Grant, i int) {
	if e.trace.Repaired != nil {
		e.trace.Repaired(RepairInfo{Name: g.Name, ID: g.ID, Master: e.addr(i)})
	}
}

func (e *events) Lost(g *grant.Grant, cause error) {
	level, text := slog.LevelWarn, "redlock: lock was lost"
	if errors.Is(cause, ErrMaxHold) { // its limit was asked for
		level, text = slog.LevelInfo, "redlock: lock has ended at its longest hold"
	}
	e.log.Log(context.Background(), level, text, slog.String("lock", g.Name), slog.Int64("token", g.Info().Token),
		slog.Any("error", cause))
	e.grant(e.trace.Lost, g, cause)
}

func (e *events) Releasing(g *grant.Grant) { e.queue.Releasing(g) }

func (e *events) Released(h *grant.Handle, err error) {
	e.lock(e.trace.Released, h, failed("unlock", h.Grant().Name, err))
}

func (e *events) Over(g *grant.Grant) { e.queue.Over(g) }
