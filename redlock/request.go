package redlock

import (
	"cmp"
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A request is a call that acquires one lock.
type request struct {
	client.Request
	client *client.Client
	opts   []LockOption
	take   taker
	wrong  error // why the call must fail, if its arguments are wrong
}

// A taker is the method of a client that acquires a lock of one kind.
type taker func(*client.Client, context.Context, client.Request) (*client.Lock, error)

// request returns a call for a plain lock. Its client is that of the shard of the name.
func (l *Locker) request(name string, opts []LockOption, wait bool) request {
	r := client.Request{Op: opOf(wait), Name: name, Wait: wait}
	return request{Request: r, client: client.SetOf(l).Of(name), opts: opts, take: (*client.Client).Acquire}
}

// lock implements the methods that return a Lock.
func (r request) lock(ctx context.Context) (*Lock, error) {
	if err := r.client.Begin(ctx, r.Op, r.Name); err != nil {
		return nil, err
	}
	defer r.client.End()
	return r.acquire(ctx)
}

// acquire acquires the lock for a call that has begun, as a traced call. It returns the lock and the error that users
// see.
func (r request) acquire(ctx context.Context) (k *Lock, err error) {
	err = traced(ctx, r.client, r.Op, r.Name, func(t *tracedCall) (err error) {
		if err = cmp.Or(r.wrong, r.client.CheckName(r.Name)); err != nil {
			return err
		}
		if r.Settings, err = client.Apply(r.client, r.opts); err != nil {
			return err
		}
		r.Stats = t.rounds()
		held, err := r.take(r.client, ctx, r.Request)
		if err != nil {
			return public(err)
		}
		k = &Lock{held}
		held.Public = k
		t.set(k.Token(), 0)
		return nil
	})
	return k, err
}

// opOf returns the Op of a call for a plain lock or that of a writer.
func opOf(wait bool) redlockinfo.Op {
	if wait {
		return redlockinfo.OpLock
	}
	return redlockinfo.OpTryLock
}

// do implements the methods that run a function under a lock.
func (r request) do(ctx context.Context, f func(ctx context.Context, lock *Lock) error) error {
	if f == nil {
		return notRun(noFunction(r.Name))
	}
	if err := client.CheckContext(ctx, redlockinfo.OpDo, r.Name); err != nil {
		return notRun(err)
	}
	ctx = within(ctx, r.client, r.Name) // before Begin, whose event of a refused call has this context
	if err := r.client.Begin(ctx, redlockinfo.OpDo, r.Name); err != nil {
		return notRun(err)
	}
	defer r.client.End()
	return traced(ctx, r.client, redlockinfo.OpDo, r.Name, func(t *tracedCall) error {
		lock, err := r.acquire(ctx)
		if err != nil {
			return notRun(err)
		}
		t.set(lock.Token(), 0)
		return afterRun(during(ctx, lock, f))
	})
}

// noFunction returns the error of a call without a function to run.
func noFunction(name string) error {
	return client.Invalid("%s %.80q: the function is nil", redlockinfo.OpDo, name)
}

// A lockOrLocks is a Lock or Locks, which during releases.
type lockOrLocks interface {
	Context(parent context.Context) context.Context
	finish(ctx context.Context) error
}

// during runs f while k is held, and then releases k. err is the error of f; lost is the reason if k ended before f
// returned.
func during[K lockOrLocks](ctx context.Context, k K, f func(ctx context.Context, k K) error) (err, lost error) {
	defer func() { lost = k.finish(ctx) }()
	return f(k.Context(ctx), k), nil
}

// finish releases k; see [client.Lock.Finish].
func (k *Lock) finish(ctx context.Context) error { return public(k.held.Finish(ctx, k.Unlock)) }
