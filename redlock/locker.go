package redlock

import (
	"context"
	"fmt"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Locker acquires locks on the masters of a deployment. For each shard it runs two goroutines, regardless of the
// number of locks: one determines which masters may vote, the other extends held locks. Another goroutine runs while
// there are log records or events of a [redlockinfo.Trace] to deliver. All methods are safe for concurrent use.
//
// A program has one Locker, made by [Open]. At its start it may wait until a majority of the masters can grant a lock
// ([Locker.WaitReady]); its readiness probe calls [Locker.Healthy]. At its end it calls [Locker.Shutdown], which waits
// for running work, or [Locker.Close], which does not.
type Locker struct{ handle }

// handle gives the other packages of this module the clients of a Locker; see [client.SetOf].
type handle = client.Handle

// Open returns a Locker over the masters at the URLs; [pool.URL] describes the URLs. [WithPool] sets options of the
// connections. If one of the masters is a cluster (redis+cluster://), each bucket of the cluster is a shard: see
// [OpenSharded].
//
// Open does not block and needs no reachable master; the Locker connects in the background. It returns [ErrInvalid] if
// a URL or an option is invalid. [Locker.Close] and [Locker.Shutdown] close the connections.
//
// All clients must use the same masters: see [pool.Open].
func Open(urls []string, opts ...Option) (*Locker, error) { return open([][]string{urls}, opts, false) }

// OpenSharded returns a Locker that distributes names over several shards. A shard is a set of masters that are in no
// other shard; each name belongs to one shard, by rendezvous hashing. So capacity grows with the number of shards, and
// a shard without a quorum affects only its own names. The limit is 300 shards.
//
// All clients must name the same shards in the same order. The admission record of each master contains the number of
// its shard and the number of shards. A client with another number of shards, or another order, acquires nothing on
// these masters and gets [ErrMasterList]; the error shows both layouts, and the command that replaces a wrong record.
// The masters of new shards begin to vote only when one client has reached all masters of all shards, so at the very
// first start all masters must be up. docs/performance.md shows how to change the number of shards.
//
// Otherwise names, options and errors are those of [Open].
func OpenSharded(shards [][]string, opts ...Option) (*Locker, error) { return open(shards, opts, true) }

// open implements Open and OpenSharded.
func open(shards [][]string, opts []Option, sharded bool) (*Locker, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	var pools []*pool.Pool
	for i, urls := range shards {
		var more []*pool.Pool
		if more, err = pool.OpenBuckets(urls, poolOptions(cfg)...); err != nil {
			if err = client.Invalid("%w", err); len(shards) > 1 {
				err = fmt.Errorf("shard %d of %d: %w", i+1, len(shards), err)
			}
			break
		}
		pools = append(pools, more...)
	}
	if err == nil && len(pools) == len(shards) { // the buckets of a cluster have the same masters
		err = disjoint(pools)
	}
	var l *Locker
	if err == nil {
		l, err = newLocker(pools, cfg, sharded, true)
	}
	if err != nil {
		for _, p := range pools {
			_ = p.Close() // returns nil
		}
		return nil, err
	}
	return l, nil
}

// disjoint returns an error if a master is in two shards: its admission record has the number of one.
func disjoint(pools []*pool.Pool) error {
	shards := map[string]int{}
	for i, p := range pools {
		for m := range p.N() {
			if first, used := shards[p.Addr(m)]; used {
				return client.Invalid("master %s is in shard %d and in shard %d: a server votes in one shard only",
					p.Addr(m), first, i+1)
			}
			shards[p.Addr(m)] = i + 1
		}
	}
	return nil
}

// New returns a Locker over the masters of p, which several Lockers may share. [Open] makes a Locker with its own
// connections. New does not block and needs no reachable master. It returns [ErrInvalid] if an option is out of range,
// and for [WithPool]. The caller must close the pool after all its Lockers.
func New(p *pool.Pool, opts ...Option) (*Locker, error) { return over([]*pool.Pool{p}, opts, false) }

// NewSharded returns a Locker like that of [OpenSharded] over shared pools, one for each shard. For a cluster pass the
// pools of [pool.OpenBuckets]. As with New, the caller must close the pools.
func NewSharded(pools []*pool.Pool, opts ...Option) (*Locker, error) { return over(pools, opts, true) }

// over implements New and NewSharded.
func over(pools []*pool.Pool, opts []Option, sharded bool) (*Locker, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if cfg.Transport != nil {
		return nil, client.Invalid("WithPool: the pool exists already; give its options to pool.Open, or use redlock.Open")
	}
	return newLocker(pools, cfg, sharded, false)
}

// newLocker returns a Locker over the pools. Its Close closes them if owned is true.
func newLocker(pools []*pool.Pool, cfg *client.Config, sharded, owned bool) (*Locker, error) {
	connections := make([]*transport.Transport, len(pools))
	for i, p := range pools {
		if p != nil { // client.New refuses a nil pool
			connections[i] = transport.Of(p)
		}
	}
	s, err := client.New(connections, cfg, sharded, owned)
	if err != nil {
		return nil, err
	}
	return &Locker{s.Handle()}, nil
}

// Lock acquires the lock of name, which is UTF-8 of 1 to 65536 bytes. While another client holds it, or no quorum of
// masters can be reached, Lock waits until ctx ends, [WithWaitLimit] has expired, or the tries are used up
// ([WithTries]). Calls without WithTries queue, first behind the other calls of this Locker, then on the masters. A
// call that gives up leaves the queues; on an unreachable master its entry expires 20 s after its last attempt.
//
// With a context that owns the name ([Lock.Context]), Lock fails with [ErrReentry]. [WithReentry] re-enters the lock
// instead.
//
// Lock returns:
//
//   - ErrInvalid, before anything is sent;
//   - if ctx ended the wait, an error that wraps the error of ctx and the last refusals of the masters;
//   - ErrHeld or ErrNoQuorum if the tries are used up or the wait limit has expired;
//   - ErrMaxHold if the process was paused after the grant, and the [WithMaxHold] has passed;
//   - ErrTTLTooLong, immediately, if a quorum refuses the TTL;
//   - ErrKind, immediately, if a quorum knows the name as an [RWLock] or a [Semaphore];
//   - ErrReentry, immediately, if ctx owns the name by a lock that is held;
//   - ErrLost, ErrReleased or ErrExported, immediately, if ctx owns the name by a lock that has ended;
//   - ErrClosed.
//
// After an error nothing is held: grants of single masters are rolled back. A master that cannot be reached frees the
// name when the TTL has expired.
func (l *Locker) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.request(name, opts, true).lock(ctx)
}

