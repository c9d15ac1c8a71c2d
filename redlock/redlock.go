package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/sharding"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Locker acquires locks on the masters of one pool ([New]) or of several shards ([NewSharded]). For each shard it
// runs two goroutines, regardless of the number of locks: one finds out which masters may vote, one extends held
// locks. A third goroutine runs while there are log records or events of a [redlockinfo.Trace] to deliver. All methods
// are safe for concurrent use.
type Locker struct {
	shards []*shard
}

// New makes a Locker over the masters of p. It returns [ErrInvalid] if an option is out of range. It does not block,
// and needs no reachable master. The caller owns the pool: several Lockers may share it, and the caller must close it
// after all of them.
func New(p *pool.Pool, opts ...Option) (*Locker, error) {
	if p == nil {
		return nil, invalid("no masters: the pool is nil")
	}
	return newLocker([]*pool.Pool{p}, opts, p.Transport().Bucket().Of > 0)
}

// NewSharded makes a Locker that distributes names over several shards. A shard is a set of masters with its own pool;
// each name belongs to one shard, by rendezvous hashing. So capacity grows with the number of shards, and a shard
// without a quorum affects its own names only. The limit is 300 shards.
//
// All clients must name the same shards in the same order. The admission records of masters contain the number of
// their shard and the number of shards. A client with another number of shards, or another order, acquires nothing on
// these masters and gets [ErrMasterList], which shows both layouts and the command that replaces a stray record. The
// masters of new shards begin to vote only when one client has reached all masters of all shards, so all of them must
// be up at the very first start. docs/performance.md shows how to change the number of shards.
//
// For a cluster (redis+cluster://) pass the pools of [pool.OpenBuckets]: each of its buckets is a shard. Otherwise
// names, options and errors are those of New. NewSharded does not close the pools either.
func NewSharded(pools []*pool.Pool, opts ...Option) (*Locker, error) {
	return newLocker(pools, opts, true)
}

// inOrder returns the transports of the pools: by bucket in a cluster, otherwise in the order given.
func inOrder(pools []*pool.Pool) ([]*transport.Transport, error) {
	n := len(pools)
	if n == 0 || n > sharding.Most {
		return nil, invalid("the number of pools is %d: it must be from 1 to %d", n, sharding.Most)
	}
	ordered := make([]*transport.Transport, n)
	for at, p := range pools {
		if p == nil {
			return nil, invalid("the pool of shard %d is nil", at+1)
		}
		t := p.Transport()
		if b := t.Bucket(); b.Of > 0 {
			if b.Of != n {
				return nil, invalid("a pool is bucket %d of %d of a cluster, but %d pools are given", b.Number, b.Of, n)
			}
			at = b.Number - 1
		}
		if ordered[at] != nil || slices.Contains(ordered, t) {
			return nil, invalid("two shards have the same pool, or the same bucket of a cluster")
		}
		ordered[at] = t
	}
	return ordered, nil
}

// newLocker makes one shard for each pool. If sharded is set, it numbers and joins the shards, even a single one.
func newLocker(pools []*pool.Pool, opts []Option, sharded bool) (*Locker, error) {
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	ordered, err := inOrder(pools)
	switch {
	case err != nil:
		return nil, err
	case sharded && cfg.layout.Of > 0:
		return nil, invalid("WithShard excludes several shards")
	case len(cfg.sets) > 0 && len(cfg.sets) != len(pools):
		return nil, invalid("WithConfiguration has %d configurations, but there are %d shards: give one for each",
			len(cfg.sets), len(pools))
	}
	l := &Locker{}
	for i, t := range ordered {
		own := *cfg
		if sharded {
			own.layout = scripts.Shard{Number: i + 1, Of: len(ordered)}
		}
		if len(cfg.sets) > 0 && len(cfg.sets[i].Masters) > 0 {
			own.set = &cfg.sets[i]
		}
		own.prefix += t.Bucket().Tag()
		s, err := newShard(t, own)
		if err != nil {
			l.abandon()
			return nil, err
		}
		l.shards = append(l.shards, s)
	}
	//mutant:one-shard = len(pools) > 1
	if sharded {
		for _, s := range l.shards {
			s.joined = l.shards
			s.leases.Share(l.shards[0].leases)
		}
	}
	l.warn(cfg)
	for _, s := range l.shards {
		s.start()
	}
	return l, nil
}

