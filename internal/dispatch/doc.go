// Package dispatch runs the log handlers and trace callbacks that users attach to a Locker. They run on a separate
// goroutine, so that they cannot delay or break locks.
//
// A [Queue] takes events from the goroutines that manage locks and delivers them, in the order in which they were
// posted, on one goroutine of its own. Post never waits: a queue that is full drops the event and counts it, and the
// count is logged when the queue has caught up. A handler that blocks therefore delays other events and nothing else.
//
// This package recovers a panic of a callback: it counts and logs the panic, and delivers the next events. A panic of a
// log handler is only counted.
//
// Times are taken when an event is posted, since it may be delivered much later.
package dispatch
