package redlock

import "context"

// Context returns a copy of parent that ends when the lock ends, with the cause [ErrLost] where it was lost (see
// [context.Cause]), and that owns the name: [Locker.Lock] and [Locker.Do] with it, or with a context made from it,
// re-enter the lock. Whoever is handed this context may act as the holder; nothing else makes one.
//
// Its Err compares with the clocks: it is true to the instant at which it is called, also after the machine was
// suspended. The Err of a context that is made from it, and the Done of both, may come up to a tenth of a second
// later then.
func (k *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	k.handle.Bind(ctx, cancel)
	return &lockContext{Context: ctx, lock: k, cancel: cancel}
}

// TokenOf is the fencing token of the lock that owns ctx, of the innermost where there are several: that of
// [Lock.Token], for code that gets a context alone, as the function of [Locker.Do] does. It is 0 where ctx owns no
// name.
func TokenOf(ctx context.Context) int64 {
	if c := owner(ctx); c != nil {
		return c.lock.Token()
	}
	return 0
}

// A lockContext is a context that owns a name. It looks at the clocks when it is asked whether it has ended.
type lockContext struct {
	context.Context
	lock   *Lock
	cancel context.CancelCauseFunc
}

// An ownerKey is what a context that owns a name answers to with itself.
type ownerKey struct{}

// Value implements context.Context.
func (c *lockContext) Value(key any) any {
	if key == (ownerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// owner is the innermost context in ctx that owns a name, nil where there is none.
func owner(ctx context.Context) *lockContext {
	c, _ := ctx.Value(ownerKey{}).(*lockContext)
	return c
}

// ownerOf returns the innermost Lock of name in ctx that is of l, or nil. It may have ended.
func ownerOf(ctx context.Context, l *Locker, name string) *Lock {
	for c := owner(ctx); c != nil; c = owner(c.Context) {
		if c.lock.l == l && c.lock.Name() == name {
			return c.lock
		}
	}
	return nil
}

// Err implements context.Context.
func (c *lockContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if cause := c.lock.Err(); cause != nil {
		c.cancel(cause) // whoever has ended the lock may not have come to this context yet
	}
	return c.Context.Err()
}
