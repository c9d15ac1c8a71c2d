package lease

import (
	"context"
	"reflect"

	"github.com/redlock-go/redlock/internal/scripts"
)

// An ownerContext is a context that owns names. Its Err compares the validity with the clocks.
type ownerContext struct {
	context.Context
	holds    []*Hold // if together, sorted by name, and of one Locker
	together bool    // whether the names were locked as one lock, by LockAll
	cancel   context.CancelCauseFunc
}

// An ownerKey is the key under which an ownerContext returns itself.
type ownerKey struct{}

// Owning returns a copy of parent that owns the names of holds. The copy ends when the first hold ends, with the cause
// of that hold. together must be true if the names were locked as one lock; holds must then be sorted by name.
func Owning(parent context.Context, holds []*Hold, together bool) context.Context {
	c := newOwnerContext(parent, holds, together)
	for _, h := range holds {
		h.bind(c, c)
	}
	return c
}

func newOwnerContext(parent context.Context, holds []*Hold, together bool) *ownerContext {
	ctx, cancel := context.WithCancelCause(parent)
	return &ownerContext{Context: ctx, holds: holds, together: together, cancel: cancel}
}

// Context returns a copy of parent that owns the name of h and ends with it. Calls with the same parent return the same
// context, so that a long hold does not collect contexts that end only with the hold.
func (h *Hold) Context(parent context.Context) context.Context {
	if !reflect.ValueOf(parent).Comparable() { // an interface in a comparable type may hold an incomparable value
		return Owning(parent, []*Hold{h}, false)
	}
	return h.bind(parent, newOwnerContext(parent, []*Hold{h}, false))
}

// Value implements context.Context.
func (c *ownerContext) Value(key any) any {
	if key == (ownerKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Err implements context.Context.
func (c *ownerContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	for _, h := range c.holds {
		if cause := h.Cause(); cause != nil {
			c.cancel(cause) // the goroutine that has ended h may not have cancelled c yet
		}
	}
	return c.Context.Err()
}

// innermost returns the innermost context in ctx that owns names; nil if there is none.
func innermost(ctx context.Context) *ownerContext {
	c, _ := ctx.Value(ownerKey{}).(*ownerContext)
	return c
}

// Innermost returns the hold of the innermost context in ctx that owns names. It returns nil if there is no such
// context, or if that context has several holds.
func Innermost(ctx context.Context) *Hold {
	if c := innermost(ctx); c != nil && len(c.holds) == 1 {
		return c.holds[0]
	}
	return nil
}

// InnermostOf returns the innermost hold of name in ctx that belongs to m. If m is nil, the hold may belong to any
// Manager, and a slot of a semaphore has the name of the semaphore. InnermostOf returns nil if there is no such hold.
// The hold may have ended.
func InnermostOf(ctx context.Context, m *Manager, name string) *Hold {
	return find(ctx, func(_ *ownerContext, h *Hold) bool {
		if m == nil {
			return h.lease.PublicName() == name
		}
		return h.lease.Name == name && h.lease.m == m
	})
}

// PublicName returns the name that the caller uses: of a slot, that of its semaphore.
func (l *Lease) PublicName() string {
	name, _ := scripts.CutSlot(l.Name)
	return name
}

// find returns the innermost hold in ctx for which match returns true; nil if there is none. match is called with a
// hold and the context that contains it.
func find(ctx context.Context, match func(*ownerContext, *Hold) bool) *Hold {
	for c := innermost(ctx); c != nil; c = innermost(c.Context) {
		for _, h := range c.holds {
			if match(c, h) {
				return h
			}
		}
	}
	return nil
}

// Owns reports whether ctx owns a name that is held by the Locker of m.
func Owns(ctx context.Context, m *Manager) bool {
	return find(ctx, func(_ *ownerContext, h *Hold) bool {
		return h.lease.m.Locker == m.Locker && h.Err() == nil
	}) != nil
}

// OutOfOrder reports whether a call with ctx must not wait for name, since the call could deadlock. This is so if ctx
// does not own name, but owns a name of the same Locker that sorts after it and is still held. For a call for one name,
// only names count that LockAll has locked. For a call of LockAll (all), each name that ctx owns counts, because other
// clients may hold name while LockAll waits for it.
func OutOfOrder(ctx context.Context, m *Manager, name string, all bool) bool {
	public, _ := scripts.CutSlot(name)
	after := find(ctx, func(c *ownerContext, h *Hold) bool {
		return (all || c.together) && h.lease.m.Locker == m.Locker && public < h.lease.PublicName() && h.Err() == nil
	})
	return after != nil && InnermostOf(ctx, m, name) == nil
}
