// Package redlock provides a distributed lock over N independent Redis or Valkey masters. A client holds a lock while a
// majority of the masters has granted it and its validity lasts, so any minority may be dead, hung, slow or restarted.
//
//	locker, err := redlock.Open(urls)      // usually five masters; one Locker for all goroutines of the program
//	defer locker.Close()                   // releases what is still locked
//	err = locker.Do(ctx, "orders:42", func(ctx context.Context, lock *redlock.Lock) error {
//		return pay(ctx, lock.Token())      // ctx ends when the lock is lost
//	})
//
// In this text a client is one [Locker]; a process may have several.
//
// # What Do does
//
// [Locker.Do] waits while another client holds the name, until its context or [WithWaitLimit] ends; [Locker.TryDo] does
// not wait. Meanwhile the function runs, the lock is extended in the background, so a lock may be held for longer than
// its TTL, which is 10 s by default. The context of the function ends when the lock is lost: pass it on, and stop the
// work when it ends. A panic of the function releases the lock. [Locker.Lock] and [Locker.TryLock] return the [Lock],
// which the caller must unlock.
//
// A holder that is paused can write after another client has acquired its lock; no lock prevents that. So send
// [Lock.Token] with each write, and let the resource refuse a smaller token than it has seen. Each holder has a larger
// token than all holders of the name before it, except that readers, and holders of different slots of a semaphore,
// have no order among themselves.
//
// A call whose context owns the name already fails with [ErrReentry], unless [WithReentry] asks for a re-entry.
//
// # Errors
//
// A call that the masters did not grant fails with a [*LockError]: it names the call, the lock, its holder and the
// masters that failed. [errors.Is] finds the outcome of any call:
//
//	ErrHeld         another client has the name: RetryAfter says when to try again
//	ErrNoQuorum     too few masters answer, or may vote: try again later
//	ErrLost         the lock ended before its release: the function ran, and its context ended with this cause
//	ErrClosed       the Locker is closed
//	ErrInvalid, ErrKind, ErrReentry, ErrTTLTooLong, ErrMasterList: the call or the settings are wrong
//
// [NotRun] reports that the function of a Do did not run, and [RetryAfter] how long to wait. The errors of the context
// and of the function are found, too. docs/guide.md has a table with HTTP statuses and log levels.
//
// # From start to end
//
// [Open] does not block and needs no master. [Locker.WaitReady] waits at the start of a program; [Locker.Healthy] is
// for a readiness probe. New masters, and masters that have restarted, do not vote for the max TTL of the deployment,
// at least 30 s, because they may have forgotten a lock; for new masters an operator may end that by Admin.Admit of
// package admin, or by the command redlock admit. Restart masters one after the other: if a majority restarts before
// the first has confirmed a lock again, the lock ends with ErrLost, except on masters of [WithDurableMasters].
// [Locker.Shutdown] waits for the work under way, and [Locker.Close] ends it.
//
// # Several names, leaders, readers, semaphores, shards
//
// [Locker.LockAll] acquires several names as one lock. [Locker.Lead] runs a function in one client at a time. A name of
// [Locker.RWLock] has many readers or one writer. [Locker.Semaphore] admits k holders. [OpenSharded] distributes names
// over shards for more capacity.
//
// # Limits
//
// Wrong clocks of any minority of the masters make no second holder, however wrong they are and whenever they jump.
// What can make one:
//
//   - lock keys that are evicted or deleted by hand, a master's machine that is restored from a snapshot, or an
//     admission record that comes back without the locks while its server runs;
//   - a clock that jumps by more than 15 s, and back again before all clients have read it twice (6 s), or the clocks
//     of a majority that jump forward together;
//   - clients with other max TTLs, or with other masters during an outage (docs/change.md), and two servers behind one
//     name (DNS, virtual IP);
//   - a process that is copied while it holds a lock, or a machine that is frozen and whose clock is set back.
//
// If the clocks of a majority are set back by d, the names of dead holders stay locked for d longer; redlock release
// --force helps. The order of waiters is best effort. docs/protocol.md has the whole list under "Limits", the protocol,
// the argument for its safety, and what each message must prove.
package redlock
