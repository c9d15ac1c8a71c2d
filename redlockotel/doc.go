// Package redlockotel records the calls of a [redlock.Locker] as OpenTelemetry spans, and exports the metrics of the
// Locker.
//
//	watch, err := redlockotel.New()
//	locker, err := redlock.Open(urls, redlock.WithTrace(watch.Trace()))
//	stop, err := watch.Watch(locker)
//
// # Spans
//
// Each call is a span, which is a child of the span in the context of the call: "redlock lock", "redlock try lock",
// "redlock acquire", "redlock import", "redlock extend", "redlock set value", "redlock unlock" and so on, as
// [redlockinfo.Op] names them, and "redlock do", which has the lock, the unlock, and the spans of the function in
// between as its children. A LockAll, a DoAll and a Lead have no span of their own, but one for each lock and unlock.
// Attributes: redlock.name, redlock.token, redlock.attempts, redlock.place, redlock.votes.granted, redlock.masters, and
// redlock.held of an unlock, in seconds. The span of a failed call has the attribute error.type, which is the result of
// [redlock.Outcome], and the status Error. If a call that does not wait, such as TryLock or TryDo, fails because the
// name is held, only error.type is set.
//
// # Metrics
//
//	redlock.wait.duration           s            time of calls that acquire a lock; by redlock.operation, error.type
//	redlock.hold.duration           s            how long locks were held, recorded when they end
//	redlock.held                    {lock}       locks that are held now
//	redlock.waiting                 {call}       calls that wait now; by redlock.reason: "held", "no_quorum"
//	redlock.lost                    {lock}       locks that ended before their release; by error.type
//	redlock.attempts                {attempt}    rounds that tried to acquire a lock; by error.type
//	redlock.extensions              {extension}  rounds that tried to extend a held lock; by error.type
//	redlock.value.changes           {call}       calls of SetValue; by error.type
//	redlock.events.dropped          {event}      log records and trace events that were dropped
//	redlock.callback.panics         {panic}      callbacks that panicked
//	redlock.releases.unconfirmed    {release}    releases that no quorum confirmed in time
//	redlock.votes                   {vote}       votes of each master; by server.address, server.port, redlock.vote
//	db.client.operation.duration    s            time until each master answered or failed; by error.type
//	redlock.master.voting           {master}     1 if the master votes and is not failing; by server.address, server.port
//	redlock.master.state            {master}     1 for the current state, 0 for other states; also by redlock.state
//	redlock.master.epoch            1            the epoch in the admission record; also by redlock.list, its hash
//	redlock.master.pending_releases {release}    releases that the master has not received yet
//	redlock.master.quarantine.left  s            remaining quarantine of the master
//	redlock.quorum                  1            1 if a quorum of masters can grant a lock
//	redlock.masters.spare           {master}     masters that may still fail while locks can be acquired; -1: none can
//	redlock.file.unusable           1            1 if the client cannot use the masters in its file
//
// redlock.held, redlock.waiting, redlock.quorum and those after it, the metrics of masters, and the three counters
// above redlock.votes are read from the Locker that is passed to Watch, and are exact. The other metrics are derived
// from events. While the event queue of the Locker is full, events and their spans are dropped: see
// [redlockinfo.Trace]. redlock.events.dropped counts the dropped events. A master beside a cluster is in the shard of
// each bucket: it has one series, with a state other than voting if it has one in any shard.
//
// db.client.operation.duration, error.type, db.response.status_code, server.address and server.port follow the semantic
// conventions. The schema URL of the tracer and the meter contains the version of the conventions. The instrumentation
// version is the version of this module. If an operation failed with an error reply, error.type and
// db.response.status_code are the code of the reply, such as OOM or NOPERM. Otherwise error.type is "timeout";
// "refused" if the server is not fit to hold locks; "down" if the server is not connected, or the connection ended;
// "closed"; or "_OTHER". Nothing is sent to a master in quarantine.
//
// The name of a lock is an attribute of spans. It is an attribute of metrics, redlock.name, only with [WithNames],
// because most programs have more names than a metrics store can hold.
package redlockotel
