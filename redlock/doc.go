// Package redlock is a lock over N independent Redis or Valkey masters, typically five, with no replication between
// them. A program holds a lock while a majority of the masters hold its key.
//
//	masters, err := pool.Dial([]string{"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", ...})
//	locker, err := redlock.New(masters)
//	lock, err := locker.Lock(ctx, "orders:42")
//	defer lock.Unlock(ctx)
//	ctx = lock.Context(ctx) // ends when the lock is lost; carries ownership
//	db.Exec("update ... where fence <= ?", lock.Token())
//
// # The safety rule
//
// A lock is good while
//
//	now < start + TTL - drift(TTL),   drift(TTL) = TTL * 0.01 + 2 ms
//
// where start was read before the first byte of the round that a majority answered. Each of that majority keeps the key
// for at least TTL after it has read the message, which is after start, and any two majorities share a master. So no
// other hold can have a majority before that, as long as no master forgets, and clocks run at the same rate within the
// drift. A master that may have forgotten does not vote; see the restart guard. [clock.Clock] counts suspended time.
//
// # One hold, from its first message to its last
//
//	          quorum grants, validity left              last Unlock
//	trying ------------------------------------> live -------------> released
//	  |                                           |  \-- Export ---> handed on
//	  | no quorum, too late, ctx ended            |
//	  v                                           v  validity over, majority "not mine", MaxHold, Close
//	rolled back                                 lost
//
// Trying is one attempt: a round with a ballot to all masters, and up to two more at once with a better ballot where
// the first was refused for its ballot alone. It is decided by the vote that makes a majority, or makes one impossible;
// later votes are booked as they come. A failed attempt sends the release to every master that granted or whose answer
// is not known. What cannot be delivered is owed to the master by the pool, and paid first thing when it is back.
//
// A live hold is extended every third of its TTL. An extension that fails changes nothing and is tried again. One that
// a majority confirmed also gives the lock back to masters that had lost it. The end of the validity is heard from a
// timer of this process, never from the network.
//
// # Ballots, bars, tokens
//
// Each attempt carries a ballot, the masters' time in microseconds. A master accepts it only above the bar of the name,
// the largest ballot that it has accepted or been told is dead, and then the bar is that ballot. This one number is the
// fencing token, since a later majority shares a master with an earlier one and so has a larger ballot; and the
// tombstone, since releasing a hold that a master does not have raises the bar, so that the acquire is refused if it
// comes after its own release. Ballots more than half of the guard time from the master's clock are refused, so tokens
// keep growing when bars have expired or were forgotten.
//
// # The restart guard
//
// A master that restarts empty could vote twice within one TTL. So it votes only while a marker, one value on it, says
// that this very server (its run id and replication id, read on each connection and on its heartbeat) has forgotten
// nothing for at least the guard time, the longest TTL anyone in the fleet may use. Without such a marker it is in
// quarantine first: any client starts that, and any client ends it, once the clocks of a quorum can be compared. It lasts
// for the guard time, as the markers of enough others tell it; where too many have forgotten or cannot be asked, for five
// minutes. New masters have no marker: the first lock on them waits 30 s, unless someone who knows that nothing is held
// calls [Locker.AdmitNow].
//
// # What is not guaranteed
//
// Mutual exclusion alone does not protect a resource: a holder that is paused can write after its lock has passed to
// another, whatever the lock. Pass [Lock.Token] along and have the resource refuse a smaller token than it has seen.
// Eviction or deletion of lock keys on the masters, and a jump of a master's clock forward, are not survived; an
// eviction policy that can drop keys costs a master its vote. The order in which waiters get a lock is not promised.
// See the page of the Redis documentation on distributed locks
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), and both sides of the debate of 2016:
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html and http://antirez.com/news/101.
//
// # Inside
//
// The pure cores do no I/O and take the time as an argument: tally (votes), lease (validity), ballots (tokens), Delays
// (retry), nextMove (admission). Around them: attempt and round (one acquire), hold (what is held), extending and
// schedule (extension and the timer of loss), guard (admission). Below is package pool, which sends a script to each
// master and hands back each vote as it comes. Nothing here blocks on the network but the one wait for a round's
// decision, and that ends with the caller's context.
package redlock
