package redlock

// Stats holds the counts of one Locker. They are exact even while events of a [redlockinfo.Trace] are dropped.
type Stats struct {
	Held []string // the names held now, once for each lock; re-entries do not count
	// Waiting has the number of calls that wait in Lock, Do or LockAll by reason: "held" if another lock has the name, or
	// another client is first; "no_quorum" if no quorum of the masters can grant it.
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
