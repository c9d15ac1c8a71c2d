package grant

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A Handle is one Lock of a grant: the first one, or a re-entry. It is not the text that Lock.Export gives. The zero
// Handle becomes usable when Begin, Reenter or a handing on succeeds. All methods are safe for concurrent use.
type Handle struct {
	g     *Grant
	token int64

	// Guarded by g.mu.
	ended    error         // nil while it is held
	unlocked bool          // Unlock was called
	lasted   time.Duration // how long the tenure lasted that the Unlock has ended
	done     chan struct{}
	contexts map[context.Context]*owning // by parent, or by themselves: see bind
	prune    int                         // the number of contexts at which those that have ended are dropped
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Grant is what h is a handle of.
func (h *Handle) Grant() *Grant { return h.g }

// Token is the fencing token.
func (h *Handle) Token() int64 { return h.token }

// Info describes the grant as it is for h.
func (h *Handle) Info() Info {
	i := h.g.Info()
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	i.Token = h.token
	if h.ended != nil {
		i.Left = min(0, i.Left)
	}
	if h.lasted > 0 {
		i.Held = h.lasted
	}
	return i
}

// Lasted is how long the tenure lasted that the Unlock of h has ended; 0 where it ended otherwise, or goes on.
func (h *Handle) Lasted() time.Duration {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	return h.lasted
}

// Forgo gives up the minimum hold of a lock that its caller does not get, whether it has ended or not. Where Close has
// ended it and had the name kept, the name is released. That of a re-entry is not given up: the outer lock was had.
func (h *Handle) Forgo() {
	h.g.mu.Lock()
	kept := false
	if t := &h.g.tenure; t.alone[0] == h {
		kept = t.terms.MinHold > 0 && errors.Is(h.ended, ErrClosed)
		t.terms.MinHold = 0
	}
	h.g.mu.Unlock()
	if kept {
		h.g.release("unlock")
	}
}

// Remaining is the validity left; not positive for a handle that has ended.
func (h *Handle) Remaining() time.Duration { return h.left((*Grant).leftLocked) }

// Validity is what the masters have promised, however long the lock may be held; not positive for a handle that has
// ended.
func (h *Handle) Validity() time.Duration {
	return h.left(func(g *Grant, now clock.Instant) time.Duration { return g.validity.left(now) })
}

func (h *Handle) left(of func(*Grant, clock.Instant) time.Duration) time.Duration {
	now := h.g.k.Clock.Now()
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.ended != nil {
		return min(0, h.g.validity.left(now))
	}
	return of(h.g, now)
}

// Err is nil while h is held, and then why it ended. It compares with the clocks: a grant whose validity is over is
// ended by the call that finds out.
func (h *Handle) Err() error {
	err := h.lockHeld()
	if err == nil {
		h.g.mu.Unlock()
	}
	return err
}

// lockHeld locks the grant of h while h is held. Else it returns why h has ended, and nothing is locked.
func (h *Handle) lockHeld() error {
	g := h.g
	now := g.k.Clock.Now()
	g.mu.Lock()
	n := g.endLocked(g.overLocked(now))
	err := h.ended
	if err != nil {
		g.mu.Unlock()
		g.tell(n)
	}
	return err
}

// Settle sets whether the grant is extended from now on, and its longest hold from now. It does nothing for a re-entry:
// these are terms of the first handle.
func (h *Handle) Settle(terms *Terms) {
	if h.lockHeld() != nil {
		return
	}
	defer h.g.mu.Unlock()
	now, t := h.g.k.Clock.Now(), &h.g.tenure
	if t.handles[0] != h {
		return
	}
	t.terms.Extend, t.terms.MaxHold = terms.Extend, terms.MaxHold
	if t.terms.MaxHold > 0 {
		t.terms.MaxHold += now.Sub(t.began)
	}
	h.g.planLocked(now)
}

// Done is closed when h ends.
func (h *Handle) Done() <-chan struct{} {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.ended != nil {
		return closedChan
	}
	if h.done == nil {
		h.done = make(chan struct{})
	}
	return h.done
}

// leastPrune is the number of contexts of a handle at which those that have ended by themselves are first dropped.
const leastPrune = 32

// bind makes c end when h ends, or at once if it has, and returns it; or the context that is bound for key already.
func (h *Handle) bind(key context.Context, c *owning) *owning {
	h.g.mu.Lock()
	var known *owning
	err := h.ended
	if err == nil { // afterwards the contexts belong to endContexts
		known = h.contexts[key]
	}
	if known == nil && err == nil {
		if len(h.contexts) >= h.prune {
			maps.DeleteFunc(h.contexts, func(_ context.Context, c *owning) bool { return c.Context.Err() != nil })
			h.prune = max(leastPrune, 2*len(h.contexts))
		}
		if h.contexts == nil {
			h.contexts = map[context.Context]*owning{}
		}
		h.contexts[key] = c
	}
	h.g.mu.Unlock()
	if err != nil {
		c.cancel(err)
	}
	if known != nil {
		c.cancel(context.Canceled)
		return known // of the same parent
	}
	return c
}

func (h *Handle) endLocked(cause error) {
	h.ended = cause
	if h.done != nil {
		close(h.done)
	}
}

// endContexts ends the contexts of a handle that has ended: nobody adds to them any more.
func (h *Handle) endContexts(cause error) {
	for _, c := range h.contexts {
		c.cancel(cause)
	}
	h.contexts = nil
}
