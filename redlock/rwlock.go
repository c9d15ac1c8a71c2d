package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An RWLock is a name that either any number of readers or one writer can hold. Each reader and each writer has a
// separate [Lock], with its own validity, extension, repair, loss and release. A reader that dies delays writers for at
// most one TTL, and does not delay other readers.
//
// Calls are served in the order of their arrival: a reader that arrives after a waiting writer waits behind it, so
// readers never starve writers. All calls, even those of one Locker, wait in the queues of the masters, ordered by
// priority and time of the call. There are no local hand-offs.
//
// A writer's token is larger than the tokens of all earlier readers and writers. A reader's token is larger than those
// of all earlier writers, and smaller than those of all later writers. So a resource that stores the largest token of a
// writer can refuse late requests of earlier readers. The tokens of readers that hold the name at the same time are
// unordered, and may be equal.
//
// Unlike for plain locks, a master that has reached maxmemory does not extend locks of an RWLock. While a majority of
// the masters is in that state, locks of an RWLock end with their validity.
//
// A name that has plain locks ([Locker.Lock]) or is a [Semaphore] cannot be used as an RWLock, nor the reverse: see
// [ErrKind].
//
// The methods accept the options of [Locker.Lock], except [WithMinHold], which they refuse; [WithFair] has no effect.
// An RWLock is safe for concurrent use.
type RWLock struct {
	client *client.Client
	name   string
}

// RLock acquires the lock of a reader. It waits while a writer holds the name, and behind earlier waiters. Otherwise it
// behaves like [Locker.Lock] and returns the same errors.
func (s *RWLock) RLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.reader(opts, true).lock(ctx)
}

// TryRLock acquires the lock of a reader as [Locker.TryLock] does: it succeeds only if no writer holds the name and no
// client waits for it.
func (s *RWLock) TryRLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.reader(opts, false).lock(ctx)
}

// DoRead runs f while holding the lock of a reader, as [Locker.Do] does.
func (s *RWLock) DoRead(ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption) error {
	return s.reader(opts, true).do(ctx, f)
}

// Lock acquires the lock of the writer. It waits while any client holds the name. With a context that owns a reader's
// lock of the name, Lock returns [ErrInvalid], since it would wait for itself. Otherwise it behaves like [Locker.Lock].
func (s *RWLock) Lock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.writer(opts, true).lock(ctx)
}

// TryLock acquires the lock of the writer as [Locker.TryLock] does.
func (s *RWLock) TryLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.writer(opts, false).lock(ctx)
}

// Do runs f while holding the lock of the writer, as [Locker.Do] does.
func (s *RWLock) Do(ctx context.Context, f func(ctx context.Context, lock *Lock) error, opts ...LockOption) error {
	return s.writer(opts, true).do(ctx, f)
}

// reader returns a call for the lock of a reader.
func (s *RWLock) reader(opts []LockOption, wait bool) request {
	op := redlockinfo.OpRLock
	if !wait {
		op = redlockinfo.OpTryRLock
	}
	return s.request(op, opts, wait, (*client.Client).AcquireReader)
}

// writer returns a call for the lock of the writer.
func (s *RWLock) writer(opts []LockOption, wait bool) request {
	return s.request(opOf(wait), opts, wait, (*client.Client).AcquireWriter)
}

func (s *RWLock) request(op redlockinfo.Op, opts []LockOption, wait bool, take taker) request {
	if s == nil || s.client == nil {
		panic("redlock: the RWLock is nil, or not made by Locker.RWLock")
	}
	r := client.Request{Op: op, Name: s.name, Wait: wait}
	return request{Request: r, client: s.client, opts: opts, take: take}
}

// Downgrade turns the writer's lock of an [RWLock] into a reader's lock. On each master the reader's lock begins when
// the writer's ends, so no other writer can acquire the name in between. From then on other readers may acquire the
// name. The lock k and its contexts end first, as by Unlock (ErrReleased), so ctx must not be one of them. The reader's
// lock has a larger token, new contexts and the given options.
//
// Like [Locker.Import], Downgrade retries until a majority has granted the reader's lock, ctx ends, or the tries are
// used up. If k was re-entered or is not a writer's lock, Downgrade returns ErrInvalid, and k stays held. It returns
// ErrLost if no majority still has the writer's lock. After any error but ErrInvalid nothing is held.
func (k *Lock) Downgrade(ctx context.Context, opts ...LockOption) (*Lock, error) {
	if err := k.check(ctx, redlockinfo.OpDowngrade); err != nil {
		return nil, err
	}
	c := k.held.Client()
	c.BeginInner()
	defer c.End()
	r := request{Request: client.Request{Op: redlockinfo.OpDowngrade, Name: k.Name()}, client: c, opts: opts}
	r.take = func(_ *client.Client, ctx context.Context, r client.Request) (*client.Lock, error) {
		return k.held.Downgrade(ctx, r)
	}
	return r.acquire(ctx)
}