// abandon ends the shards of a Locker that could not be made.
func (l *Locker) abandon() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range l.shards {
		s.start()
		_ = s.close(over) // the shard holds no locks
	}
}

// warn reports the risks of an allowed configuration to the log and the trace.
func (l *Locker) warn(cfg *config) {
	var known []string
	for i, s := range l.shards {
		c := s.voters.View().Config
		for _, m := range c.Order {
			known = append(known, s.pool.Addr(m))
		}
		if i == 0 || s.pool.Bucket().Of == 0 { // the warnings of the first bucket cover all buckets
			s.warnings = configWarnings(&s.cfg, c, s.pool)
		}
	}
	for _, name := range cfg.durable {
		if !slices.Contains(known, name) {
			l.shards[0].warnings = append(l.shards[0].warnings,
				fmt.Sprintf("redlock: WithDurableMasters: unknown master %q (have %q)", name, known))
		}
	}
	for _, s := range l.shards {
		for _, w := range s.warnings {
			s.events.Log(slog.LevelWarn, w)
			s.events.post(redlockinfo.Event{Kind: "warning", Err: errors.New(w)})
		}
	}
}

// of returns the shard of a name.
func (l *Locker) of(name string) *shard {
	if len(l.shards) == 1 {
		return l.shards[0]
	}
	return l.shards[sharding.Pick(name, len(l.shards))-1]
}

// each calls f for all shards concurrently, and joins the errors.
func (l *Locker) each(f func(i int, s *shard) error) error {
	if len(l.shards) == 1 {
		return f(0, l.shards[0])
	}
	return joinErrors(concurrently(len(l.shards), func(i int) error {
		s := l.shards[i]
		if err := f(i, s); err != nil {
			return fmt.Errorf("%s: %w", s.deployment(), err)
		}
		return nil
	})...)
}

// concurrently calls f with the numbers 0 to n-1 on goroutines, and returns the errors.
func concurrently(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// checkName returns an error if this shard cannot lock name.
func (l *shard) checkName(name string) error {
	if err := scripts.CheckName(name); err != nil {
		return invalid("%v", err)
	}
	if g := l.cfg.layout; g.Of > 0 && sharding.Pick(name, g.Of) != g.Number {
		return invalid("%.80q belongs to shard %d of %d, but this Locker has only shard %d",
			name, sharding.Pick(name, g.Of), g.Of, g.Number)
	}
	return nil
}

// Lock acquires the lock of name. It waits while another client holds it, and while no quorum of masters can be
// reached, until ctx ends, [WithWaitLimit] has expired, or its tries are used up ([WithRetry]). Calls without a bound
// of tries wait their turn, first behind the other calls of this Locker, then in the masters' queues. A call that
// gives up leaves the queues; on an unreachable master the entry expires 20 s after its last attempt.
//
// With a context that owns the name ([Lock.Context]) Lock re-enters the lock instead: one more Unlock is then needed.
// Of its options only the TTL and the retries apply; extension and maximum hold stay those of the outermost Lock.
//
// Errors: ErrInvalid before anything is sent; an error that wraps the error of ctx if ctx ended the wait, together
// with the last refusals of the masters; ErrHeld or ErrNoQuorum if the tries are used up; ErrTTLTooLong immediately if
// a quorum refuses the TTL; ErrLost, ErrReleased or ErrExported for a context whose lock has ended; ErrClosed. On
// failure nothing is held: what some masters granted is rolled back. A master that cannot be reached frees the name
// when the TTL has expired.
func (l *Locker) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, opts, true)
}

// take implements Lock and TryLock.
func (l *Locker) take(ctx context.Context, name string, opts []LockOption, wait bool) (*Lock, error) {
	k, requested := slotsIn(opts)
	if !requested {
		return l.of(name).take(ctx, name, scripts.Plain, opts, wait, nil)
	}
	s, err := l.newSlotCall(name, k, opts)
	if err != nil {
		return nil, err
	}
	op := opOf(scripts.Plain, wait)
	return l.of(name).events.acquiring(ctx, op, name, func(stats *lease.AcquireStats) (*Lock, error) {
		return s.acquire(ctx, wait, stats)
	})
}

