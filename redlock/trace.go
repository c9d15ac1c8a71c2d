package redlock

import (
	"context"
	"time"
)

// A Trace is a set of callbacks that a [Locker] calls when something happens, for logs, metrics and spans. Any of them
// may be nil. They never see credentials.
//
// Except for Do, a callback runs on a goroutine of its own, beside the locks: events are queued when they happen, with
// their times, and delivered one at a time in that order. A callback that blocks delays the events behind it, and the
// log, and nothing else. The queue holds 16384 events; while it is full, further ones are dropped and counted
// ([Stats.Dropped]), and the log gives the number when the queue has caught up. So a Trace must not count what begins
// and ends: [Locker.Stats] has what is held, exactly. A callback that panics is recovered, counted and logged.
//
// [Locker.Close] delivers what is queued, until its context ends. A callback that calls Close waits for itself.
type Trace struct {
	// Do is the one callback that runs on the goroutine of a call: of [Locker.Do], before the lock is requested. It
	// returns the context with which the Do goes on, derived from ctx, so that spans of its function are children of
	// that of the Do. It delays that Do alone. If it panics, the Do goes on with ctx.
	Do func(ctx context.Context, name string) context.Context
	// Call receives each call that has ended, however it ended: "lock" (Lock), "try lock", "import", "do", "extend" and
	// "unlock"; of a Shared also "rlock", "try rlock" and "downgrade". The Lock and the Unlock of a Do are calls with
	// the context of the Do. The end of a call may be reported after Close has returned.
	Call func(CallInfo)
	// Attempt receives each round of an acquire or an import once it is decided, or given up.
	Attempt func(AttemptInfo)
	// Vote receives each vote of each round: how far away the masters are, and which of them decide.
	Vote func(VoteInfo)
	// Acquired receives each lock that is won, or handed on, re-entries excepted. Each has one end: Released, or Lost.
	Acquired func(LockInfo)
	// Released receives each lock that was unlocked, once the release is confirmed or given up; was handed on; was
	// exported (Err is ErrExported); or was released by Close (ErrClosed).
	Released func(LockInfo)
	// Lost receives each lock that ended before its release.
	Lost func(LockInfo)
	// Extended receives each extension that was decided, successful (Err nil) or not.
	Extended func(LockInfo)
	// Repaired receives each master that lacked a lock and has it again.
	Repaired func(RepairInfo)
	// Changed receives each change of the masters that was made, or could not be (Err): see [Locker.ChangeMasters].
	Changed func(ChangeInfo)
	// Master receives each change of a master's state: down, in quarantine, voting.
	Master func(MasterInfo)
	// Warning receives, from New, what is risky about a configuration that is allowed.
	Warning func(text string)
}

// CallInfo describes a call that has ended.
type CallInfo struct {
	Context context.Context // of the call; of a "do" as Trace.Do returned it
	Op      string          // see Trace.Call
	Name    string          // as the caller gave it, also if it is invalid; "" if a handle to import names none
	Token   int64           // of the lock; 0 if the call got none, and of a "do"
	Start   time.Time       // when the call began
	Elapsed time.Duration   // without the time for which the machine was suspended
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
	At      time.Time // of the decision
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
	At      time.Time     // when the reply came
	Op      string        // "lock", "unlock", "extend", "roll back", ...
	Master  string        // its address
	Kind    string        // "granted", "held", "missing", "failed", ...
	Elapsed time.Duration // from before the call was queued to its reply
	Decides bool          // it is the vote that won or lost the round
	Err     error         // why the master has not answered, or was not asked; nil: this is its own word
}

// LockInfo describes a lock at one moment.
type LockInfo struct {
	At    time.Time // the moment
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
	At     time.Time // when the master confirmed it
	Name   string
	ID     string // of the grant
	Master string // its address
}

// MasterInfo describes the state of one master.
type MasterInfo struct {
	At    time.Time // when it was in this state
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
