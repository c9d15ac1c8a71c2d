package redlock

import (
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/queue"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A Trace is a set of functions that a [Locker] calls when something happens, for logs, metrics and spans. Any of them
// may be nil. They are called outside all locks, some from the goroutines of the connections: they must be safe for
// concurrent use and must not block. They never see credentials.
type Trace struct {
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
}

// LockInfo describes a lock at one moment.
type LockInfo struct {
	Name  string
	ID    string // of the grant
	Token int64
	Depth int
	Left  time.Duration // validity left
	Err   error
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
	State string        // "connecting", "down", "quarantine", "voting" or "blocked"
	Left  time.Duration // how long a quarantine still lasts
	// Guard is the longest TTL in its admission record, and Epoch the epoch, 0 where none was read; see
	// [Locker.RaiseGuardTime] and [Locker.ChangeMasters].
	Guard time.Duration
	Epoch int64
	Err   error // why it does not vote
}

// events tells the Trace and the local queue what happens in the rooms below.
type events struct {
	trace *Trace
	log   *slog.Logger
	addr  func(master int) string
	queue *queue.Queue
}

// vote is round.Sender.OnVote.
func (e *events) vote(r *round.Round, i int, v *round.Vote, decides bool) {
	e.trace.Vote(VoteInfo{Op: r.Op, Master: e.addr(i), Kind: v.Kind.String(), Elapsed: v.After, Decides: decides})
}

// lock tells f of a lock, unless f is nil.
func (e *events) lock(f func(LockInfo), h *grant.Handle, err error) {
	if f != nil {
		g := h.Grant()
		f(LockInfo{Name: g.Name, ID: g.ID, Token: h.Token(), Depth: g.Info().Depth, Left: h.Remaining(), Err: err})
	}
}

// grant tells f what concerns all locks of a grant, unless f is nil.
func (e *events) grant(f func(LockInfo), g *grant.Grant, err error) {
	if f != nil {
		i := g.Info()
		f(LockInfo{Name: g.Name, ID: g.ID, Token: i.Token, Depth: i.Depth, Left: i.Left, Err: err})
	}
}

// The methods below implement grant.Events.

func (e *events) Asked(g *grant.Grant, r *round.Round, ballot int64, elapsed time.Duration, err error) {
	if e.trace.Attempt != nil {
		count := r.Tally()
		e.trace.Attempt(AttemptInfo{
			Name: g.Name, ID: g.ID, Ballot: ballot, Elapsed: elapsed, Granted: count.Of(scripts.Granted).Len(),
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
	e.log.Warn("redlock: lock was lost", slog.String("lock", g.Name), slog.Int64("token", g.Info().Token),
		slog.Any("error", cause))
	e.grant(e.trace.Lost, g, cause)
}

func (e *events) Releasing(g *grant.Grant) { e.queue.Releasing(g) }

func (e *events) Released(h *grant.Handle, err error) {
	e.lock(e.trace.Released, h, failed("unlock", h.Grant().Name, err))
}

func (e *events) Over(g *grant.Grant) { e.queue.Over(g) }