// TryLock acquires the lock of name without waiting for another holder. It acquires a free name only if no other client
// waits for the name. If this Locker holds the name, TryLock sends nothing.
//
// If several clients call TryLock at the same time, their votes may be split, so that no client has a majority. TryLock
// then tries again after short random pauses, for at most half a second or [WithWaitLimit], in which one of them
// usually acquires the name. With a new Locker, TryLock first waits for masters that are still connecting, for at most
// one timeout of the pool.
//
// Errors are those of [Locker.Lock]. [ErrHeld] means that another lease has a majority of the masters. [ErrNoQuorum]
// means that too few masters can vote, that the votes stayed split, or that the masters keep the name for a waiter, for
// up to a second, which does not take it.
//
// The number of attempts under way is limited to between 64 and 1024 for each shard, fewer when replies take longer.
// Beyond the limit Lock waits until ctx ends. TryLock waits for ten times the timeout of the pool ([pool.WithTimeout]),
// 5 s by default, and then fails with [ErrOverloaded].
func (l *Locker) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.request(name, opts, false).lock(ctx)
}

// Do runs f while holding the lock of name. The context of f owns the name; if the lock is lost, the context ends with
// the cause [ErrLost]. Pass this context to everything that f calls, and send the token of lock with each write
// ([Lock.Token]). Do releases the lock when f returns or panics. f may release the lock earlier by Unlock, Export or
// Downgrade; its context ends then, and Do returns the error of f.
//
// Do returns the error of f. If the lock ended before f returned, Do joins a [*LockError] of the Op "do", which wraps
// ErrLost, ErrMaxHold or ErrClosed, with that error. If the lock could not be acquired, f does not run, and Do returns
// the error of Lock; [NotRun] reports that. errors.Is and errors.As also find the errors of this package that f
// returns, which are about other locks: errors.As finds the LockError of this Do first, and its Name tells them apart.
// A release that no quorum confirmed in time is not an error of Do: it is delivered in the background, logged and
// counted ([Stats.Unconfirmed]).
//
// ctx limits both the wait and the work. For work that must continue when the client of a request has gone, pass
// context.WithoutCancel(ctx) and [WithWaitLimit].
func (l *Locker) Do(
	ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return l.request(name, opts, true).do(ctx, f)
}