// TryLock acquires the lock of name without waiting for another holder. It gets a free name only if no other client
// waits for it, and sends nothing if this Locker holds the name.
//
// Of any number of clients that call TryLock at one instant, one gets a free name. If the votes are split between them,
// so that no client has a majority, TryLock tries again after short random pauses, for at most half a second, or for
// [WithWaitLimit]. A new Locker also waits for masters that are still connecting, for at most one timeout of the pool.
//
// Errors are those of [Locker.Lock]. [ErrHeld] means that another lease has a majority of the masters; [ErrNoQuorum]
// that too few masters can vote, or that the votes stayed split.
//
// A Locker has a bounded number of attempts under way, 64 to 1024, fewer the longer their replies take. Beyond that
// Lock waits until ctx ends, and TryLock for ten times the timeout of the pool ([pool.WithTimeout]), 5 s by default;
// then TryLock fails with [ErrOverloaded].
func (l *Locker) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return l.take(ctx, name, opts, false)
}

// Do runs f while holding the lock of name. The context that f gets ends when the lock is lost, with the cause
// [ErrLost], and owns the name. A panic of f releases the lock.
//
// Do returns the error of f, joined with a [*LockError] of the Op "do" if the lock ended before f returned: ErrLost,
// or ErrClosed. If the lock could not be acquired, f does not run, and Do returns the error of Lock. So a LockError in
// the result is about this lock. Errors of this package that f returns are about other locks, so errors.Is and
// errors.As do not find them in the result, but its text includes theirs. A release that no quorum confirmed in time
// is not an error of Do: it is delivered in the background, logged and counted ([Stats.Unconfirmed]).
//
// ctx bounds the wait and the work. For work that must continue after the client of a request has gone, pass
// context.WithoutCancel(ctx) and [WithWaitLimit].
func (l *Locker) Do(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) error {
	return l.of(name).do(ctx, name, func(ctx context.Context) (*Lock, error) {
		return l.take(ctx, name, opts, true)
	}, f)
}

// TryDo runs f while holding the lock of name, as [Locker.Do] does, but does not wait for another holder: it acquires
// the lock as [Locker.TryLock] does. If it returns [ErrHeld], f has not run, and another client has the lock.
func (l *Locker) TryDo(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) error {
	return l.of(name).do(ctx, name, func(ctx context.Context) (*Lock, error) {
		return l.take(ctx, name, opts, false)
	}, f)
}

// LockAll acquires the locks of all names, or none. It waits as [Locker.Lock] does, and returns when all of them are
// held at the same time. Clients that lock the same names in any order never deadlock: names are sorted, and a client
// that waits for one holds only names that sort earlier.
//
// It attempts all names concurrently. If some are refused, it keeps the names before the first refused one, releases
// the others, and waits for the refused one; then it attempts the rest again. Repeated names are locked once. Names
// that ctx owns are re-entered. With a context of [Locks.Context], LockAll and Lock return [ErrInvalid] for a name
// that sorts before the last name of those Locks, since waiting for it could deadlock: lock all names with one
// LockAll, or use TryLock.
//
// The options apply to each name, the wait limit to all together; the maximum hold is measured from the moment at
// which all are held. Errors are those of Lock; its LockError names the name that could not be locked. On failure
// nothing is held, as with Lock.
func (l *Locker) LockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return l.takeAll(ctx, names, opts, true)
}

// TryLockAll acquires the locks of all names in one attempt each, or none, and does not wait for other holders. Errors
// are those of [Locker.TryLock] for the first name that was refused.
func (l *Locker) TryLockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return l.takeAll(ctx, names, opts, false)
}

// DoAll runs f while holding the locks of all names, as [Locker.Do] does for one. [TokenOf] returns the token of each.
func (l *Locker) DoAll(
	ctx context.Context, names []string, f func(ctx context.Context) error, opts ...LockOption,
) error {
	locks, err := l.LockAll(ctx, names, opts...)
	if err != nil {
		return err
	}
	err, lost := during(ctx, locks, f)
	return joinErrors(ofFunction(err), lost)
}

