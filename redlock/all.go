package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// errOrder is returned if the requested name sorts before one that the context owns: for LockAll, by any lock; for a
// call that waits for one name, by LockAll. Without this rule, LockAll calls of several clients could wait for each
// other forever. Nothing was sent.
var errOrder = misuse("redlock: the name sorts before one that this context holds, " +
	"so waiting for it could deadlock: lock all of them with one LockAll, or use TryLock or TryLockAll")

// Locks is the result of LockAll: one lock for each name. All methods are safe for concurrent use.
type Locks struct {
	locks []*Lock // sorted by name, without duplicates
}

// Of returns the lock of name, or nil if name is not one of the names that were locked.
func (s *Locks) Of(name string) *Lock {
	i, ok := slices.BinarySearchFunc(s.locks, name, func(k *Lock, name string) int { return cmp.Compare(k.Name(), name) })
	if !ok {
		return nil
	}
	return s.locks[i]
}

// finish implements held.
func (s *Locks) finish(ctx context.Context) error {
	return s.each(func(k *Lock) error { return k.finish(ctx) })
}

// beginAll is like shard.beginWork, for a call with several names.
func (l *Locker) beginAll(ctx context.Context, names []string, wait bool) error {
	if len(names) == 0 {
		return invalid("no names: LockAll needs at least one")
	}
	return l.of(names[0]).beginWork(ctx, opOf(scripts.Plain, wait), names[0])
}

// lockAll implements LockAll and TryLockAll.
func (l *Locker) lockAll(ctx context.Context, names []string, opts []LockOption, wait bool) (*Locks, error) {
	if err := l.beginAll(ctx, names, wait); err != nil {
		return nil, err
	}
	defer l.shards[0].endWork()
	return l.takeAll(ctx, names, opts, wait)
}

// takeAll acquires the locks of all names, for a call that has begun. It uses the default options of the first name's
// shard; those of all shards are equal.
func (l *Locker) takeAll(ctx context.Context, names []string, opts []LockOption, wait bool) (*Locks, error) {
	first := l.of(names[0])
	cfg, err := first.cfg.lock.with(opts, &first.cfg)
	if err != nil {
		return nil, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if err := l.of(name).checkName(name); err != nil {
			return nil, err
		}
		if wait && lease.AllOutOfOrder(ctx, l.of(name).leases, name) {
			return nil, lockError("lock", name, errOrder)
		}
	}
	caller := ctx
	ctx, cancel := cfg.limited(caller)
	defer cancel()
	// ctx already carries the wait limit. While the call waits for one name, the locks of the others must be extended, and
	// their maximum hold must not begin.
	opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) { c.waitLimit = 0 }), WithExtension(true),
		WithMaxHold(0), WithLinger(0))
	take := func(name string, wait bool) (*Lock, error) {
		return l.of(name).take(ctx, name, scripts.Plain, opts, wait, nil)
	}
	for {
		locks, err := takeTogether(names, wait, take)
		if err != nil {
			return nil, waited(caller, ctx, err)
		}
		s := &Locks{locks}
		if err = s.settle(ctx, cfg); err == nil {
			return s, nil
		}
		dropAll(locks)
		if !wait || ctx.Err() != nil {
			return nil, waited(caller, ctx, err)
		}
		_ = first.rest(ctx, shortestPause) // ignore the error: the next try fails with it
	}
}

// A taker acquires the lock of one name.
type taker func(name string, wait bool) (*Lock, error)

