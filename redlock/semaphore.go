package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Semaphore is a name that at most k clients hold at a time. It has k slots, and each slot is a lock, with all
// guarantees of a lock: validity, extension, repair, loss, release, and growing tokens. A [Lock] of a Semaphore has the
// number of its slot ([Lock.Slot]). Compare its token only with tokens of the same slot.
//
// The masters know k. While any slot is held, they refuse a call of another k, a plain lock ([Locker.Lock]) and an
// [RWLock] of the same name, and the reverse: see [ErrKind]. To change k, use another name, or let all holders end and
// wait until the TTL and 75 seconds have passed; clients with the new k get ErrKind until then.
//
// A call first tries the slots one after the other, beginning at a random one: up to k round trips. If none is free and
// the call may wait, it waits after half a second at the latest in the queues of all slots, and keeps the first slot
// that it acquires. It leaves the other queues, and immediately releases any slot that it acquired at the same moment.
// A call that waits costs the masters, and the memory of this process, k times as much as for a plain lock.
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
	client *client.Client
	name   string
	size   int
}

// Semaphore returns the semaphore of name with k slots, k from 1 to 100. All clients must use the same k. Semaphore
// sends nothing; the methods of the result check the name and k, and return [ErrInvalid].
func (l *Locker) Semaphore(name string, k int) *Semaphore {
	return &Semaphore{client.SetOf(l).Of(name), name, k}
}

// Acquire acquires a slot. It waits while all slots are held, or are free but promised to earlier waiters. With a
// context that owns a slot of the semaphore, it takes no second one: it fails with [ErrReentry], or re-enters that slot
// ([WithReentry]). Otherwise it behaves like [Locker.Lock] and returns the same errors. [ErrHeld] means that each slot
// was held, or promised to a waiter, when the call tried it last; the error describes the slot that may be free first.
func (s *Semaphore) Acquire(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.request(opts, true).lock(ctx)
}

// TryAcquire acquires a slot without waiting for a holder. It tries each slot once, and those again that may become
// free in a moment (see [Locker.TryLock]), for half a second or [WithWaitLimit] in total.
func (s *Semaphore) TryAcquire(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.request(opts, false).lock(ctx)
}

// Do runs f while holding a slot, as [Locker.Do] does. It acquires the slot as [Semaphore.Acquire] does.
func (s *Semaphore) Do(
	ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return s.request(opts, true).do(ctx, f)
}

// TryDo runs f while holding a slot, as [Locker.TryDo] does. It acquires the slot as [Semaphore.TryAcquire] does.
func (s *Semaphore) TryDo(
	ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	return s.request(opts, false).do(ctx, f)
}

// request returns a call for a slot.
func (s *Semaphore) request(opts []LockOption, wait bool) request {
	if s == nil || s.client == nil {
		panic("redlock: the Semaphore is nil, or not made by Locker.Semaphore")
	}
	take := func(c *client.Client, ctx context.Context, r client.Request) (*client.Lock, error) {
		return c.AcquireSlot(ctx, s.size, r)
	}
	op := redlockinfo.OpAcquire
	if !wait {
		op = redlockinfo.OpTryAcquire
	}
	r := client.Request{Op: op, Name: s.name, Wait: wait}
	return request{Request: r, client: s.client, opts: opts, take: take}
}
