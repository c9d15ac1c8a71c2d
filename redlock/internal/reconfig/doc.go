// Package reconfig defines how a deployment changes its masters while locks are held. It is pure: no I/O, no clock, no
// lock.
//
//	epoch 0    the old set           a lock needs a majority of the old one
//	epoch 1    joint configuration   a lock needs a majority of each
//	epoch 2    the next set          a lock needs a majority of the next one
//
// and so on: an even epoch has one set, an odd one two. Clients at neighbouring epochs share a set, and two majorities
// of one set share a master. So two clients that are two epochs apart must not both acquire locks. The masters ensure
// that. Their admission records have two numbers:
//
//	Epoch    a client with a smaller epoch is refused here
//	Alone    the largest epoch whose configuration is final; a client with a later single set is refused here
//
// An operator raises them when the masters show that it is safe:
//
//	clients         records of the old masters              records of the next masters
//	0 -> 1
//	                Raise: epoch 1. Once a majority
//	                has it, no client acquires a lock
//	                with the old set alone.
//	                Held long enough: locks taken
//	                before have ended, and all new
//	                ballots are above all old ones.         Finish: alone 2. The next set may act alone.
//	1 -> 2
//	                                                        Raise: epoch 2. Clients at epoch 1 are refused.
//
// A change can be given up as long as no majority of the next masters has alone 2. Abort writes epoch 2 with the list
// of the old masters. It writes first to a majority of the next masters that votes; these then refuse Finish. Then it
// writes to the old masters, with alone 2.
//
// The clock of a process is not used. How long a master has had its epoch is the difference of two readings of its own
// clock.
package reconfig
