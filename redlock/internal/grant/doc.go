// Package grant keeps what the masters have granted, from the ask that won it to its release.
//
//	        a quorum granted,                last Unlock: released
//	        validity left                    (or handed on: live, with the next tenure)
//	trying ------------------> live ---------------------------------> ended
//	   |                        |  Export, Close
//	   | no quorum, too late,   |  validity over, longest hold over,
//	   | the caller gave up     v  lost on too many masters
//	   v                      ended, and released when its holder unlocks
//	rolled back
//
// A Grant is one id on the masters (after an import, also the id that it replaces); an id is never used twice. What
// the masters have been sent, and may therefore hold, is the type sent. What a caller holds is the tenure: token,
// depth, handles, terms. A grant that is handed on within the process gets a new tenure with the next token; to the
// masters nothing has changed.
//
// # Rules
//
//   - Validity is TTL - (now - start) - drift, after the Redis documentation on distributed locks. It is computed
//     anew at each look, and the elapsed time is the larger of what the boot clock and the wall clock say. No end is
//     ever stored.
//   - A repair is queued with mu held and the state checked under mu. The state becomes ended under mu, and the release
//     is queued after that. So no repair follows the release of its grant. Asks are over by then: a grant that is
//     trying has one owner.
//   - A release carries a ballot only to a master to which an ask may still be on its way over another connection. On
//     the ask's own connection the ask came first.
//   - A master has lost the grant if its last answer was "missing", or if another server, or one that may have
//     forgotten, stands at its address since it last granted, confirmed or repaired. When the others are no quorum,
//     the grant ends.
//   - A master that lacks the grant is given it back (repair) in a round in which a majority has confirmed it; while
//     the masters are changed, a majority of one of the two sets.
//
// # Locks
//
// Grant.mu is not held while anything waits, while a context is cancelled, or while a function of the caller runs.
// The locks of the Keeper's list, of the ballots and of the local queue may be taken while it is held, never the
// other way round.
//
// The Keeper has one goroutine for all live grants (package due): it extends them and ends them when their validity
// is over.
package grant
