// Package sim runs the library under faults, in virtual time, from a seed: thousands of schedules a minute, each of
// which can be run again and told in words.
//
// Package redlock, the pool and the connections' protocol are the real ones. The masters are in
// memory; what their scripts decide is package reference, which a test of package scripts holds against real servers.
// Between the two is a network that belongs to the simulator. All of it lives in a testing/synctest bubble.
//
//	workers ──► redlock ──► pool ──► conn ──► link (delays, cuts, holds back) ──► server ──► reference
//	   │                                                                            ▲
//	   │ spans, writes                                  faults ── agenda ─────────┘
//	   ▼
//	checks
//
// # One run
//
// draw makes a plan of the seed: how many masters and clients, which times, which faults at all and how often. The
// workers then lock, use, extend, re-enter, write, export, give back, change their minds, and sleep with their
// machines, while faults happen. At last the faults end, and what is left is looked at. See [Run], and the README
// beside this file for what is checked.
//
// # The same again
//
// Everything that is drawn comes from the seed: one source of numbers for the plan, one for the faults, one for each
// link and each worker, so that what one of them draws does not depend on the others. Everything that happens has an
// instant of its own: a whole microsecond and some nanoseconds that only its link, worker or cause has. So the order of
// things is in the seed too, as far as the runtime runs one thing at a time; the tests see to that by one processor for
// each process, and garbage that is collected between runs. A test compares stories.
//
// What the library draws by itself, pauses and identities, comes from the seed, too.
//
// # Walls
//
// agenda runs what is due, in one goroutine, with world.mu held. world.mu guards the network, the masters and the
// books, is held for moments only, and never while the library is called. Workers call the library without it.
//
// To add a fault: a constant and a case in faults.go, a weight in plan.go, an end in world.calm where it lasts. To add
// a protection that is taken out: its edits in protections_test.go.
package sim
