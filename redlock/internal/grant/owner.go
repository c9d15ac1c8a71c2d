package grant

import (
	"context"
	"reflect"
)

// An owning is a context that owns names. It looks at the clocks when it is asked whether it has ended.
type owning struct {
	context.Context
	handles  []*Handle // of Keepers that share one order, by name
	together bool      // they were taken as one
	cancel   context.CancelCauseFunc
}

// An ownerKey is what a context that owns names answers to with itself.
type ownerKey struct{}

// Owning returns a copy of parent that owns the names of handles, and ends when the first of them ends, with its cause.
// together: they are the names that were locked as one, sorted.
func Owning(parent context.Context, handles []*Handle, together bool) context.Context {
	c := newOwning(parent, handles, together)
	for _, h := range handles {
		h.bind(c, c)
	}
	return c
}

func newOwning(parent context.Context, handles []*Handle, together bool) *owning {
	ctx, cancel := context.WithCancelCause(parent)
	return &owning{Context: ctx, handles: handles, together: together, cancel: cancel}
}

// Context returns a copy of parent that owns the name of h and ends with it. Calls with one parent return one context,
// so that a long hold does not collect contexts which nothing ends before it.
func (h *Handle) Context(parent context.Context) context.Context {
	if !reflect.TypeOf(parent).Comparable() {
		return Owning(parent, []*Handle{h}, false)
	}
	return h.bind(parent, newOwning(parent, []*Handle{h}, false))
}

// Value implements context.Context.
func (c *owning) Value(key any) any {
	if key == (ownerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err implements context.Context.
func (c *owning) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	for _, h := range c.handles {
		if cause := h.Err(); cause != nil {
			c.cancel(cause) // whoever has ended it may not have come to this context yet
		}
	}
	return c.Context.Err()
}

// innermost is the innermost context in ctx that owns names; nil where there is none.
func innermost(ctx context.Context) *owning {
	c, _ := ctx.Value(ownerKey{}).(*owning)
	return c
}

// Innermost is the one handle that the innermost owner in ctx has; nil where there is none, or it has several.
func Innermost(ctx context.Context) *Handle {
	if c := innermost(ctx); c != nil && len(c.handles) == 1 {
		return c.handles[0]
	}
	return nil
}

// Owner is the innermost handle of name in ctx that is of k, or of any Keeper where k is nil; nil where there is none.
// It may have ended.
func Owner(ctx context.Context, k *Keeper, name string) *Handle {
	for c := innermost(ctx); c != nil; c = innermost(c.Context) {
		for _, h := range c.handles {
			if h.g.Name == name && (k == nil || h.g.k == k) {
				return h
			}
		}
	}
	return nil
}

// Owns reports whether ctx owns a name that is held by k.
func Owns(ctx context.Context, k *Keeper) bool {
	for c := innermost(ctx); c != nil; c = innermost(c.Context) {
		for _, h := range c.handles {
			if h.g.k == k && h.Err() == nil {
				return true
			}
		}
	}
	return false
}

// OutOfOrder reports whether a call with ctx must not wait for name: ctx does not own it, and owns, among names that
// were locked as one by k or a Keeper that shares its order, one that comes after it.
func OutOfOrder(ctx context.Context, k *Keeper, name string) bool {
	for c := innermost(ctx); c != nil; c = innermost(c.Context) {
		last := c.handles[len(c.handles)-1].g
		if c.together && last.k.order() == k.order() && name < last.Name {
			return Owner(ctx, k, name) == nil
		}
	}
	return false
}