// TryDo runs f while holding the lock of name, as [Locker.Do] does, but acquires the lock as [Locker.TryLock] does,
// without waiting for another holder. If another client holds the name, f does not run, and TryDo returns [ErrHeld]:
//
//	if err := locker.TryDo(ctx, name, f); redlock.NotRun(err) && errors.Is(err, redlock.ErrHeld) { ... }
func (l *Locker) TryDo(
	ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return l.request(name, opts, false).do(ctx, f)
}

// LockAll acquires the locks of all names, or none. It waits as [Locker.Lock] does, and returns when all of them are
// held at the same time. Clients that lock the same names with LockAll, in any order, never deadlock: LockAll sorts the
// names, and while it waits for one name, it and its context hold only names that sort earlier.
//
// LockAll attempts all names concurrently. If some are refused, it keeps the names before the first refused name,
// releases the others, and waits for the refused name; then it attempts the rest again. Repeated names are locked once.
// If ctx owns one of the names, LockAll fails with [ErrReentry], or re-enters that lock: see [WithReentry]. LockAll
// returns [ErrInvalid] for a name that sorts before one that ctx owns, by whichever call (Lock, Do, Lead, an RWLock,
// ...), since waiting for this name could deadlock: lock all names with one LockAll, or use TryLockAll. If ctx comes
// from [Locks.Context], Lock and the other calls that wait return the same error. A Lock with the context of another
// Lock is not checked: a program that nests such calls must itself use the same order everywhere.
//
// The options apply to each name. The wait limit applies to the whole call, and the maximum hold begins when all names
// are held. Errors are those of Lock; the LockError names the name that could not be locked. After an error nothing is
// held, as with Lock.
func (l *Locker) LockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return l.lockAll(ctx, redlockinfo.OpLockAll, names, opts)
}

// TryLockAll acquires the locks of all names, or none, and does not wait for other holders. Errors are those of
// [Locker.TryLock] for the first name that was refused.
func (l *Locker) TryLockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return l.lockAll(ctx, redlockinfo.OpTryLockAll, names, opts)
}

// DoAll runs f while holding the locks of all names, as [Locker.Do] does for one name. [Locks.Of] returns the lock of
// one name.
func (l *Locker) DoAll(
	ctx context.Context, names []string, f func(ctx context.Context, locks *Locks) error, opts ...LockOption,
) error {
	if err := l.beginAll(ctx, redlockinfo.OpLockAll, names); err != nil {
		return notRun(err)
	}
	defer client.SetOf(l).Of(names[0]).End()
	if f == nil {
		return notRun(noFunction(names[0]))
	}
	locks, err := l.takeAll(ctx, redlockinfo.OpLockAll, names, opts)
	if err != nil {
		return notRun(err)
	}
	return afterRun(during(ctx, locks, f))
}

// RWLock returns the reader/writer lock of name. RWLock sends nothing; the methods of the result check the name.
func (l *Locker) RWLock(name string) *RWLock { return &RWLock{client.SetOf(l).Of(name), name} }

// Import takes over an exported lock. text is the handle that [Lock.Export] returned. The lock gets a new id and a
// larger token on the masters that still have it. Import needs a majority of voting masters, as Lock does, and restores
// the lock on the other masters. Of several imports of one handle at most one succeeds.
//
// Like [Locker.Lock], Import retries until ctx ends or the tries are used up. It returns ErrInvalid, before anything is
// sent, if text is not a handle of this prefix; ErrLost if a majority no longer has the lock; and the errors of Lock.
// After an error, Import releases the lock on all masters to which it was sent, because they may have it by now. So a
// later import of the handle usually fails, unless ctx had ended before the first one.
func (l *Locker) Import(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	handle, err := client.ReadHandle(text)
	r := l.request(handle.Name(), opts, true)
	r.Op, r.wrong = redlockinfo.OpImport, err
	r.take = func(c *client.Client, ctx context.Context, r client.Request) (*client.Lock, error) {
		return c.Import(ctx, handle, r)
	}
	return r.lock(ctx)
}

