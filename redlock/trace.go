package redlock

import (
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A Trace is a set of functions that a [Locker] calls when something happens, for logs, metrics and spans. Any of them
// may be nil. They are called outside all locks, some from the goroutines of the connections: they must be safe for
// concurrent use and must not block. They never see credentials.
type Trace struct {
	// Attempt is told of each round of an acquire once it is decided; of one that was lost and is won after all, by what
	// releases give to its waiter, once more.
	Attempt func(AttemptInfo)
	// Vote is told of each vote of each round, of locks, extensions and releases alike, as it comes: how far away the
	// masters are, and which of them decide. Extensions that share a call are not told.
	Vote func(VoteInfo)
	// Acquired is told of each lock that a call is about to return; Released of each release that was decided.
	Acquired func(HoldInfo)
	Released func(HoldInfo)
	// Extended is told of each extension that was decided, successful (Err nil) or not.
	Extended func(HoldInfo)
	// Healed is told when a master that had lost a hold has it again.
	Healed func(HealInfo)
	// Lost is told when a hold ends before its release.
	Lost func(HoldInfo)
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
	ID      string        // id of the hold
	Ballot  int64         // what it was tried with
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

// HoldInfo describes a hold at one moment.
type HoldInfo struct {
	Name  string
	ID    string
	Token int64
	Depth int
	Left  time.Duration // validity left
	Err   error
}

// HealInfo describes the healing of a hold on one master.
type HealInfo struct {
	Name   string
	ID     string
	Master string // its address
}

// MasterInfo describes the state of one master.
type MasterInfo struct {
	Addr string
	// State is "connecting", "down", "quarantine", "voting" or "blocked".
	State string
	// Left is how long a quarantine still lasts.
	Left time.Duration
	// Guard is the guard time in its marker, 0 where it has none, or none that was read; see [Locker.RaiseGuardTime].
	Guard time.Duration
	// Epoch is the epoch of the set of masters in its marker, 0 as Guard is; see [Locker.ChangeMasters].
	Epoch int64
	// Err is why it is down or blocked.
	Err error
}

// ChangeInfo describes a change of the masters of this Locker.
type ChangeInfo struct {
	Set Set
	Err error // why it was not made
}

func (l *Locker) traceMaster(i MasterInfo) {
	if t := l.cfg.trace; t != nil && t.Master != nil {
		t.Master(i)
	}
}

// traceVote is called where queued is set.
func (r *round) traceVote(i int, k scripts.Kind, decides bool) {
	r.l.cfg.trace.Vote(VoteInfo{Op: r.op, Master: r.l.pool.Addr(i), Kind: k.String(), Elapsed: r.l.now().Sub(r.queued), Decides: decides})
}

func (l *Locker) traceHold(f func(*Trace) func(HoldInfo), h *hold, err error) {
	if l.cfg.trace == nil {
		return
	}
	if g := f(l.cfg.trace); g != nil {
		h.mu.Lock()
		info := HoldInfo{Name: h.name, ID: h.idText(), Token: h.token, Depth: h.depth, Left: h.lease.left(l.now()), Err: err}
		h.mu.Unlock()
		g(info)
	}
}

func onAcquired(t *Trace) func(HoldInfo) { return t.Acquired }
func onReleased(t *Trace) func(HoldInfo) { return t.Released }
func onExtended(t *Trace) func(HoldInfo) { return t.Extended }
func onLost(t *Trace) func(HoldInfo)     { return t.Lost }
