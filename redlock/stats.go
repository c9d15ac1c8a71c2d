package redlock

import "github.com/redlock-go/redlock/internal/client"

// Stats holds the counts of one Locker. They are exact even if events of a [redlockinfo.Trace] were dropped.
type Stats struct {
	Held []string // names of the held locks; re-entries are not counted
	// Waiting is the number of calls that wait for a lock, such as Lock, Do or Acquire, by reason: "held" if another
	// lock has the name, or another client is first in the queue; "no_quorum" if no quorum of the masters can grant the
	// lock.
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

// Stats returns the counts of the Locker. It sends nothing and does not block.
func (l *Locker) Stats() Stats {
	set := client.SetOf(l)
	sum := Stats{Held: []string{}, Waiting: map[string]int{}, FileUnusable: set.FileUnusable.Load(), Spare: -1}
	for _, c := range set.Clients {
		n := c.Counts()
		sum.Held = append(sum.Held, n.Held...)
		sum.Waiting[Outcome(ErrHeld)] += n.WaitingHeld
		sum.Waiting[Outcome(ErrNoQuorum)] += n.WaitingNoQuorum
		sum.Unconfirmed += n.Unconfirmed
		sum.Dropped, sum.Panics = sum.Dropped+n.Dropped, sum.Panics+n.Panics
	}
	if v := set.Verdict(); v.CanLock {
		sum.Spare = v.Spare
	}
	return sum
}