// Inspect returns the holder of name and its waiters. The result is a snapshot for people and monitoring: it may be out
// of date when it is returned, and must not be used to decide whether something is safe to do. Inspect waits for every
// master that can be reached, whether the master votes or not, and writes nothing. A name without a holder is free only
// if Free is set. If fewer than a quorum answered, Inspect returns ErrNoQuorum, or the error of ctx.
func (l *Locker) Inspect(ctx context.Context, name string) (redlockinfo.Inspection, error) {
	if err := client.CheckContext(ctx, redlockinfo.OpInspect, name); err != nil {
		return redlockinfo.Inspection{}, err
	}
	i, err := client.SetOf(l).Of(name).Inspect(ctx, name)
	return i, public(err)
}

// WaitReady waits until, in each shard, a majority of the masters can grant a lock (see [Locker.Healthy]), and each
// master has answered or is known to be down. From then on a lock can be acquired unless another client holds the name.
// Calling WaitReady is optional: a client that calls it at its start reports problems early, and a test that calls it
// acquires its locks on all masters. If ctx has already ended, WaitReady returns nil only if a majority can grant a
// lock now.
//
// WaitReady returns [ErrNoQuorum] with the error of ctx and the reason of each master that cannot grant a lock, or
// ErrClosed.
func (l *Locker) WaitReady(ctx context.Context) error {
	return client.SetOf(l).EachIn(ctx, redlockinfo.OpWaitReady, func(_ int, c *client.Client) error {
		return c.WaitReady(ctx)
	})
}

// Healthy returns nil if a majority of the masters can grant a lock. Otherwise it returns ErrNoQuorum with the reason
// of each master that cannot: the master is unreachable, in quarantine, has a wrong clock, or is failing, which means
// that it answers calls with an error, for lack of memory or permissions.
//
// Healthy uses the replies to the last acquires. If a master has granted no lock for 30 s, or is failing, Healthy locks
// and releases a probe name on all masters, and waits for one round trip; otherwise it sends nothing. It does not wait
// for masters to recover; [Locker.WaitReady] does. Other errors are the error of ctx, and ErrClosed.
func (l *Locker) Healthy(ctx context.Context) error {
	return client.SetOf(l).EachIn(ctx, redlockinfo.OpHealthy, func(_ int, c *client.Client) error {
		return c.Healthy(ctx)
	})
}

// Shutdown waits until no lock is held and no call is under way, in any shard, and then closes the Locker as
// [Locker.Close] does. If ctx ends first, Shutdown ends the remaining locks and calls as Close does, and returns the
// error of ctx, joined with that of Close if there is one.
//
// A call that began before Shutdown runs to its end, however many locks it still acquires; this includes the function
// of a [Locker.Do]. New calls that acquire a lock return [ErrClosed], unless their context owns a lock of the Locker
// ([Lock.Context], or the context of the function of a Do): so the work under way can finish. [Locker.Lead] does not
// end until its context ends: cancel that context first. A Shutdown within the function of a Do or Lead waits for that
// function, so until ctx ends: call it from elsewhere. Shutdown may be called more than once, and concurrently with
// Close, which ends it.
func (l *Locker) Shutdown(ctx context.Context) error { return client.SetOf(l).Shutdown(ctx) }

// Close releases all held locks immediately. Waiting calls return [ErrClosed]. Close also releases the locks of
// [Locker.Do] functions that are still running: their contexts end with the cause ErrClosed, and another client may
// acquire the name immediately. To let running work finish, call [Locker.Shutdown].
//
// Close sends the releases first; if there are many, the rest follows as the masters answer. Then Close waits until
// each master has answered, or is down because it was silent for the timeout of the pool ([pool.WithTimeout]), and
// until the calls and callbacks under way have returned. If for two such timeouts, a second by default, nothing is
// answered but a call or a callback does not return, Close gives up and returns an error.
//
// Then Close closes the connections of a Locker that [Open] or [OpenSharded] made. Releases that a master could not
// receive are dropped: that master frees the name after its TTL, so the name may stay locked for that time if such
// masters are no minority. A shared pool stays open and delivers such releases in the background. If a shared pool was
// closed before its Locker, no release was sent, and Close returns an error that says so.
//
// Close is safe to call more than once, and concurrently: each call waits like the first, and returns its result.
func (l *Locker) Close() error { return client.SetOf(l).Close() }
