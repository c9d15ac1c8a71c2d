// Package reconfig defines how a deployment changes its masters while locks are held. It is pure: no I/O, no clock, no
// lock.
//
//	epoch 0    the old set           a lock needs a majority of the old one
//	epoch 1    joint configuration   a lock needs a majority of each
//	epoch 2    the next set          a lock needs a majority of the next one
//
// and so on: an even epoch has one set, an odd one two. Clients at neighbouring epochs share a set, and two majorities
// of one set share a master. So two clients that are two epochs apart must not both acquire locks. The masters enforce
// this rule with two numbers in their admission records:
//
//	Epoch    the master refuses a client with a smaller epoch
//	Final    the largest epoch at which a single set may act alone; the master refuses a client with a single set and a
//	         larger epoch
//
// An operator raises these numbers when the records show that it is safe:
//
//	clients         records of the old masters              records of the next masters
//	0 -> 1
//	                Raise: epoch 1. Once a majority
//	                has it, no client acquires a lock
//	                with the old set alone.
//	                After a wait, all locks taken
//	                before have ended, and all new
//	                ballots are above all old ones.         Finish: final 2. The next set may act alone.
//	1 -> 2
//	                                                        Raise: epoch 2. Clients at epoch 1 are refused.
//
// A change can be cancelled as long as no majority of the next masters has final 2. Abort first writes epoch 2, with
// the list of the old masters, to a majority of the next masters. These masters must vote, and refuse Finish from then
// on. Abort then writes the same epoch and list to the old masters, with final 2.
//
// No clock of a client is used. The time for which a master has had its epoch is the difference between two readings of
// that master's clock. As long as a minority of a set has a wrong clock, the first one counts as no earlier than a time
// that some correct clock showed, and the second one as at most 15 s after such a time. While it is unknown which
// clocks of the old masters are right, because the others are down, no epoch is raised.
//
// A lock of the next set alone is extended and repaired only on masters with its final. If one of them loses its data,
// and with it this number, the majority that can abort the change has no vote until its quarantine has passed. By then
// the lock has ended, unless a majority still has the number, and then the change cannot be aborted.
package reconfig
