// Package sim runs the library under faults, in virtual time. A seed determines each run, so a run can be repeated
// and printed as text. Package sim runs thousands of schedules a minute.
//
// Package redlock, the pool and the protocol of the connections are production code. The masters are in memory: package
// reference executes their scripts, and a test of package scripts compares this package with real servers. The pool and
// the masters communicate over a simulated network. Everything runs in a testing/synctest bubble.
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
// Then the workers acquire, use, extend, re-enter, export and release locks, write to a resource, cancel calls, and are
// suspended with their machines, while faults happen. At the end the faults stop, and the final state is checked. See
// [Run], and the README of this package for the checks.
//
// # Reproducibility
//
// Every random choice comes from the seed. The plan, the faults, each link and each worker have their own sources of
// random numbers, so their choices do not depend on one another. The random pauses and ids of the library come from the
// seed, too.
//
// Every event has its own instant: a whole microsecond plus some nanoseconds that are unique to its link, worker or
// cause. So the seed also determines the order of events, as long as the runtime runs one goroutine at a time.
// Therefore the tests use one processor per process, and collect garbage only between runs. A test compares the
// transcripts of repeated runs.
//
// # Concurrency
//
// The agenda runs due functions, in one goroutine, with simulation.mu locked. simulation.mu guards the network, the
// masters and the records of the run. It is locked only briefly, and never while a worker calls the library.
//
// # Clocks that jump
//
// In runs of the kind jumps, the clocks of a minority of the masters jump at the worst instants: see jumps.go. These
// runs have sources of random numbers of their own, and only every fortieth seed is of this kind, so that all other
// seeds have the runs that they had before.
//
// To add a fault: add a constant and a case in faults.go and a weight in plan.go, and, if the fault lasts, end it in
// simulation.calm. To add a mutant: see package mutants.
package sim
