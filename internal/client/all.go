package client

import (
	"context"
	"errors"
	"slices"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// AcquireAll implements LockAll and TryLockAll of package redlock, as op says. acquire calls [Client.Acquire]. The
// locks of the result are sorted by name, without duplicates.
func (s *Set) AcquireAll(
	ctx context.Context, op redlockinfo.Op, names []string, all *Settings,
	acquire func(context.Context, *Client, Request) (*Lock, error),
) ([]*Lock, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	wait := op == redlockinfo.OpLockAll
	for _, name := range names {
		c := s.Of(name)
		if err := c.CheckName(name); err != nil {
			return nil, err
		}
		if wait && lease.OutOfOrder(ctx, c.leases, name, true) {
			return nil, lockError(op, name, ErrOrder)
		}
		if _, err := c.owned(ctx, &Request{Op: op, Name: name, Settings: all}); err != nil {
			return nil, err
		}
	}
	// limited applies the wait limit to the whole call. While the call waits for one name, the locks of the others must be
	// extended, and their maximum hold must not begin.
	one := *all
	one.WaitLimit, one.Extend, one.MaxHold, one.Linger = 0, true, 0, 0
	var locks []*Lock
	err := s.Of(names[0]).limited(ctx, all.WaitLimit, 0, func(ctx context.Context) (err error) {
		take := func(name string, wait bool) (*Lock, error) {
			return acquire(ctx, s.Of(name), Request{Op: op, Name: name, Wait: wait, Settings: &one})
		}
		for {
			if locks, err = takeTogether(names, wait, take); err != nil {
				return err
			}
			if err = settle(ctx, op, locks, all); err == nil {
				return nil
			}
			dropAll(locks)
			if !wait || ctx.Err() != nil || errors.Is(err, lease.ErrMaxHold) {
				return err
			}
			_ = s.Of(names[0]).Rest(ctx, shortestPause) // ignore the error: the next try fails with it
		}
	})
	if err != nil {
		return nil, err
	}
	return locks, nil
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
	errs := Concurrently(len(missing), func(i int) (err error) {
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
func settle(ctx context.Context, op redlockinfo.Op, locks []*Lock, s *Settings) error {
	err := each(locks, func(k *Lock) error {
		if k.Hold.HasLeft(s.Least) {
			return nil
		}
		err := k.Extend(ctx)
		if errors.Is(err, lease.ErrLost) {
			err = k.tooShort(op)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range locks {
		k.Hold.ApplyTerms(&s.Terms)
		if !k.Hold.HasLeft(s.Least) {
			return k.tooShort(op)
		}
	}
	return nil
}

// dropAll drops locks concurrently: see drop.
func dropAll(locks []*Lock) {
	_ = each(locks, func(k *Lock) error {
		k.drop()
		return nil
	})
}

// each calls f for all locks concurrently, and joins the errors.
func each(locks []*Lock, f func(*Lock) error) error {
	return Join(Concurrently(len(locks), func(i int) error { return f(locks[i]) })...)
}

// ContextOf returns a copy of parent that ends when the first of the locks ends, with the cause of that end. The
// returned context owns all the names.
func ContextOf(parent context.Context, locks []*Lock) context.Context {
	holds := make([]*lease.Hold, len(locks))
	for i, k := range locks {
		holds[i] = &k.Hold
	}
	return lease.Owning(parent, holds, true)
}
