package redlock

import (
	"context"
	"slices"
)

// An owner is what a context says about ownership: a Lock, and the owners that the parent context had. A context finds
// its owners by one key, so that a look-up allocates nothing.
type owner struct {
	lock *Lock
	next *owner
}

type ownerKey struct{}

// Context returns a copy of parent that ends when the lock ends, with the cause [ErrLost] where it was lost (see
// [context.Cause]), and that owns the name: [Locker.Lock] and [Locker.Do] with it, or with a context made from it,
// re-enter the hold. Whoever is handed this context may act as the holder; nothing else makes one.
func (k *Lock) Context(parent context.Context) context.Context {
	chain, _ := parent.Value(ownerKey{}).(*owner)
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, ownerKey{}, &owner{lock: k, next: chain}))
	k.bind(ctx, cancel)
	return ctx
}

// pruneAt is the number of contexts of a Lock at which those that have ended are first dropped.
const pruneAt = 32

// bind has cancel called when k ends, or at once if it has. Of a lock that is held for long, contexts that ended by
// themselves are forgotten now and then, when their number has doubled.
func (k *Lock) bind(ctx context.Context, cancel context.CancelCauseFunc) {
	k.h.mu.Lock()
	ended := k.ended
	if ended == nil {
		if n := len(k.contexts); n >= pruneAt && n == cap(k.contexts) {
			k.contexts = slices.DeleteFunc(k.contexts, func(c boundContext) bool { return c.ctx.Err() != nil })
		}
		k.contexts = append(k.contexts, boundContext{ctx, cancel})
	}
	k.h.mu.Unlock()
	if ended != nil {
		cancel(ended)
	}
}

// ownerOf returns the innermost Lock of name in ctx that is of l, or nil. It may have ended.
func ownerOf(ctx context.Context, l *Locker, name string) *Lock {
	o, _ := ctx.Value(ownerKey{}).(*owner)
	for ; o != nil; o = o.next {
		if o.lock.h.l == l && o.lock.h.name == name {
			return o.lock
		}
	}
	return nil
}
