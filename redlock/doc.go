// Package redlock takes locks over N independent Redis or Valkey masters. A lock is held while a majority of the
// masters has granted it and its validity lasts, so any minority of them may be dead, hung, slow or restarted.
//
//	masters, err := pool.Open(urls)        // usually five
//	locker, err := redlock.New(masters)
//	lock, err := locker.Lock(ctx, "orders:42")
//	defer lock.Unlock(ctx)
//	ctx = lock.Context(ctx)                // ends when the lock is lost
//	write(ctx, lock.Token())               // the resource refuses a smaller token than it has seen
//
// The hazards, message by message, are the quickest introduction to the protocol: start with
// verify/walkthroughs/testdata/H53.txt. In this text a client is one [Locker]: a process may have several.
//
// # Five rules
//
//	1 votes are replies to scripts, counted over N; a wake-up only makes a waiter try again
//	    internal/round/round.go         TestWakeUpsAreNotVotes
//	2 everything is safe to repeat; a late message is refused by its ballot
//	    ../internal/scripts/acquire.lua TestRepeatedMessageChangesNothing
//	3 tokens are ballots; each master keeps the largest ballot that it has accepted as its fence, and accepts only larger
//	    internal/ballot/propose.go      TestTokensGrowAfterDataLoss
//	4 a master that may have forgotten does not vote until no earlier lock can be valid
//	    internal/admission/judge.go     TestMasterRestartedEmptyDoesNotVote
//	5 while its client runs, a holder learns of expiry before any master can reassign the name
//	    internal/lease/validity.go      TestLossIsReportedBeforeKeyExpires
//
// # How a lock is won
//
// Lock reads the clocks of its machine, then sends one script to all masters: "if no client has this name, no client
// waits before me, and my ballot is above your fence, it is mine for the TTL". The ballot is the masters' time in
// microseconds, as this client estimates it. Each acquire carries a range of ballots: the first must be above the fence
// and becomes the token, the last becomes the fence, and the others are the tokens of local hand-offs. The third
// "granted" of five decides. The validity is the TTL less the drift and the time since before the script was sent. If
// less than half of the TTL is left, the attempt has failed, and is undone on every master that granted or did not
// answer. Undelivered releases are queued for a master and sent first when it is back. An acquire that arrives after
// its release is below the fence.
//
// # How a waiter gets it
//
// Of the calls of a Locker that wait for one name, one sends attempts; the others wait behind it and cost the masters
// next to nothing. A lock may be handed off between them without the masters, at most 32 times and for 100 ms. TryLock,
// and calls with [WithRetry], do not queue: each sends attempts of its own. Between clients, each master keeps a queue:
// by priority, then by the masters' time of the call. A free name belongs to the first waiter that has not expired;
// when a release wakes it, it has one second to acquire. Wake-ups may be lost: a waiter also tries again when the
// reported TTLs have expired, and every few seconds. If a round trip takes half a second or more, a waiter may lose its
// turn.
//
// With [WithLinger] a lock that no call waits for stays with its Locker after the last Unlock, and the next call takes
// it over with the next token of its range. When a master refuses another client because of this lock, the script
// publishes a message to the inbox of the Locker, which then releases it. Messages also make a holder check a lock that
// was released by force, and request a release ([ReleaseRequested]). A lost or false message endangers nothing.
//
// # How it is kept
//
// A held lock is extended every third of the TTL. A master that lacks the lock, because it lost its data or was down,
// gets it back after a majority has confirmed the lock in a round, unless the master has lost data since that round
// began: it may have forgotten a vote for another client (internal/lease/doc.go lists what proves that it has not). A
// lock ends early when so many masters have lost it that the others are no majority. A restarted master is treated as
// one that has lost the lock until it confirms it again, which the extension requests as soon as it is back. [Lock.Err]
// and the Err of its contexts compare the validity with the clocks at each call, including time of suspension.
//
// # Masters that restart
//
// A master that restarts empty could grant a name that is still held, and no client can see whether it is empty. So
// each has an admission record, which identifies the server process and states that no earlier lock can be valid.
// Without a valid record a master is in quarantine, for the max TTL of the deployment and at least 30 s, even if it has
// all its data, unless it is named by [WithDurableMasters]. New masters wait too, unless an operator who knows that
// nothing is held calls [Admin.Admit] (or: redlock admit). Restart masters one after the other: if a majority restarts
// before the first of them has confirmed a lock again, that lock ends with [ErrLost], except on durable masters.
//
// # Several names, leaders, readers, shards, slots
//
// [Locker.LockAll] takes several names as one lock. [Locker.Lead] runs a function in one process at a time. A name of
// [Locker.RWLock] has many readers or one writer. [NewSharded] distributes names over shards, since all masters see all
// locks. [WithSlots] admits k holders with k locks, one holder each. A counter of k on each master would be unsafe: the
// master that two majorities share may admit both, so k*N/(N/2+1) clients could hold the name (5 for k = 3, N = 5).
//
// # Limits
//
// A holder that is paused can write after another client has acquired its lock; no lock prevents that. Send
// [Lock.Token] with each write and let the resource refuse a smaller one. Not tolerated: eviction or manual deletion of
// lock keys; a master's machine restored from a snapshot; a master's clock that jumps forward; two servers behind one
// name (DNS, virtual IP); a master that becomes a replica and a master again within one heartbeat (3 s) of an idle
// connection; clients with different max TTLs or timeouts; clients with different lists of masters during an outage
// (docs/operations.md); clocks that were far ahead and are set right, after which masters lose data; a virtual machine
// that is frozen and whose clock is set back within one validity; a process copied while it holds a lock. If both
// clocks of a machine stop, the masters show it in 3 s. Order of waiters is best effort. See docs/protocol.md.
//
// # Inside: one lock, from Lock to the script and back
//
//	call     Locker.Lock, Locker.take    redlock.go                     the shard of the name, or its slots
//	         shard.take                  locker.go                      options, context, re-entry, trace
//	         Queue.Lock                  internal/waitqueue/contend.go  one loop: it sleeps, or makes an attempt
//	attempt  Manager.Acquire             internal/lease/acquire.go      a lease with new ballots, until it is decided
//	         Round.SendAll, Round.Reply  internal/round/round.go        acquire.lua on all masters; votes are counted
//	hold     Hold.Start                  internal/lease/acquire.go      it is live until its end: end.go, one table
//
//	redlock -> waitqueue -> lease -> round -> admission -> ballot -> quorum    above internal/transport and scripts
//	        -> monitor, reconfig -----------> admission    depguard in .golangci.yml has all permitted imports
package redlock
