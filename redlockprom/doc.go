// Package redlockprom exports the metrics of a [redlock.Locker] to Prometheus.
//
//	metrics := redlockprom.New()
//	locker, err := redlock.Open(urls, redlock.WithTrace(metrics.Trace()))
//	metrics.Watch(locker)
//	prometheus.MustRegister(metrics)
//
// The metrics are:
//
//	redlock_wait_seconds{op,outcome}                how long the calls took that acquire a lock: see
//	                                                [redlockinfo.Op]
//	redlock_hold_seconds                            how long locks were held, recorded when they end
//	redlock_held                                    locks that are held now
//	redlock_waiting{reason}                         calls that wait now; reason is "held" or "no_quorum"
//	redlock_lost_total{reason}                      locks that ended before their release; "lost" or "max_hold"
//	redlock_attempts_total{outcome}                 rounds that tried to acquire a lock
//	redlock_extensions_total{outcome}               rounds that tried to extend a held lock; "ok" if a quorum confirmed
//	redlock_value_changes_total{outcome}            calls of SetValue; "ok" if a quorum has stored the value
//	redlock_votes_total{master,vote}                votes of each master: see [redlockinfo.Vote]
//	redlock_vote_seconds{master}                    response time of each master
//	redlock_master_voting{master}                   1 if the master votes and is not failing
//	redlock_master_state{master,state}              1 for the current state, 0 for other states: see [redlockinfo.Master]
//	redlock_master_epoch{master,list}               the epoch of the master's admission record, with a hash of its lists
//	redlock_master_pending_releases{master}         releases that the master has not received yet
//	redlock_master_quarantine_left_seconds{master}  remaining quarantine of the master
//	redlock_quorum                                  1 if a quorum of masters can grant a lock
//	redlock_spare_masters                           masters that may still fail before no lock can be acquired; -1 if
//	                                                none can be now
//	redlock_file_unusable                           1 if the client cannot use the masters in its file
//	redlock_unconfirmed_releases_total              releases that no quorum confirmed in time
//	redlock_events_dropped_total                    log records and trace events that were dropped
//	redlock_callback_panics_total                   callbacks that panicked
//
// redlock_held, redlock_waiting, and the metrics from redlock_master_voting on are read from the Locker that is passed
// to Watch, and are exact. The other metrics are derived from events. While the event queue of the Locker is full,
// events are dropped: see [redlockinfo.Trace]. redlock_events_dropped_total counts the dropped events.
//
// The label outcome is a result of [redlock.Outcome], vote is a [redlockinfo.Vote], state is a [redlockinfo.State], and
// master is an address. A master beside a cluster is in the shard of each bucket: it has one series, with a state other
// than voting if it has one in any shard.
//
// By default the name of a lock is not a label, because most programs have more names than a Prometheus server can
// hold. [WithNames] maps names to a few labels. A series with a name label starts at its first event, not at 0, so
// Prometheus does not see the first loss of a name as an increase.
//
// A Collector is safe for concurrent use.
package redlockprom
