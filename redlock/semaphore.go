package redlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// A Semaphore is a name that at most k clients hold at a time. It has k slots, and each slot is a lock, with all
// guarantees of a lock: validity, extension, repair, loss, release, and growing tokens. A [Lock] of a Semaphore has the
// number of its slot ([Lock.Slot]). Compare its token only with tokens of the same slot.
//
// The masters know k. While any slot is held, they refuse a call of another k, a plain lock ([Locker.Lock]) and an
// [RWLock] of the same name, and the reverse: see [ErrKind]. To change k, use another name, or let all holders end and
// wait until the TTL and 75 seconds have passed; clients with the new k get ErrKind until then.
//
// A call first tries the slots one after the other, beginning at a random slot: up to k round trips. If none is free
// and the call may wait, it waits after half a second at the latest in the queues of all slots, and keeps the first
// slot that it acquires. It leaves the other queues, and immediately releases any slot that it acquired at the same
// moment. A call that waits costs the masters, and the memory of this process, k times as much as for a plain lock.
//
// No waiter starves. A free slot belongs to the waiter whose call came first, of those with the highest priority; no
// later call acquires it. There is one exception, as for plain locks: a Locker that releases a slot may hand it off to
// its own waiters, at most 32 times in a row and for at most 100 ms. So each client that waited before a waiter can let
// later calls overtake that waiter once for each slot, by one such turn. [WithFair] in all calls excludes hand-offs.
// The order is best effort within some round trips, because each master has queues of its own.
//
// The methods accept the options of [Locker.Lock] except [WithTries], and refuse it with [ErrInvalid], since they wait
// in queues. A Semaphore is safe for concurrent use.
type Semaphore struct {
	l    *shard
	name string
	size int
}

// Semaphore returns the semaphore of name with k slots, k from 1 to 100. All clients must use the same k. Semaphore
// sends nothing; the methods of the result check the name and k, and return [ErrInvalid].
func (l *Locker) Semaphore(name string, k int) *Semaphore { return &Semaphore{l.of(name), name, k} }

// Acquire acquires a slot. It waits while all slots are held, or are free but promised to earlier waiters. With a
// context that owns a slot of the semaphore, it takes no second one: it fails with [ErrReentry], or re-enters that slot
// ([WithReentry]). Otherwise it behaves like [Locker.Lock] and returns the same errors. [ErrHeld] means that each slot
// was held, or promised to a waiter, when the call tried it last; the error describes the slot that may be free first.
func (s *Semaphore) Acquire(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.acquire(ctx, opts, true)
}

// TryAcquire acquires a slot without waiting for a holder. It tries each slot once, and those again that may become
// free in a moment (see [Locker.TryLock]), for half a second or [WithWaitLimit] in total.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.acquire(ctx, opts, false)
}

// Do runs f while holding a slot, as [Locker.Do] does. It acquires the slot as [Semaphore.Acquire] does.
func (s *Semaphore) Do(
	ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return s.l.do(ctx, s.name, func(ctx context.Context) (*Lock, error) { return s.take(ctx, opts, true) }, f)
}

// TryDo runs f while holding a slot, as [Locker.TryDo] does. It acquires the slot as [Semaphore.TryAcquire] does.
func (s *Semaphore) TryDo(
	ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return s.l.do(ctx, s.name, func(ctx context.Context) (*Lock, error) { return s.take(ctx, opts, false) }, f)
}

// acquire implements Acquire and TryAcquire.
func (s *Semaphore) acquire(ctx context.Context, opts []LockOption, wait bool) (*Lock, error) {
	if err := s.l.beginWork(ctx, opOf(scripts.Plain, wait), s.name); err != nil {
		return nil, err
	}
	defer s.l.endWork()
	return s.take(ctx, opts, wait)
}

// take acquires a slot for a call that has begun.
func (s *Semaphore) take(ctx context.Context, opts []LockOption, wait bool) (*Lock, error) {
	op := opOf(scripts.Plain, wait)
	return s.l.events.acquiring(ctx, op, s.name, func(stats *lease.AcquireStats) (*Lock, error) {
		call, err := s.call(opts)
		if err != nil {
			return nil, err
		}
		return call.acquire(ctx, wait, stats)
	})
}

// A slotCall acquires one slot of a semaphore.
type slotCall struct {
	l     *shard
	name  string
	slots []string // names of the slots: see scripts.Slot
	cfg   *lockConfig
	opts  []LockOption // options of the call for each slot
}

