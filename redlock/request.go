package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A request is a call for the lock of one name, or for a slot of a semaphore.
type request struct {
	client *client.Client
	name   string
	role   scripts.Role
	slots  *int // size of the semaphore; nil: the name is no semaphore
	wait   bool // whether the call waits for another holder
	opts   []LockOption
}

// request returns a call for a plain lock. Its client is that of the shard of the name.
func (l *Locker) request(name string, opts []LockOption, wait bool) request {
	return request{client: client.SetOf(l).Of(name), name: name, wait: wait, opts: opts}
}

// lock implements the methods that return a Lock.
func (r request) lock(ctx context.Context) (*Lock, error) {
	if err := begin(ctx, r.client, opOf(r.role, r.wait), r.name); err != nil {
		return nil, err
	}
	defer r.client.End()
	return r.acquire(ctx)
}

// acquire acquires the lock for a call that has begun.
func (r request) acquire(ctx context.Context) (*Lock, error) {
	op := opOf(r.role, r.wait)
	return returned(acquiring(ctx, r.client, op, r.name, func(stats *client.Stats) (*client.Lock, error) {
		s, err := client.Apply(r.client, r.opts)
		if err != nil {
			return nil, err
		}
		q := client.Request{Name: r.name, Role: r.role, Wait: r.wait, Settings: s, Stats: stats}
		if r.slots != nil {
			return r.client.AcquireSlot(ctx, *r.slots, q)
		}
		return r.client.Acquire(ctx, q)
	}))
}

// do implements the methods that run a function under a lock.
func (r request) do(ctx context.Context, f func(ctx context.Context, lock *Lock) error) error {
	if f == nil {
		return notRun(errNoFunction)
	}
	if err := begin(ctx, r.client, redlockinfo.OpDo, r.name); err != nil {
		return notRun(err)
	}
	defer r.client.End()
	ctx = within(ctx, r.client, r.name)
	return traced(ctx, r.client, redlockinfo.OpDo, r.name, func(t *tracedCall) error {
		lock, err := r.acquire(ctx)
		if err != nil {
			return notRun(err)
		}
		t.set(lock.Token(), 0)
		return afterRun(during(ctx, lock, f))
	})
}

// opOf returns the Op of a call that acquires a lock.
func opOf(role scripts.Role, wait bool) redlockinfo.Op {
	switch {
	case role == scripts.Reader && wait:
		return redlockinfo.OpRLock
	case role == scripts.Reader:
		return redlockinfo.OpTryRLock
	case wait:
		return redlockinfo.OpLock
	}
	return redlockinfo.OpTryLock
}
