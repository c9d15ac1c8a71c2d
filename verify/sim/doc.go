// Package sim runs the library under faults, in virtual time, from a seed: thousands of schedules a minute, each of
// which can be repeated and printed in words.
//
// Package redlock, the pool and the protocol of the connections are the real ones. The masters are in memory; package
// reference, which a test of package scripts compares with real servers, executes their scripts. The simulated network
// is between the two. Everything runs in a testing/synctest bubble.
//
//	workers --> redlock --> pool --> conn --> link (delays, cuts) --> server --> reference
//	   |                                                                            ^
//	   | spans, writes                                  faults -- agenda ---------+
//	   v
//	checks
//
// # One run
//
// draw makes a plan from the seed: the numbers of masters and clients, the durations, and which faults occur how often.
// The workers then lock, use, extend, re-enter, write, export, release, cancel, and sleep with their machines, while
// faults happen. At the end the faults stop, and the final state is checked. See [Run], and the README of this package
// for the checks.
//
// # Reproducibility
//
// Every random choice comes from the seed: one source of numbers for the plan, one for the faults, one for each link
// and each worker, so that the choices of one do not depend on the others. Pauses and identities that the library draws
// also come from the seed.
//
// Every event has its own instant: a whole microsecond plus some nanoseconds that are unique to its link, worker or
// cause. So the seed also determines the order of events, as long as the runtime runs one goroutine at a time. The
// tests ensure that with one processor per process, and with garbage collections between runs. A test compares the
// transcripts of repeated runs.
//
// # Concurrency
//
// agenda runs due functions, in one goroutine, with simulation.mu held. simulation.mu guards the network, the masters
// and the records of the run. It is held only briefly, and never while the library is called. Workers call the library
// without it.
//
// To add a fault: add a constant and a case in faults.go, a weight in plan.go, and its end in simulation.calm if it
// lasts. To add a mutant: see package mutants.
package sim
