package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A request is a call that acquires one lock.
type request struct {
	client *client.Client
	op     redlockinfo.Op
	name   string
	wait   bool // whether the call waits for another holder
	opts   []LockOption
	// take is the method of the client that acquires a lock of this kind.
	take func(*client.Client, context.Context, client.Request) (*client.Lock, error)
}

// request returns a call for a plain lock. Its client is that of the shard of the name.
func (l *Locker) request(name string, opts []LockOption, wait bool) request {
	return request{client.SetOf(l).Of(name), opOf(wait), name, wait, opts, (*client.Client).Acquire}
}

// lock implements the methods that return a Lock.
func (r request) lock(ctx context.Context) (*Lock, error) {
	if err := begin(ctx, r.client, r.op, r.name); err != nil {
		return nil, err
	}
	defer r.client.End()
	return r.acquire(ctx)
}

// acquire acquires the lock for a call that has begun.
func (r request) acquire(ctx context.Context) (*Lock, error) {
	return acquiring(ctx, r.client, r.op, r.name, func(stats *client.Stats) (*client.Lock, error) {
		s, err := client.Apply(r.client, r.opts)
		if err != nil {
			return nil, err
		}
		return r.take(r.client, ctx, client.Request{Op: r.op, Name: r.name, Wait: r.wait, Settings: s, Stats: stats})
	})
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

// opOf returns the Op of a call for a plain lock or that of a writer.
func opOf(wait bool) redlockinfo.Op {
	if wait {
		return redlockinfo.OpLock
	}
	return redlockinfo.OpTryLock
}
