package redlock

import (
	"context"

	"github.com/redlock-go/redlock/redlock/internal/grant"
)

// An owner is what a context says about ownership: a Lock, and the owners that the parent context had. A context
// finds its owners by one key, so that a look-up allocates nothing.
type owner struct {
	lock *Lock
	next *owner
}

type ownerKey struct{}

// Context returns a copy of parent that ends when the lock ends, with the cause [ErrLost] where it was lost (see
// [context.Cause]), and that owns the name: [Locker.Lock] and [Locker.Do] with it, or with a context made from it,
// re-enter the lock. Whoever is handed this context may act as the holder; nothing else makes one.
//
// Its Err compares with the clocks: it is true to the instant at which it is called, also after the machine was
// suspended. The Err of a context that is made from it, and the Done of both, may come up to a tenth of a second
// later then.
func (k *Lock) Context(parent context.Context) context.Context {
	chain, _ := parent.Value(ownerKey{}).(*owner)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, ownerKey{}, &owner{lock: k, next: chain}))
	k.handle.Bind(ctx, cancel)
	return &lockContext{Context: ctx, handle: &k.handle, cancel: cancel}
}

// Token is the fencing token of the lock that owns ctx, of the innermost where there are several: that of [Lock.Token],
// for code that gets a context alone, as the function of [Locker.Do] does. It is 0 where ctx owns no name.
func Token(ctx context.Context) int64 {
	if o, ok := ctx.Value(ownerKey{}).(*owner); ok {
		return o.lock.Token()
	}
	return 0
}

// A lockContext looks at the clocks when it is asked whether it has ended.
type lockContext struct {
	context.Context
	handle *grant.Handle
	cancel context.CancelCauseFunc
}

// Err implements context.Context.
func (c *lockContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.handle.Err(); cause != nil {
		c.cancel(cause) // whoever has ended the lock may not have come to this context yet
	}
	return c.Context.Err()
}

// ownerOf returns the innermost Lock of name in ctx that is of l, or nil. It may have ended.
func ownerOf(ctx context.Context, l *Locker, name string) *Lock {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	for ; o != nil; o = o.next {
		if o.lock.l == l && o.lock.Name() == name {
			return o.lock
		}
	}
	return nil
}
