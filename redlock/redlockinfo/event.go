package redlockinfo

import (
	"context"
	"encoding/json"
	"time"
)

// A Trace is a pair of callbacks for logs, metrics and spans. A redlock.Locker calls them when something happens.
// Either may be nil. Neither receives credentials.
//
// Event runs on a separate goroutine and does not delay locks. Events are queued with the times at which they happen,
// and delivered one at a time in that order. A callback that blocks delays only later events and the log. The queue
// holds 16384 events; while it is full, further events are dropped and counted (redlock.Stats), and the log shows their
// number when the queue has space again. So do not count events to find the number of held locks: redlock.Locker.Stats
// returns exact numbers. A panic in a callback is recovered, counted and logged.
//
// redlock.Locker.Close delivers the queued events, for a limited time. A callback must not call Close, because Close
// would wait for the callback.
type Trace struct {
	// Do runs on the goroutine of a redlock.Locker.Do or TryDo, or of such a method of a redlock.Semaphore or a
	// redlock.RWLock, before the lock is requested; it does not run for a DoAll or a Lead. It returns the context with
	// which the Do continues, derived from ctx. So the span of the Do can be the parent of spans in the function of the
	// Do. A callback that blocks delays only this Do. If it panics, the Do continues with ctx.
	Do func(ctx context.Context, name string) context.Context
	// Event receives all events.
	Event func(Event)
}

// An Event is something that has happened. Kind determines which other fields are set:
//
//	call          a call has ended, even by a panic: Op, Context, Elapsed, Token, Attempts, Place, and the votes of the
//	              last attempt; Held after an "unlock" that ended a lock
//	attempt       a round of an acquire or an import was decided or given up: ID, Token, Elapsed, Votes
//	vote          a master has replied: Op, Master, Vote, Elapsed; Err if the reply is no vote
//	acquired      a lock was acquired from the masters, or handed off to a local waiter; not for re-entries
//	released      an acquired lock was unlocked, handed off, exported, or released by Close: Err
//	lost          an acquired lock ended before its release: Err
//	extended      an extension was decided: Err
//	repaired      a master that lacked a lock has it again: Master
//	master        the state of a master has changed: Master, State, Left, Err
//	reconfigured  an Admin.Reconfigure has ended: Err; Token is the epoch
//	warning       the configuration is valid, but has a risk: Err
//
// Each acquired lock has one later event of the kind released or lost. Events of the kinds acquired, released, lost and
// extended have ID, Token, Held and Left. A call that ends during Close may be reported after Close has returned.
type Event struct {
	Kind Kind
	Time time.Time // time of the event; for a call, its start
	// Context is the context of the call. For the Op "do" it is the context that Trace.Do returned.
	Context context.Context
	// Op is the call. The Lock and the Unlock within a Do are separate calls with the context of the Do. For a vote, Op is
	// the step of the call, for example "roll back".
	Op      Op
	Name    string        // name of the lock as the caller passed it, even if it is invalid
	Slot    int           // number of the slot of a redlock.Semaphore; 0 for other locks, and for a call
	ID      string        // id of the lease
	Token   int64         // fencing token; for an attempt, the ballot; 0 if there is none
	Master  string        // address of the master
	State   State         // the state of a master
	Vote    Vote          // the vote of a master
	Elapsed time.Duration // duration of the call, the attempt or the vote
	Held    time.Duration // how long the lock has been held, or was held if it has ended
	// Left is the remaining validity. If the lock has ended, Left is how long the masters still keep the name because of
	// redlock.WithMinHold.
	Left     time.Duration
	Attempts int // number of rounds that were sent; 0 if the lock was handed off or re-entered
	// Place is the position of the call when it began to wait, among the calls of this Locker for the name or in the
	// queues of the masters. 1 is the first position; 0 means that the call has not waited in a queue.
	Place int
	Votes Votes // votes of the masters
	Err   error // nil on success
}

// A Kind is the kind of an [Event].
type Kind string

// The kinds of events.
const (
	KindCall         Kind = "call"
	KindAttempt      Kind = "attempt"
	KindVote         Kind = "vote"
	KindAcquired     Kind = "acquired"
	KindReleased     Kind = "released"
	KindLost         Kind = "lost"
	KindExtended     Kind = "extended"
	KindRepaired     Kind = "repaired"
	KindMaster       Kind = "master"
	KindReconfigured Kind = "reconfigured"
	KindWarning      Kind = "warning"
)

// An Op is a call of a Locker or a Lock: in an [Event], and in a redlock.LockError.
type Op string

// The calls about a lock. A call that runs a function has the Op of the call that acquires its lock, such as [OpLock]
// for a Do or Lead, until the lock is acquired, and then [OpDo].
const (
	OpLock       Op = "lock" // Lock of a Locker or an RWLock
	OpTryLock    Op = "try lock"
	OpRLock      Op = "rlock"
	OpTryRLock   Op = "try rlock"
	OpAcquire    Op = "acquire" // of a Semaphore
	OpTryAcquire Op = "try acquire"
	OpLockAll    Op = "lock all" // in errors, and if a shutdown refuses the call; its names have events of their own
	OpTryLockAll Op = "try lock all"
	OpDo         Op = "do"
	OpImport     Op = "import"
	OpDowngrade  Op = "downgrade"
	OpExtend     Op = "extend"
	OpSetValue   Op = "set value"
	OpExport     Op = "export" // in errors; the event is of the kind released
	OpUnlock     Op = "unlock"
)

// Calls that acquire no lock. They have no events of the kind call.
const (
	OpInspect        Op = "inspect" // also of Watch
	OpHealthy        Op = "health check"
	OpWaitReady      Op = "wait ready"
	OpCheck          Op = "check"
	OpAdmit          Op = "admit"
	OpQuarantine     Op = "quarantine"
	OpRaiseMaxTTL    Op = "raise max TTL"
	OpReconfigure    Op = "reconfigure"
	OpRequestRelease Op = "request release"
	OpForceRelease   Op = "force release"
)

// A Vote is the reply of a master to one message.
type Vote string

// The votes.
const (
	VoteGranted   Vote = "granted"
	VoteHeld      Vote = "held"       // another lease has the name, or another client is first in the queue
	VoteMissing   Vote = "missing"    // the master does not have the lease
	VoteTooOld    Vote = "too old"    // the ballot of the attempt is below the master's fence
	VoteTooNew    Vote = "too new"    // the ballot of the attempt is ahead of the master's clock
	VoteNotVoting Vote = "not voting" // the master is in quarantine
	VoteRefused   Vote = "refused"    // the TTL is too long, or the epoch too old
	VoteOtherKind Vote = "other kind" // the name is another kind of lock
	VoteFailed    Vote = "failed"     // no reply, or an error
)

// MarshalJSON implements [json.Marshaler]. Err is the text of the error, and is left out if there is none, as is
// Context.
func (e Event) MarshalJSON() ([]byte, error) {
	type fields Event
	return json.Marshal(struct {
		fields
		Context *struct{} `json:",omitempty"`
		Err     string    `json:",omitempty"`
	}{fields: fields(e), Err: textOf(e.Err)})
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads the result of MarshalJSON; Err then has only the text of the
// error, and Context stays as it is.
func (e *Event) UnmarshalJSON(text []byte) error {
	type fields Event
	read := struct {
		*fields
		Context *struct{}
		Err     string
	}{fields: (*fields)(e)}
	err := json.Unmarshal(text, &read)
	e.Err = withText(read.Err)
	return err
}

// Votes counts the votes on an attempt: Granted is the number of masters that granted it, and N the number of all
// masters.
type Votes struct{ Granted, N int }
