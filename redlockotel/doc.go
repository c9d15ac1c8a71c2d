// Package redlockotel reports the spans of the calls of a [redlock.Locker], and its metrics, to OpenTelemetry.
//
//	watch, err := redlockotel.New()
//	locker, err := redlock.New(masters, redlock.WithTrace(watch.Trace()))
//	stop, err := watch.Watch(locker)
//
// # Spans
//
// Each call is a span, a child of the span in the context of the call: "redlock lock", "redlock try lock", "redlock
// import", "redlock extend", "redlock set value", "redlock unlock", and "redlock do", which has the lock, the unlock,
// and the spans of the function in between as its children. Attributes: redlock.name, redlock.token, redlock.attempts,
// redlock.place, redlock.votes.granted, redlock.masters, and redlock.held of an unlock, in seconds. A failed call has
// error.type, a word of [redlock.Outcome], and the status Error; a try lock of a held name has only the word.
//
// # Metrics
//
//	redlock.wait.duration           s            how long Lock, TryLock and Import took; by redlock.operation, error.type
//	redlock.hold.duration           s            how long locks were held that have ended
//	redlock.held                    {lock}       locks that are held now
//	redlock.waiting                 {call}       calls that wait now; by redlock.reason, "held" or "no_quorum"
//	redlock.lost                    {lock}       locks that ended before their release; by error.type
//	redlock.attempts                {attempt}    rounds that asked the masters for a lock; by error.type
//	redlock.extensions              {extension}  extensions of held locks; by error.type
//	redlock.value.changes           {call}       calls of SetValue; by error.type
//	redlock.events.dropped          {event}      log records and trace events that were dropped
//	redlock.callback.panics         {panic}      callbacks that panicked
//	redlock.releases.unconfirmed    {release}    releases that no quorum confirmed in time
//	redlock.votes                   {vote}       what each master said; by server.address, server.port, redlock.vote
//	db.client.operation.duration    s            how long each master took to answer, or to fail; by error.type
//	redlock.master.voting           {master}     1 if the master votes and is not failing; by server.address, server.port
//	redlock.master.state            {master}     1 for its state, 0 for the others; by redlock.state too
//	redlock.master.epoch            1            the epoch of its admission record
//	redlock.master.pending_releases {release}    names of which it still has to get a release
//	redlock.master.quarantine.left  s            how long its quarantine still lasts
//	redlock.quorum                  1            1 if a quorum of masters can grant a lock
//
// Held locks, the masters, the quorum and the three counts above redlock.votes are read from the Locker that is passed
// to Watch, and are exact. The others are derived from events, which are dropped, with their spans, while the queue of
// the Locker is full: see [redlockinfo.Trace]. redlock.events.dropped counts the dropped ones.
//
// db.client.operation.duration, error.type, db.response.status_code, server.address and server.port are those of the
// semantic conventions, whose version is the schema URL of the tracer and the meter. The instrumentation version is
// that of this module. An operation that failed has as its error.type the code of the error reply, such as OOM or
// NOPERM, which is also db.response.status_code; or "timeout"; "refused" if the server is not fit to hold locks; "down"
// if it is not connected, or the connection ended; "closed"; or "_OTHER". A master in quarantine is not asked.
//
// The name of a lock is an attribute of spans. It is an attribute of metrics, redlock.name, only with [WithNames],
// since most programs have more names than a metrics store can hold.
package redlockotel
