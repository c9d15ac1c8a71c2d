package redlock

import (
	"context"

	"github.com/redlock-go/redlock/redlock/internal/grant"
)

// An ownerKey is where a context has the innermost Lock of a name that it owns.
type ownerKey struct {
	l    *Locker
	name string
}

// Context returns a copy of parent that ends when the lock ends, with the cause [ErrLost] where it was lost (see
// [context.Cause]), and that owns the name: [Locker.Lock] and [Locker.Do] with it, or with a context made from it,
// re-enter the lock. Whoever is handed this context may act as the holder; nothing else makes one.
//
// Its Err compares with the clocks: it is true to the instant at which it is called, also after the machine was
// suspended. The Err of a context that is made from it, and the Done of both, may come up to a tenth of a second
// later then.
func (k *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, ownerKey{k.l, k.Name()}, k))
	k.handle.Bind(ctx, cancel)
	return &lockContext{Context: ctx, handle: &k.handle, cancel: cancel}
}

// Token is the fencing token of the lock that owns ctx, of the innermost where there are several: that of [Lock.Token],
// for code that gets a context alone, as the function of [Locker.Do] does. It is 0 where ctx owns no name.
func Token(ctx context.Context) int64 {
	token, _ := ctx.Value(tokenKey{}).(int64)
	return token
}

// A tokenKey is where a context has the token of the innermost Lock.
type tokenKey struct{}

// A lockContext looks at the clocks when it is asked whether it has ended.
type lockContext struct {
	context.Context
	handle *grant.Handle
	cancel context.CancelCauseFunc
}

// Value implements context.Context.
func (c *lockContext) Value(key any) any {
	if key == (tokenKey{}) {
		return c.handle.Token()
	}
	return c.Context.Value(key)
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
	k, _ := ctx.Value(ownerKey{l, name}).(*Lock)
	return k
}