// RWLock returns the reader/writer lock of name. It sends nothing; the methods of the RWLock check the name.
func (l *Locker) RWLock(name string) *RWLock { return &RWLock{l.of(name), name} }

// Import takes over an exported lock, given the handle that [Lock.Export] returned: under a new id and with a larger
// token, on the masters that still have it. It needs a majority of voting masters, as Lock does, and restores the lock
// on the others. Of several imports of one handle at most one succeeds.
//
// Like [Locker.Lock] it retries until ctx ends or the tries are used up. Errors: ErrInvalid if text is not a handle of
// this prefix, before anything is sent; ErrLost if a majority no longer has the lock; the errors of Lock. On failure
// the imported lease is released.
func (l *Locker) Import(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	from, _ := parseHandle(text) // importLock reports the error
	return l.of(from.name).importLock(ctx, text, opts)
}

// Inspect reports the holder of name and its waiters. It is a snapshot for people and monitoring: it may be out of date
// when it is returned, and must not be used to decide whether something is safe to do. It waits for every master that
// can be reached, whether it votes or not, and writes nothing. If fewer than a quorum answered it returns ErrNoQuorum,
// or the error of ctx.
func (l *Locker) Inspect(ctx context.Context, name string) (redlockinfo.Inspection, error) {
	return operator{l.of(name)}.inspect(ctx, name)
}

// WaitReady waits until, in each shard, a majority of the masters can grant a lock, as [Locker.Healthy] reports it, and
// each master has answered or is known to be down. From then on a lock can be acquired unless another client holds it.
// Calling it is optional: a client that calls it at its start reports problems early, and a test that calls it has its
// locks on all masters. If ctx has ended, WaitReady reports whether a majority can grant a lock now.
//
// It returns [ErrNoQuorum] with the error of ctx and the reason of each master that grants nothing, or ErrClosed.
func (l *Locker) WaitReady(ctx context.Context) error {
	return l.each(func(_ int, s *shard) error { return s.waitReady(ctx) })
}

// Stats returns the counts of the Locker. It sends nothing and does not block.
func (l *Locker) Stats() Stats {
	sum := Stats{Held: []string{}, Waiting: map[string]int{}}
	for _, s := range l.shards {
		sum.add(s)
	}
	return sum
}

// Drain waits until no lock is held and no call is under way, and then closes the Locker as [Locker.Close] does.
//
// From now on new calls that acquire a lock return [ErrClosed]. Calls with a context of a lock that is held
// ([Lock.Context], or the context of a function of [Locker.Do]) still work, so that the work under way can finish, and
// calls that wait for a lock continue. [Locker.Lead] ends with its context: cancel that first. If ctx ends before all
// locks are released, Drain ends the remaining locks as Close does, and returns the error of ctx. Drain may be called
// more than once, and concurrently with Close.
func (l *Locker) Drain(ctx context.Context) error {
	for _, s := range l.shards {
		s.drains.Store(true)
		s.queue.StopLingering()
		s.leases.ReleaseIdle()
	}
	return l.each(func(_ int, s *shard) error { return s.drain(ctx) })
}

// Close also releases the locks of [Locker.Do] functions that are still running: their contexts end with the cause
// [ErrClosed], and another client may hold the name immediately. To shut down, stop the work first, and then close:
//
//	server.Shutdown(ctx) // or cancel the context of the work, and wait for it
//	locker.Drain(ctx)    // waits for the locks that are still held
//	pool.Close()
//
// Close releases all held locks immediately, and waits for the goroutines of the Locker to end. Waiting calls return
// ErrClosed.
//
// The releases are sent first, regardless of the state of ctx; those beyond half of the queue limit of the pool
// ([pool.WithQueueLimit]) follow as the masters answer. Then Close waits until each master has answered and the calls
// under way have returned. If ctx ends first, Close returns the error of ctx, and the remaining releases are delivered
// in the background. A second Close waits like the first. The pool stays open.
func (l *Locker) Close(ctx context.Context) error {
	return l.each(func(_ int, s *shard) error { return s.close(ctx) })
}
