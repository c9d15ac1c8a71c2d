package lease

import (
	"context"
	"errors"
	"maps"
	"time"
)

// A Hold is the result of one Lock call: the first hold of an ownership, or a re-entry. The zero Hold becomes usable
// when Start, TakeOver, Reenter or a hand-off succeeds. All methods are safe for concurrent use.
type Hold struct {
	Public any // the redlock.Lock that contains this hold, for FromContext; set before the hold is used

	lease *Lease
	token int64

	// Guarded by lease.mu.
	ended    error                             // why the hold has ended; nil while it is held
	unlocked bool                              // whether Unlock was called
	lasted   time.Duration                     // duration of the ownership if Unlock of this hold has ended it, else 0
	done     chan struct{}                     // closed when the hold ends; nil: Done was not called
	contexts map[context.Context]*ownerContext // the key is the parent, or the ownerContext itself: see bind
	prune    int32                             // number of contexts at which bind drops those that have ended
	index    int32                             // index in ownership.holds
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Lease returns the lease of h.
func (h *Hold) Lease() *Lease { return h.lease }

// Token returns the fencing token.
func (h *Hold) Token() int64 { return h.token }

// Info describes the lease, with the token of h. If h has ended, no validity is left.
func (h *Hold) Info() Info {
	i := h.lease.Info()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	i.Token = h.token
	if h.ended != nil {
		i.Left = min(0, i.Left)
	}
	if h.lasted > 0 {
		i.Held = h.lasted
	}
	return i
}

// Lasted returns the duration of the ownership if Unlock of h has ended the ownership, else 0.
func (h *Hold) Lasted() time.Duration {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.lasted
}

// Forgo gives up the minimum hold of a lock that is not returned to its caller. If Close or the maximum hold has
// already ended the lock, and the masters keep the name for the minimum hold, Forgo releases the name. For a re-entry
// Forgo does nothing, because the caller has had the outer lock.
func (h *Hold) Forgo() {
	h.lease.mu.Lock()
	kept := false
	if o := &h.lease.ownership; o.single[0] == h {
		kept = o.terms.MinHold > 0 && (errors.Is(h.ended, ErrClosed) || errors.Is(h.ended, ErrMaxHold))
		o.terms.MinHold = 0
	}
	h.lease.mu.Unlock()
	if kept {
		h.lease.release()
	}
}

// Remaining returns how long the holder may rely on h: see leftLocked. The result is not positive if h has ended.
func (h *Hold) Remaining() time.Duration {
	now := h.lease.m.Clock.Now()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.ended != nil {
		return min(0, h.lease.validity.left(now))
	}
	return h.lease.leftLocked(now)
}

// HasLeft reports whether h is held, is within its maximum hold, and has at least the validity least.
func (h *Hold) HasLeft(least time.Duration) bool {
	now := h.lease.m.Clock.Now()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return h.ended == nil && h.lease.leftLocked(now) > 0 && h.lease.validity.left(now) >= least
}

// Err returns nil while h is held, and afterwards the error with which h has ended. It compares the validity with the
// clocks, and ends the lease if the validity has expired.
func (h *Hold) Err() error {
	err := h.lockHeld()
	if err == nil {
		h.lease.mu.Unlock()
	}
	return err
}

// Cause is Err for code that does not know the name of the lock: its error names the lock.
func (h *Hold) Cause() error {
	if err := h.Err(); err != nil {
		return h.lease.named(err)
	}
	return nil
}

// lockHeld locks the lease of h if h is held. Otherwise it locks nothing, and returns why h has ended.
func (h *Hold) lockHeld() error {
	l := h.lease
	now := l.m.Clock.Now()
	l.mu.Lock()
	end := l.endLocked(l.expiredLocked(now))
	err := h.ended
	if err != nil {
		l.mu.Unlock()
		end.finish()
	}
	return err
}

// ApplyTerms applies Extend and MaxHold of terms to the lease; MaxHold counts from now. For a re-entry ApplyTerms does
// nothing, because these terms belong to the first hold.
func (h *Hold) ApplyTerms(terms *Terms) {
	if h.lockHeld() != nil {
		return
	}
	defer h.lease.mu.Unlock()
	now, o := h.lease.m.Clock.Now(), &h.lease.ownership
	if o.single[0] != h {
		return
	}
	o.terms.Extend, o.terms.MaxHold = terms.Extend, terms.MaxHold
	if o.terms.MaxHold > 0 {
		o.terms.MaxHold += now.Sub(o.began)
	}
	h.lease.scheduleLocked(now)
}

// Done returns a channel that is closed when h ends.
func (h *Hold) Done() <-chan struct{} {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.ended != nil {
		return closedChan
	}
	if h.done == nil {
		h.done = make(chan struct{})
	}
	return h.done
}

// Requested returns a channel that is closed when another client requests the release of the lock. It makes the Locker
// subscribe to its inbox. It returns nil for a hold that has ended.
func (h *Hold) Requested() <-chan struct{} {
	if h.lockHeld() != nil {
		return nil
	}
	l := h.lease
	defer l.mu.Unlock()
	l.listenLocked()
	o := &l.ownership
	if o.requested == nil {
		o.requested = make(chan struct{})
		if l.inbox.requested {
			close(o.requested)
		}
	}
	return o.requested
}

// leastPrune is the minimum of Hold.prune for a hold with contexts.
const leastPrune = 32

// bind makes c end when h ends, or immediately if h has ended, and returns c. If a context is already bound for key,
// bind cancels c and returns that context.
func (h *Hold) bind(key context.Context, c *ownerContext) *ownerContext {
	h.lease.mu.Lock()
	if err := h.ended; err != nil { // endContexts now uses h.contexts without the lock
		h.lease.mu.Unlock()
		c.cancel(h.lease.named(err))
		return c
	}
	known := h.contexts[key]
	if known == nil {
		if len(h.contexts) >= int(h.prune) {
			maps.DeleteFunc(h.contexts, func(_ context.Context, c *ownerContext) bool { return c.Context.Err() != nil })
			h.prune = int32(max(leastPrune, 2*len(h.contexts)))
		}
		if h.contexts == nil {
			h.contexts = map[context.Context]*ownerContext{}
		}
		h.contexts[key] = c
	}
	h.lease.mu.Unlock()
	if known != nil {
		c.cancel(context.Canceled)
		return known // of the same parent
	}
	return c
}

func (h *Hold) endLocked(cause error) {
	h.ended = cause
	if h.done != nil {
		close(h.done)
	}
}

// endContexts ends the contexts of a hold that has ended; none is added afterwards.
func (h *Hold) endContexts(cause error) {
	for _, c := range h.contexts {
		c.cancel(h.lease.named(cause))
	}
	h.contexts = nil
}
