// Package quorum decides rounds of votes. It does no I/O, and uses neither clocks nor mutexes.
//
// A lock is won, extended or confirmed by a majority of all N configured masters, including those that do not answer.
// While the masters are changed there are two sets, the old and the next, and a majority of each is needed (as in
// Raft's joint consensus). Two majorities of one set share a master, and every safety argument of this library relies
// on that. The types are:
//
//	Set      masters, as bits of their numbers in the pool
//	Rule     one or two sets of masters; a majority of each set must vote yes
//	Tally    the votes of one round, and their decision: pending, won, lost
//	Config   one state of the deployment's configuration: its epoch, its rule, its masters
package quorum
