// Package redlockprom exports the metrics of a [redlock.Locker] to Prometheus.
//
//	metrics := redlockprom.New()
//	locker, err := redlock.New(masters, redlock.WithTrace(metrics.Trace()))
//	metrics.Watch(locker)
//	prometheus.MustRegister(metrics)
//
// The metrics are:
//
//	redlock_wait_seconds{op,outcome}                how long Lock ("lock"), TryLock ("try lock"), Import
//	                                                and, of an RWLock, "rlock", "try rlock" and "downgrade" took
//	redlock_hold_seconds                            how long locks were held that have ended
//	redlock_held                                    locks that are held now
//	redlock_waiting{reason}                         calls that wait now: "held", or "no_quorum"
//	redlock_lost_total{reason}                      locks that ended before their release: "lost", "max_hold"
//	redlock_attempts_total{outcome}                 rounds that asked the masters for a lock
//	redlock_extensions_total{outcome}               extensions of held locks that a quorum confirmed ("ok") or not
//	redlock_value_changes_total{outcome}            calls of SetValue that wrote the value to a quorum ("ok") or not
//	redlock_votes_total{master,vote}                what each master said: see [redlockinfo.Event.State]
//	redlock_vote_seconds{master}                    how long each master took to answer; of those that answered
//	redlock_master_voting{master}                   1 if the master votes and is not failing
//	redlock_master_state{master,state}              1 for its state, 0 for the others: see [redlockinfo.Master]
//	redlock_master_epoch{master}                    the epoch of its admission record
//	redlock_master_pending_releases{master}         names of which it still has to get a release
//	redlock_master_quarantine_left_seconds{master}  how long its quarantine still lasts
//	redlock_quorum                                  1 if a quorum of masters can grant a lock
//	redlock_unconfirmed_releases_total              releases that no quorum confirmed in time
//	redlock_events_dropped_total                    log records and trace events that were dropped
//	redlock_callback_panics_total                   callbacks that panicked
//
// Held locks, the masters, and the lines from redlock_quorum on are read from the Locker that is passed to Watch, and
// are exact. The others are derived from events, which are dropped while the queue of the Locker is full: see
// [redlockinfo.Trace]. redlock_events_dropped_total counts the dropped events.
//
// An outcome is a word of [redlock.Outcome], a vote a state of [redlockinfo.Event]. A master is an address.
//
// By default the name of a lock is not a label, since most programs have more names than a Prometheus server can hold.
// [WithNames] maps names to a few labels. A series with a name begins with its first event, not with 0, so the first
// loss of a name does not show as an increase.
//
// The parts of one Collector are safe for concurrent use.
package redlockprom
