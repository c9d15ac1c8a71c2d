// Package round sends one script to all masters and counts their replies. It is the only place in this library where
// votes are counted: the votes on acquires, imports, extensions, releases and inspections. Releases and inspections
// are sent by their callers, master by master, and only counted here. A repair is not a round: it is sent to one
// master, and the next extension shows whether it succeeded.
//
//	New ──► SendAll, or Record for each master ──► Done: decided ──► Complete: all votes are in
//
// A round uses one admission.View throughout. The vote that completes a majority, or makes a majority impossible,
// decides the round. Later votes are still counted, and the VoteObserver is notified of each.
//
// Replies are counted on the goroutines of the connections, except those of inspections and forced releases, for which
// the caller waits. Only Complete blocks, and takes a context.
//
// A Failure describes a round that was not won: the decision, and the problem of each master.
package round