// call returns a call with these options. It sends nothing.
func (s *Semaphore) call(opts []LockOption) (*slotCall, error) {
	if s.size < 1 || s.size > scripts.MaxSlots {
		return nil, invalid("the size of the semaphore is %d: it must be from 1 to %d", s.size, scripts.MaxSlots)
	}
	if err := s.l.checkName(s.name); err != nil {
		return nil, err
	}
	called := s.l.cfg.clock.Now() // time of the call in all queues
	c := &slotCall{l: s.l, name: s.name, slots: make([]string, s.size)}
	for i := range c.slots {
		c.slots[i] = scripts.Slot{Number: i + 1, Of: s.size}.Name(s.name)
	}
	c.opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) { c.slot, c.called = true, called }))
	var err error
	if c.cfg, err = s.l.cfg.lock.with(c.opts, &s.l.cfg); err != nil {
		return nil, err
	}
	if c.cfg.bounded() {
		return nil, invalid("a call for a slot of a semaphore waits in the queues: it excludes WithTries")
	}
	c.opts = append(c.opts, lockOption(func(c *lockConfig) { c.waitLimit = 0 })) // the context of the call has the limit
	return c, nil
}

// acquire acquires one slot.
func (s *slotCall) acquire(caller context.Context, wait bool, stats *lease.AcquireStats) (*Lock, error) {
	ctx, cancel := s.cfg.limited(caller)
	defer cancel()
	for _, name := range s.slots {
		if lease.InnermostOf(ctx, s.l.leases, name) != nil { // re-enter this slot
			s.slots = []string{name}
			break
		}
	}
	if wait && lease.LockOutOfOrder(ctx, s.l.leases, s.slots[0]) {
		return nil, lockError("lock", s.name, errOrder)
	}
	lock, err := s.try(ctx, wait, stats)
	if err != nil && wait && ctx.Err() == nil && !errors.Is(err, ErrKind) && !errors.Is(err, ErrReentry) {
		lock, err = s.await(ctx, stats)
	}
	return lock, waited(caller, ctx, err)
}

// one calls take for slot i.
func (s *slotCall) one(
	ctx context.Context, i int, opts []LockOption, wait bool, stats *lease.AcquireStats,
) (*Lock, error) {
	return s.l.take(ctx, s.slots[i], scripts.Plain, opts, wait, stats)
}

// try tries the slots one after the other, since concurrent attempts could briefly take several slots from other
// clients. It begins with the slots whose locks this Locker has: such a lock may linger, and taking it over sends no
// message. It continues at a random slot, so that clients rarely try the same slot.
//
// In one pass, try makes one attempt for each slot, but a call that may wait ends the pass after half a second. A call
// that does not wait makes further passes, for those slots that may become free in a moment, until the limit of the
// call has passed. The pauses between the passes grow.
func (s *slotCall) try(ctx context.Context, wait bool, stats *lease.AcquireStats) (*Lock, error) {
	k := len(s.slots)
	first := int(jitter.Int64N(int64(k)))
	var here, others []int
	for n := range k {
		i := (first + n) % k
		if s.l.queue.Holder(s.slots[i]) != nil {
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
			case err == nil || errors.Is(err, errClosed) || errors.Is(err, ErrKind):
				return lock, err
			case errors.Is(err, ErrOverloaded): // for the other slots, too
				return nil, err
			case ctx.Err() != nil && s.refusal(refused) != nil: // this attempt may have no replies
				return nil, endedBy(s.refusal(refused), contextError(ctx))
			case ctx.Err() != nil:
				return nil, err
			case wait && time.Since(began) > waitqueue.DefaultUndecided: // slots that become free are noticed in queues only
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
		if err := s.l.rest(ctx, pause); err != nil {
			return nil, endedBy(s.refusal(refused), err)
		}
		slots = undecided
	}
}

// endedBy returns err, the refusal of a call that ended for cause: its context or Close.
func endedBy(err, cause error) error {
	var e *LockError
	if errors.Is(cause, errClosed) || !errors.As(err, &e) {
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
	results := make(chan result, len(s.slots))
	for i := range s.slots {
		go func() {
			var r result
			defer func() { results <- r }()
			if r.err = errClosed; !s.l.enter() {
				return
			}
			defer s.l.leave() // so Close also waits for the release of a second slot
			r.lock, r.err = s.one(ctx, i, s.opts, true, &r.stats)
			switch {
			case r.err != nil:
			case won.Swap(true):
				r.lock.drop()
				r.lock, r.err = nil, ErrReleased
			default:
				cancel()
			}
		}()
	}
	errs := make([]error, 0, len(s.slots))
	for range s.slots {
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
// error of the slot that may be free first. It returns nil if no slot was tried.
func (s *slotCall) refusal(errs []error) error {
	var best *LockError
	for _, err := range errs {
		if err == nil { // not tried
			continue
		}
		var e *LockError
		if !errors.As(err, &e) || !errors.Is(e.failure.Decision, ErrHeld) {
			return err
		}
		if best == nil || e.Left > 0 && (best.Left == 0 || e.Left < best.Left) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	all := *best
	all.slots = len(s.slots)
	return &all
}
