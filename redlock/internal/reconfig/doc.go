// Package reconfig says how a fleet changes its masters while locks are held. It is pure: no I/O, no clock, no lock.
//
//	epoch 0    the old set           a lock needs a majority of the old one
//	epoch 1    both together         a lock needs a majority of each
//	epoch 2    the next set          a lock needs a majority of the next one
//
// and so on: an even epoch has one set, an odd one two. Programs that go by two neighbouring epochs share a set, and
// two majorities of one set share a master. So no two programs may be two epochs apart and both take locks. The
// masters see to that. Their admission records have two numbers:
//
//	Epoch    a program with a smaller epoch is refused here
//	Alone    the largest epoch whose set may act alone; a program that goes by a later single set is refused here
//
// An operator raises them, when the masters show that it is safe:
//
//	programs        records of the old masters              records of the next masters
//	0 -> 1
//	                Raise: epoch 1. From when a majority
//	                has it, nobody takes a lock by the
//	                old set alone.
//	                Held long enough: what was taken
//	                before has ended, and all new ballots
//	                are above all old ones.                 Finish: alone 2. The next set may act alone.
//	1 -> 2
//	                                                        Raise: epoch 2. Programs of epoch 1 are refused.
//
// Nothing here goes by the clock of a process. How long a master has had its epoch is the difference of two readings
// of its own clock.
package reconfig
