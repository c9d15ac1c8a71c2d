// Package redlock provides a distributed lock over N independent Redis or Valkey masters. A client holds a lock while a
// majority of the masters has granted it and its validity lasts, so any minority may be dead, hung, slow or restarted.
//
//	locker, err := redlock.Open(urls)      // usually five masters
//	defer locker.Close()                   // releases what is still locked
//	lock, err := locker.Lock(ctx, "orders:42")
//	defer lock.Unlock(ctx)
//	ctx = lock.Context(ctx)                // ends when the lock is lost
//	write(ctx, lock.Token())               // the resource refuses a smaller token than it has seen
//
// The walkthroughs in verify/walkthroughs introduce the protocol, message by message. In this text a client is one
// [Locker]; a process may have several.
//
// # Five rules
//
//	1 only replies to scripts are votes, counted over all N masters; a wake-up makes a waiter try again, and is no vote
//	    internal/round/round.go         TestWakeUpsAreNotVotes
//	2 every message is safe to repeat; a master refuses a late message because of its ballot
//	    internal/scripts/acquire.lua    TestRepeatedMessageChangesNothing
//	3 tokens are ballots; the fence of a master is the largest ballot it has accepted, and it accepts only larger ones
//	    internal/ballot/propose.go      TestTokensGrowAfterDataLoss
//	4 a master that may have forgotten a lock does not vote until no earlier lock can be valid
//	    internal/admission/judge.go     TestMasterRestartedEmptyDoesNotVote
//	5 while its client runs, a holder learns of expiry before any master can grant the name again
//	    internal/lease/validity.go      TestLossIsReportedBeforeKeyExpires
//
// # How a lock is won
//
// Lock reads the clocks of its machine, then sends one script to all masters: "if no client has this name, no client
// waits before me, and my ballot is above your fence, grant me the name for the TTL". The ballot is the masters' time
// in microseconds, as this client estimates it. Each acquire carries a range of ballots: the first must be above the
// fence and becomes the token, the last becomes the fence, and the others are the tokens of local hand-offs. With five
// masters the third grant decides. The validity is the TTL less the drift and the time since Lock read the clocks. With
// less than half of the TTL left the attempt fails. A failed attempt is rolled back on every master that granted it or
// did not answer. Undelivered releases are queued, and sent first when the master is back. An acquire that arrives
// after its release is refused: its ballot is below the fence.
//
// # How a waiter gets the lock
//
// If several calls of a Locker wait for one name, one of them sends attempts, and the others wait behind it. The lock
// may be handed off between these calls without the masters, at most 32 times and for at most 100 ms. TryLock and calls
// with [WithTries] do not queue. Each master queues the waiting clients by priority, then by the masters' time of the
// call. A free name belongs to the first waiter that has not expired. When a release wakes this waiter, it has one
// second to acquire the lock. Wake-ups may be lost, so a waiter also tries again when the reported TTLs have expired,
// and every few seconds. A waiter may lose its turn if a round trip takes half a second or more.
//
// With [WithLinger] a lock stays with its Locker after the last Unlock if no call of the Locker waits for it, and the
// next call takes the lock over with the next token of its range. When a master refuses another client because of this
// lock, the script publishes a message to the inbox of the Locker, which releases the lock. Other messages make a
// holder check a lock after a forced release, or request a release ([Lock.ReleaseRequested]). Losing messages is safe.
//
// # How a lock is kept
//
// A held lock is extended every third of the TTL. A master that lacks the lock, because it lost data or was down, gets
// the lock back after a majority has confirmed it in a round. A master that has lost data since the round began gets
// nothing, because it may have forgotten a vote for another client; docs/protocol.md lists how a master proves that
// it has not. If the masters that still have the lock are no majority, the lock ends early. A restarted master
// counts as one without the lock until it confirms an extension, which is sent as soon as it is back. At each call,
// [Lock.Err] and the Err of its contexts compare the validity with clocks that include suspension.
//
// # Masters that restart
//
// A master that restarts empty could grant a name that is still held, and no client can see that. So each master has an
// admission record, which identifies the server process and states that no earlier lock can be valid. A master without
// a valid record is in quarantine for the max TTL of the deployment, at least 30 s. Unless [WithDurableMasters] lists
// the master, a restart makes its record invalid, even if all data was kept. A new master waits too, unless an operator
// who knows that no lock is held calls [Admin.Admit] (or: redlock admit). Restart masters one after the other: if a
// majority restarts before the first has confirmed a lock again, the lock ends with [ErrLost], except on durable ones.
//
// # Several names, leaders, readers, shards, semaphores
//
// [Locker.LockAll] acquires several names as one lock. [Locker.Lead] runs a function in one client at a time. A name of
// [Locker.RWLock] has many readers or one writer. [OpenSharded] distributes names over shards for more capacity.
// [Locker.Semaphore] admits k holders with k locks, one holder each. A counter of k on each master would be unsafe: the
// master that two majorities share may admit both, so k*N/(N/2+1) clients could hold the name (5 for k = 3, N = 5).
//
// # Limits
//
// A holder that is paused can write after another client has acquired its lock; no lock prevents that. Send
// [Lock.Token] with each write, and let the resource refuse a smaller token than it has seen.
//
// Wrong clocks of any minority of the masters, however wrong and whenever they jump, make no second holder, except as
// follows. Not tolerated: eviction or manual deletion of lock keys; a master's machine that is restored from a
// snapshot; an admission record that comes back without the locks while its server runs (FLUSHALL and RESTORE, DEBUG
// RELOAD, SWAPDB of a copy), unless it is one of the last eight that each client has read, and each client has since
// read another or found none; a majority of the masters of a shard that keep the records of an earlier number of
// shards, if a client still has that number; a master's clock that jumps by more than 15 s, and back again, before all
// clients have read the clocks twice (6 s); a majority of clocks that jump forward together; a wrong clock of a master
// that has reached maxmemory; correct clocks that differ by more than 15 s; two servers behind one name (DNS, virtual
// IP); a master that becomes a replica and a master again within one heartbeat (3 s) of an idle connection; clients
// with different max TTLs or timeouts; clients with different lists of masters during an outage (docs/operations.md);
// clocks that were far ahead and are set right, if masters then lose data; a virtual machine that is frozen and whose
// clock is set back within one validity; a process that is copied while it holds a lock. If both clocks of a client's
// machine stop, the masters' time shows that within 3 s. If the clocks of a majority of the masters are set back by d,
// the names of dead holders stay locked for d longer; redlock release --force helps. The order of waiters is best
// effort. See docs/protocol.md.
//
// # Inside: one lock, from Lock to the script and back
//
//	call     Locker.Lock                 redlock.go                     the shard of the name
//	         shard.take                  locker.go                      options, context, re-entry, trace
//	         Queue.Lock                  internal/waitqueue/contend.go  one loop: it sleeps, or makes an attempt
//	attempt  Manager.Acquire             internal/lease/acquire.go      a lease with new ballots, until it is decided
//	         Round.SendAll, Round.Reply  internal/round/round.go        acquire.lua on all masters; votes are counted
//	hold     Hold.Start                  internal/lease/acquire.go      it is live until its end: end.go, one table
//
//	redlock -> waitqueue -> lease -> round -> admission -> ballot -> quorum    above internal/transport and scripts
//	        -> monitor, reconfig -----------> admission    depguard in .golangci.yml has all permitted imports
package redlock
