// Package dispatch runs what users attach to a Locker, log handlers and trace callbacks, beside the locks and never
// inside them.
//
// A [Queue] takes events from the goroutines that keep locks and delivers them, in the order in which they were
// posted, on one goroutine of its own. Post never waits: a queue that is full drops the event and counts it, and the
// count is logged when the queue has caught up. A handler that blocks therefore delays other events and nothing else.
//
// A callback that panics is recovered here and nowhere else: the panic is counted and logged, and the events behind it
// are delivered. A log handler that panics is counted only.
//
// Times are taken when an event is posted, since it may be delivered much later.
package dispatch
