package redlock

import (
	"cmp"
	"context"
	"slices"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Locks is the result of LockAll: one lock for each name. All methods are safe for concurrent use.
type Locks struct {
	locks []*Lock // sorted by name, without duplicates
}

// Of returns the lock of name, or nil if name is not one of the names that were locked.
func (s *Locks) Of(name string) *Lock {
	if s == nil {
		panic(errNoLock)
	}
	i, ok := slices.BinarySearchFunc(s.locks, name, func(k *Lock, name string) int { return cmp.Compare(k.Name(), name) })
	if !ok {
		return nil
	}
	return s.locks[i]
}

// finish implements lockOrLocks.
func (s *Locks) finish(ctx context.Context) error {
	return s.each(func(k *Lock) error { return k.finish(ctx) })
}

// beginAll is like [client.Client.Begin], for a call with several names.
func (l *Locker) beginAll(ctx context.Context, op redlockinfo.Op, names []string) error {
	if len(names) == 0 {
		return client.Invalid("%s: no names: at least one is needed", op)
	}
	return client.SetOf(l).Of(names[0]).Begin(ctx, op, names[0])
}

// lockAll implements LockAll and TryLockAll.
func (l *Locker) lockAll(
	ctx context.Context, op redlockinfo.Op, names []string, opts []LockOption,
) (*Locks, error) {
	if err := l.beginAll(ctx, op, names); err != nil {
		return nil, err
	}
	defer client.SetOf(l).Of(names[0]).End()
	return l.takeAll(ctx, op, names, opts)
}

// takeAll acquires the locks of all names, for a call that has begun.
func (l *Locker) takeAll(
	ctx context.Context, op redlockinfo.Op, names []string, opts []LockOption,
) (*Locks, error) {
	set := client.SetOf(l)
	s, err := client.Apply(set.Of(names[0]), opts) // the defaults of all shards are equal
	if err != nil {
		return nil, err
	}
	held, err := set.AcquireAll(ctx, op, names, s, acquireOne)
	if err != nil {
		return nil, public(err)
	}
	all := &Locks{make([]*Lock, len(held))}
	for i, k := range held {
		all.locks[i], _ = k.Public.(*Lock)
	}
	return all, nil
}

// acquireOne acquires the lock of one name for LockAll. The event is that of a plain lock; an error names the LockAll.
func acquireOne(ctx context.Context, c *client.Client, r client.Request) (*client.Lock, error) {
	one := request{Request: r, client: c}
	one.Op = opOf(r.Wait)
	one.take = func(c *client.Client, ctx context.Context, one client.Request) (*client.Lock, error) {
		r.Stats = one.Stats
		return c.Acquire(ctx, r)
	}
	k, err := one.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return k.held, nil
}

// Context returns a copy of parent that ends when the first of the locks ends, with the cause of that end. The returned
// context owns all the names. See [Lock.Context].
func (s *Locks) Context(parent context.Context) context.Context {
	switch {
	case s == nil:
		panic(errNoLock)
	case parent == nil:
		panic("redlock: context of locks: the parent is nil")
	}
	held := make([]*client.Lock, len(s.locks))
	for i, k := range s.locks {
		held[i] = k.held
	}
	return client.ContextOf(parent, held)
}

// Unlock releases all the locks together: see [Lock.Unlock]. It joins their errors.
func (s *Locks) Unlock(ctx context.Context) error {
	if s == nil {
		return errNoLock
	}
	return s.each(func(k *Lock) error { return k.Unlock(ctx) })
}

func (s *Locks) each(f func(*Lock) error) error {
	return client.Join(client.Concurrently(len(s.locks), func(i int) error { return f(s.locks[i]) })...)
}
