package redlockinfo

import (
	"context"
	"time"
)

// A Trace is a pair of callbacks that a redlock.Locker calls when something happens, for logs, metrics and spans.
// Either may be nil. They never see credentials.
//
// Event runs on a separate goroutine, and does not delay locks: events are queued when they happen, with their times,
// and delivered one at a time in that order. A callback that blocks delays the events behind it, and the log, and
// nothing else. The queue holds 16384 events; while it is full, further ones are dropped and counted (redlock.Stats),
// and the log shows the number when the queue has caught up. So a Trace must not count starts and ends:
// redlock.Locker.Stats returns the exact numbers. A callback that panics is recovered, counted and logged.
//
// redlock.Locker.Close delivers queued events, until its context ends. A callback must not call Close, which would
// wait for the callback.
type Trace struct {
	// Do runs on the goroutine of a redlock.Locker.Do, before the lock is requested. It returns the context with which the
	// Do continues, derived from ctx, so that the span of the Do is the parent of spans in its function. The callback
	// delays only this Do. If it panics, the Do continues with ctx.
	Do func(ctx context.Context, name string) context.Context
	// Event receives everything else.
	Event func(Event)
}

// An Event is something that has happened. Kind says what, and which other fields are set:
//
//	call          a call has ended, even by a panic: Op, Context, Elapsed, Token, Attempts, Place, the votes of its
//	              last attempt; Held after an "unlock" that ended a lock
//	attempt       a round of an acquire or an import was decided or given up: ID, Token, Elapsed, the votes
//	vote          a master has replied: Op, Master, State, Elapsed; Err if it gave no vote
//	acquired      a lock was won, or handed off to a local waiter; except re-entries. Each ends as released or lost:
//	released      it was unlocked, handed off, exported, or released by Close: Err
//	lost          it ended before its release
//	extended      an extension was decided
//	repaired      a master that lacked a lock has it again: Master
//	master        the state of a master has changed: Master, State, Left
//	reconfigured  a redlock.Admin.Reconfigure has ended; Token is the epoch
//	warning       the configuration is valid, but has a risk: Err
//
// Events of the kinds acquired to extended have ID, Token, Held and Left. A call that ends during Close may be reported
// after Close has returned.
type Event struct {
	Kind string
	Time time.Time // when it happened; of a call, when it began
	// Context is the context of the call; for "do", the one that Trace.Do returned.
	Context context.Context
	// Op is the call: "lock" (Lock), "try lock", "import", "do", "extend", "set value" (redlock.SetValue), "unlock"; of a
	// redlock.RWLock also "rlock", "try rlock" and "downgrade". The Lock and the Unlock of a Do are calls with its
	// context. Of a vote it is the step, as "roll back".
	Op     string
	Name   string // of the lock, as the caller gave it, also if it is invalid
	ID     string // of the lease
	Token  int64  // the fencing token; of an attempt, the ballot; 0 if there is none
	Master string // its address
	// State is the state of a master: see [Master]. For a vote it is "granted"; "held", also if another client is first;
	// "missing" (the lease is not there), "too old" or "too new" (the attempt, by the master's fence and clock), "not
	// voting" (the master is in quarantine), "refused" (the TTL is too long, or the epoch too old), "failed" (no reply, or
	// an error).
	State   string
	Elapsed time.Duration // how long it took
	Held    time.Duration // how long the lock has been held, or was held until its Unlock
	// Left is the remaining validity or, if the lock has ended, how long the masters still keep the name because of
	// redlock.WithMinHold.
	Left     time.Duration
	Attempts int // the rounds that were sent; 0 if the lock was handed off
	// Place is the place of the call when it first waited: 1 is the first, of this Locker's calls for the name or in the
	// queues of the masters. 0: it has not waited in a queue.
	Place int
	Votes Votes // the votes of the masters
	Err   error // nil: it succeeded
}

// Votes counts the votes on an attempt: Granted of N masters granted it.
type Votes struct{ Granted, N int }
