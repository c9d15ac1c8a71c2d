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
//
// # Five rules
//
// Everything follows from these.
//
//	1 votes are replies to scripts, counted over N; hints only make a waiter ask
//	    internal/round/round.go         TestVirtualHintsAreNotVotes
//	2 everything is safe to repeat; a late message is refused by its ballot
//	    ../internal/scripts/acquire.lua TestVirtualARepeatedMessageChangesNothing
//	3 the ballot that won is the fencing token; each master keeps the largest as its fence and accepts only larger ones
//	    internal/ballot/propose.go      TestVirtualTokensGrowWhateverTheMastersForget
//	4 a master that may have forgotten does not vote until nothing from before can be alive
//	    internal/admission/judge.go     TestVirtualAMasterThatRestartsEmptyDoesNotVote
//	5 the holder is told by its own clocks, before the masters can give the name away
//	    internal/grant/validity.go      TestVirtualTheLossIsHeardBeforeTheKeyIsGone
//
// # How a lock is won
//
// Lock reads the clocks, then sends one script to all masters at once: "if nobody has this name, nobody waits before
// me, and this ballot is above your fence, it is mine for the TTL". The ballot is the masters' own time in
// microseconds. The third "granted" of five decides. The validity is the TTL less the time since before the script
// was sent, less the drift; if less than half of the TTL is left, the attempt has failed. A failed attempt is undone on
// every master that granted or did not answer. What cannot be delivered is owed to the master, which gets it first
// when it is back. An acquire that arrives after its own undoing finds a higher fence.
//
// # How a waiter gets it
//
// Of the goroutines of a Locker that want one name, one asks; the others stand behind it and cost the masters
// nothing. A lock may pass between them without the masters, a bounded number of times. Between programs, each master
// keeps a queue: by priority, then by the masters' time of the call. A free name belongs to the first waiter that
// counts; a release sends it a hint, and it has one second to ask. Hints may be lost: a waiter also asks when the
// times it was told are over, and every few seconds. A round trip of half a second and more makes a waiter lose its
// second.
//
// # How it is kept
//
// A held lock is extended every third of the TTL. A master that lacks it, because it restarted or was away, is given
// it back after a majority has confirmed it in the same round. A lock ends early when so many masters have lost it
// that the others are no majority. [Lock.Err] and the Err of its contexts compare with the clocks at each call; time
// for which the machine was suspended or frozen counts.
//
// # Masters that restart
//
// A master that restarts empty could grant a name that is still held. So each has an admission record, which says
// which server it is and that nothing from before can be alive. A master without a valid one is in quarantine, for
// the guard time of the fleet and at least 30 s; then it votes again. New masters wait so too, unless somebody who
// knows that nothing is held calls [Locker.AdmitNow] (or: redlock admit).
//
// # What is not guaranteed
//
// A holder that is paused can write after its lock has passed to another; no lock prevents that. Send [Lock.Token]
// with each write and let the resource refuse a smaller one. Not survived either: lock keys that are evicted or
// deleted by hand; a master that is set back as a machine (a snapshot of a virtual machine); a master's clock that
// jumps forward; a holder's wall clock that is set back if its virtual machine is frozen within the same validity;
// two servers behind one name at one time (DNS, virtual IP), where both may grant; a master that is made a replica
// and a master again within one heartbeat (3 s) of an idle connection; a program with a smaller guard time than its
// fleet, if a majority of the masters lose their data at once; all clocks far ahead, then set right, and after that
// masters that lose their data. Order among waiters is best effort: each master keeps its own queue. See the Redis
// page on distributed locks (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/) and both sides
// of the debate of 2016: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html and
// http://antirez.com/news/101.
//
// # Inside
//
//	redlock -> queue -> grant -> round -> admission -> ballot -> quorum
//	        -> voters ----------> round
//	        -> reconfig -----------------> admission
//
// Each room begins with its documentation. Lock (locker.go) puts a call into the local queue (internal/queue/local.go).
// In its turn it asks (contend.go there), by a grant that proposes a ballot and sends a round (internal/grant/ask.go).
// Package pool writes it, and hands each reply back to the round, which counts it (internal/round/round.go).
package redlock
