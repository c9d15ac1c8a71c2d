package redlock

import (
	"cmp"
	"context"
	"slices"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
)

// errOrder is returned if the requested name sorts before one that the context owns: for LockAll, by any lock; for a
// call that waits for one name, by LockAll. Without this rule, LockAll calls of several clients could wait for each
// other forever. Nothing was sent.
var errOrder = invalid("the name sorts before one that this context holds, " +
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
		if _, err := l.of(name).owned(ctx, name, scripts.Plain, cfg, false); err != nil {
			return nil, err
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
	return joinErrors(concurrently(len(s.locks), func(i int) error { return f(s.locks[i]) })...)
}
