package redlock

// Stats are counts of one Locker. They are exact, also while events of a [Trace] are dropped.
type Stats struct {
	Held        []string // the names that are held now, once for each lock; re-entries do not count
	Unconfirmed uint64   // releases that no quorum confirmed in time; they are delivered in the background
	Dropped     uint64   // log records and events that were dropped since their queue was full
	Panics      uint64   // calls of trace callbacks and of the log handler that panicked
}

// Stats returns the counts. It sends nothing and does not block.
func (l *Locker) Stats() Stats {
	grants := l.grants.All()
	s := Stats{Held: make([]string, len(grants)), Unconfirmed: l.events.unconfirmed.Load()}
	for i, g := range grants {
		s.Held[i] = g.Name
	}
	s.Dropped, s.Panics = l.events.Counts()
	return s
}
