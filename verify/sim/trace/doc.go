// Package trace checks the masters of a simulated schedule against the transition rules of the specification
// (verify/spec). A schedule is a list of events: the calls that a master has executed, with their replies, losses of
// a master's data, changes of a master's incarnation, and the holds that clients begin. The checker derives its own
// state of the masters from the events alone. It shares only the parsing of admission records and the codes of
// replies with the scripts and the library.
//
//	rule        step of the specification              requirement
//	votes       redlock.pml, GRANTS; RECORD_IN_SCRIPT  a master that votes grants, under the record that the call expects
//	free        redlock.pml, GRANTS                    the name is free, or has this lease
//	fence       redlock.pml, BALLOT_OK; FENCE          the first ballot is above all that the master has accepted
//	window      redlock.pml, RECENT; LIMIT_AHEAD       no ballot is 15 s behind the master's time, or further ahead
//	present     redlock.pml, CONFIRMS                  an extension is confirmed only for an existing lease
//	import      import.pml, REPLACEABLE                an import replaces the lease of its handle, and no other
//	missing     redlock.pml, REPAIRABLE; ROUND_STAMP   a repaired master has said, under this record, that it lacks it
//	token       redlock.pml, win; TOKEN_IS_FENCE       a majority has granted a range that has the token of a hold
//	quarantine  admission.pml, admit; QUARANTINE       a quarantine ends after its time, by the master's clock
//	record      admission.pml, WRITE                   only a raise gives a voter a longer TTL; no quarantine shrinks
//
// The events do not show whether a majority confirmed a lease before a repair (MAJORITY_FIRST). Exclusion is a
// result of the rules, and not a rule itself: the simulator checks it with the holds of all clients. The checker
// does not cover names with shared locks (shares.pml), or majorities while the set of masters changes.
package trace