// takeTogether acquires the locks of all names, or none. It tries all names concurrently. If some are refused, it keeps
// the locks of the names before the first refused name, releases the other locks, waits for the lock of the refused
// name, and then tries the remaining names again. If a lock is lost during the wait, takeTogether acquires that lock
// and all locks after it again. If wait is false, it fails at the first refusal. If take panics, it releases all locks.
func takeTogether(names []string, wait bool, take taker) (all []*Lock, err error) {
	var held []*Lock
	defer func() {
		if len(all) < len(names) {
			dropAll(held)
		}
	}()
	for {
		if lost := slices.IndexFunc(held, func(k *Lock) bool { return k.Remaining() <= 0 }); lost >= 0 {
			dropAll(held[lost:])
			held = held[:lost]
		}
		if len(held) == len(names) {
			return held, nil
		}
		if held, err = takeFree(held, names[len(held):], take); err != nil && wait {
			var k *Lock
			if k, err = take(names[len(held)], true); err == nil {
				held = append(held, k)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// takeFree tries to lock each of the missing names. It returns held with the new locks before the first refused name,
// and the error of that refusal. It releases the locks after the refused name.
func takeFree(held []*Lock, missing []string, take taker) ([]*Lock, error) {
	got := make([]*Lock, len(missing))
	errs := concurrently(len(missing), func(i int) (err error) {
		got[i], err = take(missing[i], false)
		return err
	})
	refused := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if refused < 0 {
		return append(held, got...), nil
	}
	dropAll(slices.DeleteFunc(got[refused:], func(k *Lock) bool { return k == nil }))
	return append(held, got[:refused]...), errs[refused]
}

// settle is called when all locks are held, before they are returned to the caller. It extends each lock that has less
// than the required validity, and applies the WithExtension and WithMaxHold of the caller. It fails if a lock cannot be
// extended.
func (s *Locks) settle(ctx context.Context, cfg *lockConfig) error {
	err := s.each(func(k *Lock) error {
		if k.hold.HasLeft(cfg.Least) {
			return nil
		}
		return k.extend(ctx)
	})
	if err != nil {
		return err
	}
	for _, k := range s.locks {
		k.hold.ApplyTerms(&cfg.Terms)
		if !k.hold.HasLeft(cfg.Least) {
			return lockError("lock", k.Name(), errTooSlow)
		}
	}
	return nil
}

// dropAll releases locks that are not returned to the caller. It hardly waits for the masters, because its context has
// ended.
func dropAll(locks []*Lock) {
	for _, k := range locks {
		k.hold.Forgo()
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = (&Locks{locks}).Unlock(ended)
}

// Context returns a copy of parent that ends when the first of the locks ends, with the cause of that end. The returned
// context owns all the names. See [Lock.Context].
func (s *Locks) Context(parent context.Context) context.Context {
	handles := make([]*lease.Hold, len(s.locks))
	for i, k := range s.locks {
		handles[i] = &k.hold
	}
	return lease.Owning(parent, handles, true)
}

// Unlock releases all the locks together: see [Lock.Unlock]. It joins their errors.
func (s *Locks) Unlock(ctx context.Context) error {
	if s == nil {
		return errNoLock
	}
	return s.each(func(k *Lock) error { return k.Unlock(ctx) })
}

func (s *Locks) each(f func(*Lock) error) error {
	return errors.Join(concurrently(len(s.locks), func(i int) error { return f(s.locks[i]) })...)
}

// mostSlots is the maximum number of slots of a name: a waiting call is in the queue of each slot.
const mostSlots = 100

// WithSlots makes [Locker.Lock], TryLock, Do, TryDo and Lead acquire any one of k slots of the name, so that at most k
// clients hold the name at a time. k is from 1 to 100. The slots of "jobs" are the locks "jobs:1" to "jobs:k", each
// with all guarantees of a lock. The returned Lock has the name and the tokens of its slot. [Locker.Inspect] needs the
// name of a slot.
//
// A call first tries the slots one after the other, starting at a random slot. A call that does not wait tries those
// slots again that may become free in a moment (see [Locker.TryLock]), for half a second or [WithWaitLimit] in total.
// If all are held and the call may wait, it waits in the queues of all slots. The call keeps the first slot that it
// acquires, leaves the other queues, and immediately releases any slot that it acquired at the same moment. Priorities
// and fair order apply in each queue. [ErrHeld] means that each slot was held, or promised to a waiter, when the call
// tried it; the error describes the slot that may be free first. If some slots fail for other reasons, the call returns
// the error of one of these slots.
//
// With a context that owns one of the k slots, the call re-enters that slot and takes no second one. If clients use
// different k, the largest bounds the number of holders. So k can be raised in all clients together or one after the
// other, but a smaller k has an effect only when the last client uses it.
//
// WithSlots cannot be combined with [WithRetry]. It is an option of a call: [New] and the other calls refuse it. A call
// that waits costs the masters k times as much as a call for a plain lock.
func WithSlots(k int) LockOption { return slotsOption(k) }

// slotsOption is the option WithSlots.
type slotsOption int

func (k slotsOption) applyLocker(c *config)   { k.applyLock(&c.lock) }
func (k slotsOption) applyLock(c *lockConfig) { c.slots = true }

// slotsIn returns the number of slots in opts, and whether opts contain WithSlots.
func slotsIn(opts []LockOption) (k int, requested bool) {
	for _, o := range opts {
		if s, ok := o.(slotsOption); ok {
			k, requested = int(s), true
		}
	}
	return k, requested
}

// slotNames returns the names of the slots of name.
func slotNames(name string, k int) []string {
	names := make([]string, k)
	for i := range names {
		names[i] = fmt.Sprintf("%s:%d", name, i+1)
	}
	return names
}

// owner returns the innermost hold in ctx of name or, if opts request slots, of one of its slots. It returns nil if
// there is none.
func (l *Locker) owner(ctx context.Context, name string, opts []LockOption) *lease.Hold {
	names := []string{name}
	if k, requested := slotsIn(opts); requested {
		names = slotNames(name, k)
	}
	for _, n := range names {
		if own := lease.InnermostOf(ctx, l.of(n).leases, n); own != nil {
			return own
		}
	}
	return nil
}

// A slotCall acquires one of several slots.
type slotCall struct {
	l     *Locker
	name  string
	names []string // names of the slots
	cfg   *lockConfig
	opts  []LockOption // options of the call for each slot
}

// newSlotCall returns a call for k slots of name. It sends nothing.
func (l *Locker) newSlotCall(name string, k int, opts []LockOption) (*slotCall, error) {
	if k < 1 || k > mostSlots {
		return nil, invalid("the number of slots is %d: it must be from 1 to %d", k, mostSlots)
	}
	s := &slotCall{l: l, name: name, names: slotNames(name, k)}
	first := l.of(name)
	called := first.cfg.clock.Now() // time of the call in all queues
	s.opts = append(append([]LockOption{}, opts...), lockOption(func(c *lockConfig) { c.slots, c.called = false, called }))
	var err error
	if s.cfg, err = first.cfg.lock.with(s.opts, &first.cfg); err != nil {
		return nil, err
	}
	if s.cfg.bounded() {
		return nil, invalid("a call for slots waits in the queues: WithSlots excludes WithRetry")
	}
	s.opts = append(s.opts, lockOption(func(c *lockConfig) { c.waitLimit = 0 })) // the context of the call has the limit
	for _, n := range s.names {
		if err := l.of(n).checkName(n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// acquire acquires one slot.
func (s *slotCall) acquire(caller context.Context, wait bool, stats *lease.AcquireStats) (*Lock, error) {
	ctx, cancel := s.cfg.limited(caller)
	defer cancel()
	if own := s.l.owner(ctx, s.name, []LockOption{slotsOption(len(s.names))}); own != nil {
		s.names = []string{own.Lease().Name}
	}
	if wait && !slices.ContainsFunc(s.names, func(n string) bool {
		return !lease.LockOutOfOrder(ctx, s.l.of(n).leases, n)
	}) {
		return nil, lockError("lock", s.name, errOrder)
	}
	lock, err := s.try(ctx, wait, stats)
	if err != nil && wait && ctx.Err() == nil {
		lock, err = s.await(ctx, stats)
	}
	return lock, waited(caller, ctx, err)
}

// one calls take for slot i.
func (s *slotCall) one(
	ctx context.Context, i int, opts []LockOption, wait bool, stats *lease.AcquireStats,
) (*Lock, error) {
	name := s.names[i]
	return s.l.of(name).take(ctx, name, scripts.Plain, opts, wait, stats)
}

// try tries the slots one after the other, since concurrent attempts could briefly take several slots from other
// clients. It begins with the slots whose locks this Locker has: such a lock may linger, and taking it over sends no
// message. It continues at a random slot, so that clients rarely try the same slot.
//
// In one pass, try makes one attempt for each slot. A call that does not wait makes further passes, for those slots
// that may become free in a moment, until the limit of the call has passed. The pauses between the passes grow.
func (s *slotCall) try(ctx context.Context, wait bool, stats *lease.AcquireStats) (*Lock, error) {
	k := len(s.names)
	first := int(jitter.Int64N(int64(k)))
	var here, others []int
	for n := range k {
		i := (first + n) % k
		if s.l.of(s.names[i]).queue.Holder(s.names[i]) != nil {
			here = append(here, i)
		} else {
			others = append(others, i)
		}
	}
	opts := append(slices.Clip(s.opts), lockOption(func(c *lockConfig) { c.once = true }))
	limit, began := cmp.Or(s.cfg.waitLimit, waitqueue.DefaultUndecided), time.Now()
	refused := make([]error, k) // the last error of each slot
	for pass, slots := 0, append(here, others...); ; pass++ {
		passBegan, pause := time.Now(), time.Duration(0)
		var undecided []int
		for _, i := range slots {
			lock, err := s.one(ctx, i, opts, false, stats)
			switch {
			case err == nil || errors.Is(err, ErrClosed):
				return lock, err
			case ctx.Err() != nil && pass > 0: // this attempt may have no replies
				return nil, endedBy(s.refusal(refused), contextError(ctx))
			case ctx.Err() != nil:
				return nil, err
			}
			refused[i] = err
			var e *LockError
			if errors.As(err, &e) && e.failure.Again > 0 {
				undecided = append(undecided, i)
				pause = max(pause, e.failure.Again)
			}
		}
		took := time.Since(passBegan)
		pause += time.Duration(pass) * took
		if wait || len(undecided) == 0 || time.Since(began)+pause+took > limit {
			return nil, s.refusal(refused)
		}
		if err := s.l.of(s.name).rest(ctx, pause); err != nil {
			return nil, endedBy(s.refusal(refused), err)
		}
		slots = undecided
	}
}

// endedBy returns err, the refusal of a call that ended for cause: its context or Close.
func endedBy(err, cause error) error {
	var e *LockError
	if errors.Is(cause, ErrClosed) || !errors.As(err, &e) {
		return cause
	}
	ended := *e
	ended.failure.Cause = cause
	return &ended
}

// await waits for all slots concurrently until one is acquired, or all have failed.
func (s *slotCall) await(ctx context.Context, stats *lease.AcquireStats) (*Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		lock  *Lock
		err   error
		stats lease.AcquireStats
	}
	var won atomic.Bool
	results := make(chan result, len(s.names))
	for i, name := range s.names {
		go func() {
			var r result
			defer func() { results <- r }()
			if r.err = ErrClosed; !s.l.of(name).enter() {
				return
			}
			defer s.l.of(name).leave() // so Close also waits for the release of a second slot
			r.lock, r.err = s.one(ctx, i, s.opts, true, &r.stats)
			switch {
			case r.err != nil:
			case won.Swap(true):
				//mutant:slots-second drop
				r.lock.drop()
				r.lock, r.err = nil, ErrReleased
			default:
				cancel()
			}
		}()
	}
	errs := make([]error, 0, len(s.names))
	for range s.names {
		r := <-results
		stats.Add(&r.stats)
		if r.err == nil {
			return r.lock, nil
		}
		errs = append(errs, r.err)
	}
	return nil, s.refusal(errs)
}

// refusal returns the error of a call whose slots have all failed: the first error that is not ErrHeld, or else the
// error of the slot that may be free first.
func (s *slotCall) refusal(errs []error) error {
	var best *LockError
	for _, err := range errs {
		var e *LockError
		if !errors.As(err, &e) || !errors.Is(e.failure.Decision, ErrHeld) {
			return err
		}
		if best == nil || e.Left > 0 && (best.Left == 0 || e.Left < best.Left) {
			best = e
		}
	}
	all := *best
	all.slots = len(s.names)
	return &all
}
