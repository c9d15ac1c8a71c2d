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
// timer of this process, never from the network. Where eight holds and more are due within two milliseconds they share
// calls; one that such a call does not confirm is extended by itself at once.
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
// # Waiting
//
//	Lock ──► in line ──────────► contending ──────────────► holding
//	         (behind others       │ refused         ▲            │ last Unlock
//	          of this Locker)     ▼                 │ told       ├─► handed on to the next in line, or
//	             ▲             queued on each master ┘            ├─► the masters give the name to the first
//	             │                    ▲                           │   in their queues, and tell it
//	             └────────────────────┴───────────────────────────┘
//
// Of the goroutines of a Locker that want one name one contends. Refused, it opens the Locker's inbox, a channel on each
// master, and asks again with a ticket: its priority and the masters' time at its call. A master that refuses puts it in
// the queue of the name, with an offer: what its hold would be, and for how long a release may write it, a second at most. A
// release looks for the first waiter whose inbox somebody hears, and in one script writes its hold and tells it.
//
// This message is a vote. It counts where it says what the waiter's open round said to that very master: the hold, the
// ballot, and the marker by which the master is admitted, which begins with the master's identity. So it is the word of that
// master, not of a replica that repeats it, nor of a server that came back with an old queue; and of that round, whose start
// was read before any of its holds could be written. A release writes under the marker that its own connection expects, above
// the bar and inside the window, as an acquire does. Thus a majority of such votes has all that a majority of replies has, and
// what is left of the TTL since the start is what it would be: if that is too little, the hold is asked for again, by a new
// ballot and a new start, and the masters that have it say so. Late and repeated messages find another ballot or a vote that is
// counted. A hold that is given up is released on every master where it may be queued, which bars it there, and its id is not
// used again. A waiter that hangs within a second of its ask may so cost the others its TTL, once.
//
// Where a hold may not be written, since the offer is over, the ballot is not above the bar, or nobody knows what the master
// is admitted as, the name is reserved for the waiter for half a second; told by a quorum, it asks for what is reserved. A
// reservation is no hold and no vote: it keeps others out, and ends by itself. Word of it is a hint. A waiter that
// hears nothing looks again when the refused TTLs are over, when a subscription was lost and made anew, and every few
// seconds; one that cannot hear a quorum of masters polls.
//
// When the last Lock of a hold is unlocked and others of the same Locker stand in line, the hold may become the next
// one's without the masters. To that end an acquire reserves a block of ballots: its end is the bar, and each holder in
// turn has the next as its token.
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
// The guard time is raised while programs run, by [Locker.RaiseGuardTime], and lowered with nobody running. A master that
// its operator has named as one that remembers every write ([WithDurableMasters]) is admitted at once after a restart: its
// old marker is there, has another run id, and has its own address, so it is not a copy of another master's. Guard time and
// epoch stay what they were in it, as they would had it only been out of reach. [Locker.Check] shows all of this.
//
// # Changing the masters
//
// The masters of a fleet are changed while locks are held, by way of three explicit states ([Set]), never by a clock of a
// process:
//
//	epoch 0    the old set           a hold needs a majority of the old
//	epoch 1    both together         a hold needs a majority of each: to be taken, extended, imported, released
//	epoch 2    the next set          a hold needs a majority of the next
//
// Whoever goes by both meets, in the old masters, those who go by the old ones alone, and in the next, those who go by the
// next alone. What must not be is one of the first kind beside one of the last. Two things see to that, both on the masters.
// Their markers have an epoch, and grant nothing to, and extend nothing of, a program with an earlier one; so when a majority
// of the old masters has epoch 1, nobody takes or extends a lock by the old alone, whether he was told or not. And a
// program that goes by the next alone is granted nothing until their markers say that they may act alone. That is
// written ([Locker.FinishChange]) when a majority of the old masters has had the epoch, by their own clocks and without a
// break, for two guard times: one until the last lock of the old alone has ended, one until every new ballot is above all
// that the old masters have accepted, so that tokens go on growing where no master has seen both.
//
// A lock that was taken by the old masters alone is given to the next ones by its extension, as a master that has lost one
// is healed: a majority of one of the sets must have confirmed it in the same round. Its validity grows only by a round
// that has a majority of each.
//
// How a fleet is taken through it; each step is checked on the masters, and can be repeated:
//
//  1. Start the next masters, and admit them before anybody uses them (redlock admit; or wait for their quarantine), with
//     the guard time of the fleet.
//  2. Write {"epoch": 1, "masters": [old], "next": [next]} into the file that the programs follow ([WithConfigSource],
//     [FileSource]), or have each call [Locker.ChangeMasters]. Programs that start with it use [WithSet]. Until the next
//     step the way back is to start programs with the old file.
//  3. When all programs go by both: redlock set -raise FILE ([Locker.RaiseEpoch]). One that was forgotten is granted
//     nothing from here on, and says so (ErrOldMasters); its locks end with their validity.
//  4. redlock set -finish FILE waits until the change is complete, and lets the next masters act alone.
//  5. Write {"epoch": 2, "masters": [next]}. A program that gets it earlier stays with both, or, newly started, waits.
//  6. When all programs go by it: redlock set -raise FILE, which bars those that do not; then stop the old masters, for good:
//     an old master that comes back empty at its address could be admitted by a program with an old file.
//
// [Locker.Change] and redlock set FILE tell at any time how far it is. Epochs go on from there: the next change has 3 and 4.
// It needs the restart guard, whose markers have the epoch. A master whose quarantine began when too few others could be
// asked has the epoch of whoever began it: it is one more reason to stop old masters in the end.
//
// # What is not guaranteed
//
// Mutual exclusion alone does not protect a resource: a holder that is paused can write after its lock has passed to
// another, whatever the lock. Pass [Lock.Token] along and have the resource refuse a smaller token than it has seen.
// Eviction or deletion of lock keys on the masters, and a jump of a master's clock forward, are not survived; an
// eviction policy that can drop keys costs a master its vote. The order in which waiters get a lock is best effort: each
// master keeps a queue of its own.
// See the page of the Redis documentation on distributed locks
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), and both sides of the debate of 2016:
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html and http://antirez.com/news/101.
//
// # Inside
//
// The pure cores do no I/O and take the time as an argument: tally (votes), lease (validity), ballots (tokens), Delays
// (retry), nextMove (admission), lines (who stands behind whom), rule (which
// sets of masters decide). Around them: attempt and round (one acquire), waiter and
// inbox (a wait for the masters' word), hold (what is held), extending, many and schedule (extension, alone and
// together, and the timer of loss), guard (admission). Below is package pool, which sends a script to each
// master and hands back each vote as it comes. Nothing here blocks on the network but the one wait for a round's
// decision, and that ends with the caller's context.
package redlock
