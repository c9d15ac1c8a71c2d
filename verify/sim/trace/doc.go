// Package trace checks the masters of a simulated schedule against the transition rules of the specification
// (verify/spec). A schedule is a list of events: the calls that a master has executed, with their replies, losses of
// a master's data, changes of a master's incarnation, and the holds that clients begin. The checker derives its own
// state of the masters from the events alone. It shares only the parsing of admission records and the codes of
// replies with the scripts and the library.
//
//	rule        step of the specification              requirement
//	votes       redlock.pml, GRANTS; RECORD_IN_SCRIPT  only a voter grants, under the record that the call expects
//	free        redlock.pml, GRANTS                    the name is free, or has this lease
//	fence       redlock.pml, BALLOT_OK; FENCE          the first ballot is above all ballots that the master accepted
//	window      redlock.pml, RECENT; LIMIT_AHEAD       the ballots are within 15 s of the master's time
//	present     redlock.pml, CONFIRMS                  an extension is confirmed only for an existing lease
//	import      import.pml, REPLACEABLE                an import replaces only the lease of its handle
//	missing     redlock.pml, REPAIRABLE; ROUND_STAMP   the master reported the lease as missing under this record
//	token       redlock.pml, win; TOKEN_IS_FENCE       a majority has granted a range that contains the hold's token
//	quarantine  admission.pml, admit; QUARANTINE       a quarantine lasts for its full time on the master's clock
//	record      admission.pml, WRITE                   only a raise increases a voter's max TTL; no quarantine shrinks
//
// The events do not show whether a majority confirmed a lease before a repair (MAJORITY_FIRST). Mutual exclusion
// follows from the rules, but is not itself a rule: the simulator checks exclusion with the holds of all clients. The
// checker does not cover names of readers-writer locks (shares.pml), or majorities while the set of masters changes.
package trace
