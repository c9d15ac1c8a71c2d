package redlock

import "time"

// A Trace is a set of functions that a [Locker] calls when something happens, for logs, metrics and spans. Any of them
// may be nil. They are called outside all locks, some from the goroutines of the connections: they must be safe for
// concurrent use and must not block. They never see credentials.
type Trace struct {
	// Attempt is told of each round of an acquire once it is decided.
	Attempt func(AttemptInfo)
	// Acquired is told of each lock that a call is about to return; Released of each release that was decided.
	Acquired func(HoldInfo)
	Released func(HoldInfo)
	// Extended is told of each extension that was decided, successful (Err nil) or not.
	Extended func(HoldInfo)
	// Healed is told when a master that had lost a hold has it again.
	Healed func(HealInfo)
	// Lost is told when a hold ends before its release.
	Lost func(HoldInfo)
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
	// Err is why it is down or blocked.
	Err error
}

func (l *Locker) traceMaster(i MasterInfo) {
	if t := l.cfg.trace; t != nil && t.Master != nil {
		t.Master(i)
	}
}

func (l *Locker) traceHold(f func(*Trace) func(HoldInfo), h *hold, err error) {
	if l.cfg.trace == nil {
		return
	}
	if g := f(l.cfg.trace); g != nil {
		h.mu.Lock()
		info := HoldInfo{Name: h.name, ID: h.id.ID, Token: h.token, Depth: h.depth, Left: h.lease.left(l.now()), Err: err}
		h.mu.Unlock()
		g(info)
	}
}

func onAcquired(t *Trace) func(HoldInfo) { return t.Acquired }
func onReleased(t *Trace) func(HoldInfo) { return t.Released }
func onExtended(t *Trace) func(HoldInfo) { return t.Extended }
func onLost(t *Trace) func(HoldInfo)     { return t.Lost }
