// Package redlock takes locks over N independent Redis or Valkey masters. A lock is held while a majority of the
// masters has granted it and its validity lasts, so any minority of them may be dead, hung, slow or restarted.
//
//	masters, err := pool.Dial(urls)        // usually five
//	locker, err := redlock.New(masters)
//	lock, err := locker.Lock(ctx, "orders:42")
//	defer lock.Unlock(ctx)
//	ctx = lock.Context(ctx)                // ends when the lock is lost
//	write(ctx, lock.Token())               // the resource refuses a smaller token than it has seen
//
// The shortest way to learn the protocol is by its hazards, told message by message: stories/testdata/H53.story first.
// A program means one [Locker] here: two Lockers in one process behave like two processes.
//
// # Five rules
//
// Everything follows from these.
//
//	1 votes are replies to scripts, counted over N; hints only make a waiter ask
//	    internal/round/round.go         TestVirtualHintsAreNotVotes
//	2 everything is safe to repeat; a late message is refused by its ballot
//	    ../internal/scripts/acquire.lua TestVirtualARepeatedMessageChangesNothing
//	3 tokens are ballots; each master keeps the largest ballot that it has accepted as its fence, and accepts only larger
//	    internal/ballot/propose.go      TestVirtualTokensGrowWhateverTheMastersForget
//	4 a master that may have forgotten does not vote until nothing from before can be alive
//	    internal/admission/judge.go     TestVirtualAMasterThatRestartsEmptyDoesNotVote
//	5 while its program runs, the holder is told by its own clocks before the masters can give the name away
//	    internal/grant/validity.go      TestVirtualTheLossIsHeardBeforeTheKeyIsGone
//
// # How a lock is won
//
// Lock notes what this machine's clocks say, then sends one script to all masters at once: "if nobody has this name,
// nobody waits before me, and my ballot is above your fence, it is mine for the TTL". The ballot is the masters' time
// in microseconds, as this program knows their clocks. Each ask has a block of ballots: the first must be above the
// fence and becomes the token, the last becomes the fence, and the others are the tokens of those to whom the lock is
// handed on. The third "granted" of five decides. The validity is the TTL less the time since before the script was
// sent, less the drift; if less than half of the TTL is left, the attempt has failed. A failed attempt is undone on
// every master that granted or did not answer. What cannot be delivered is owed to the master, which gets it first
// when it is back. An acquire that arrives after its own undoing finds a higher fence.
//
// # How a waiter gets it
//
// Of the calls of a Locker that wait for one name, one asks; the others stand behind it and cost the masters next to
// nothing. A lock may be handed on between them without the masters, for a bounded number of times and a bounded time:
// see [WithHandOn]. TryLock, and calls with [WithTries] or [WithBackoff], do not queue: each asks the masters.
// Between programs, each master keeps a queue: by priority, then by the masters' time of the call. A free name belongs
// to the first waiter that counts; a release sends it a hint, and it has one second to ask. Hints may be lost: a waiter
// also asks when the times it was told are over, and every few seconds. Where a round trip takes half a second or more,
// a waiter may lose its turn.
//
// # How it is kept
//
// A held lock is extended every third of the TTL. A master that lacks it, because it lost its data or was away, is
// given it back after a majority has confirmed it in the same round, unless it has lost data since that round began:
// it may have forgotten a vote for another client (internal/grant/doc.go lists what proves that it has not). A lock
// ends early when so many masters count as having lost it that the others are no majority. A master that was restarted
// counts so until it has confirmed the lock again; it is asked as soon as it is back. [Lock.Err] and the Err of its
// contexts compare with the clocks at each call; time for which the machine was suspended or frozen counts.
//
// # Masters that restart
//
// A master that restarts empty could grant a name that is still held, and nobody can see whether it is empty. So each
// has an admission record, which says which server it is, as it was started, and that nothing from before can be alive.
// A master without a valid one is in quarantine, for the guard time of the fleet and at least 30 s; then it votes
// again. It waits also where it has all its data, unless it is named by [WithDurableMasters]. New masters wait too,
// unless somebody who knows that nothing is held calls [Locker.AdmitNow] (or: redlock admit).
//
// Restart masters one after the other: if a majority restarts, with their data or without, before the first of them
// has confirmed a lock, that lock ends with [ErrLost]. Durable masters are the exception.
//
// # Several names, leaders, readers, groups, and no semaphore
//
// [Locker.LockAll] takes several names as one lock. [Locker.Lead] runs a function in one process at a time. A name
// of [Locker.Shared] has many readers or one writer. All masters see all locks, so more masters carry no more of them:
// [Spread] spreads names over several groups of masters. There is no lock for k holders, since up to k*N/(N/2+1)
// could hold it (5 for k = 3 and N = 5): take k names instead, as in the example of [Locker.TryLock].
//
// # What is not guaranteed
//
// A holder that is paused can write after its lock has passed to another; no lock prevents that. Send [Lock.Token]
// with each write and let the resource refuse a smaller one. Not tolerated: eviction or manual deletion of lock keys;
// a master's machine restored from a snapshot; a master's clock that jumps forward; two servers behind one name at one
// time (DNS, virtual IP); a master that becomes a replica and a master again within one heartbeat (3 s) of an idle
// connection; clients with unlike guard times or timeouts; clocks that were far ahead and are set right, after which
// masters lose data; a virtual machine that is frozen and whose wall clock is set back, within one validity. A machine
// that stops with both of its clocks learns of it from the masters, within 3 s. Order among waiters is best effort.
// Both sides of the 2016 debate: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html,
// antirez.com/news/101.
//
// # Inside
//
//	redlock -> queue -> grant -> round -> admission -> ballot -> quorum
//	        -> voters ----------> round
//	        -> reconfig -----------------> admission
//	        -> several, spread, dispatch       several names as one; groups of masters; the log and trace callbacks
//
// Below these stand pool and internal/scripts; internal/rooms has the whole list of who may import whom. Lock
// (locker.go) puts a call into the local queue (internal/queue/local.go). In its turn it asks (contend.go there), by a
// grant that proposes a ballot and sends a round (internal/grant/ask.go). Package pool writes it, and hands each reply
// back to the round, which counts it (internal/round/round.go).
package redlock
