// Package round sends one script to all masters at once and counts what they answer. It is the one place of this
// library where votes are counted: those of acquire, import, extension, release and inspection. Releases and
// inspections are sent by their callers, master by master, and only counted here. A repair is no round: it goes to one
// master, and the next extension tells whether it worked.
//
//	New ──► Send or Cast, once for each master ──► Done: decided ──► Complete: all votes are in
//
// A round goes by one admission.View from its beginning to its end. It is decided by the vote that makes a majority,
// or by the vote that leaves no majority possible. Votes that come later are still counted, and its Booker is told of
// each.
//
// Votes are counted by the goroutines of the connections. Nothing here blocks except the waits that take a context.
//
// A round that was not won is described by a Failure: the decision, and for each master what was wrong there.
package round
