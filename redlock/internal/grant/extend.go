package grant

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An extension is one round that prolongs a grant: by the Keeper, by Extend or by a re-entry.
type extension struct {
	round.Round
	g        *Grant
	ttl      time.Duration
	retry    clock.Instant // of one by the Keeper: when the next is due unless this one is confirmed
	unsent   []round.Unsent
	repaired quorum.Set // masters that were sent a repair by this round; guarded by g.mu
}

// extendLocked queues a round that prolongs the grant, to ttl where that is longer than its terms say, and writes its
// depth. g.mu is held and g is live. The caller casts what is unsent once it has given up the lock.
func (g *Grant) extendLocked(op string, ttl time.Duration) *extension {
	view := g.k.View()
	e := &extension{g: g}
	e.Init(g.k.Sender, view, op, e)
	ttl = max(ttl, g.tenure.terms.keep(g.heldLocked(e.Start), g.k.Drift))
	e.ttl = ttl
	_, e.unsent = e.SendAll(view.Encoder.Extend(g.keys, g.ID, ttl, g.tenure.depth+g.tenure.coming), ttl, round.NeedsConnection)
	return e
}

// Booked implements round.Booker.
func (e *extension) Booked(r *round.Round, i int, v *round.Vote, decides, _ bool) {
	g := e.g
	won := r.Verdict() == quorum.Won
	g.mu.Lock()
	g.bookLocked(r, i, v.Kind)
	if g.state == live && decides && won {
		e.confirmedLocked(g.k.Clock.Now())
	}
	n := g.endLocked(g.goneLocked())
	if g.state == live {
		e.repairLocked()
	}
	g.mu.Unlock()
	g.tell(n)
	if !decides || n.cause != nil {
		return
	}
	var err error
	if !won {
		g.k.readClocks(r, g.k.Clock.Now())
		err = r.Failure(round.ErrNoQuorum, nil)
	}
	g.k.Events.Extended(g, err)
}

// confirmedLocked takes the word of a majority into account.
func (e *extension) confirmedLocked(now clock.Instant) {
	g := e.g
	g.config = e.View.Config
	v := validity{start: e.Start, ttl: e.ttl, drift: g.k.Drift.Of(e.ttl)}
	if v.left(now) > g.validity.left(now) {
		g.validity = v
	}
	if g.renewal.retry == e.retry {
		g.renewal.retry = clock.Instant{}
	}
	g.planLocked(now)
}

// repairLocked gives the grant back to the masters that lack it, as far as the round proves that they may have it.
func (e *extension) repairLocked() {
	for i := range (repairable(&e.Round, e.ttl) &^ e.repaired).All() {
		e.repaired |= quorum.One(i)
		e.g.repairLocked(&e.Round, i, e.ttl, e.g.tenure.token)
	}
}

// Extend prolongs the grant by its TTL from now and waits for the decision. On failure nothing has changed. It
// succeeds only with validity left at its return.
func (h *Handle) Extend(ctx context.Context) error {
	e, err := h.prolong(ctx, "extend", 0, 0)
	if err != nil && e != nil && e.worthAnother(ctx) {
		_, err = h.prolong(ctx, "extend", 0, 0)
	}
	return err
}

// prolong sends an extension, to ttl where that is longer than before, with as many handles more, and waits for the
// decision. It returns nil only where a majority confirmed the grant and h is held at this instant. The extension is
// nil where nothing was sent.
func (h *Handle) prolong(ctx context.Context, op string, ttl time.Duration, more int) (*extension, error) {
	if err := h.lockHeld(); err != nil {
		return nil, &round.Failure{Decision: err}
	}
	g := h.g
	g.tenure.coming += more
	e := g.extendLocked(op, ttl)
	g.mu.Unlock()
	e.CastAll(e.unsent)
	err := g.k.await(ctx, &e.Round)
	if f, ok := round.AsFailure(err); ok && f.Cause != nil {
		return e, err
	}
	if ended := h.Err(); ended != nil {
		return e, e.Failure(ended, nil)
	}
	return e, err
}

// worthAnother reports whether the round has given the grant to masters that had not heard of it, so that another
// round may be confirmed: in a joint configuration.
func (e *extension) worthAnother(ctx context.Context) bool {
	if !e.View.Config.Rule.Joint() || !e.Complete(ctx) {
		return false
	}
	e.g.mu.Lock()
	defer e.g.mu.Unlock()
	return e.repaired != 0
}

// Reenter makes inner one more handle of the grant of h: it is extended, and its depth is one more. A failure leaves
// the grant as it was. It succeeds only with the wanted validity left.
func (h *Handle) Reenter(ctx context.Context, inner *Handle, terms *Terms) error {
	e, err := h.prolong(ctx, "re-enter", terms.TTL, 1)
	if e == nil {
		return err
	}
	g := h.g
	now := g.k.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &g.tenure
	t.coming--
	if left := g.validity.left(now); err == nil && h.ended != nil { // it ended meanwhile
		err = e.Failure(h.ended, nil)
	} else if err == nil && left < terms.Least {
		err = e.Failure(tooSlow(left, terms), nil)
	}
	if err != nil {
		g.extendSoonLocked(now, 0) // the masters have been told another depth
		return err
	}
	inner.g, inner.token = g, t.token
	t.depth++
	t.handles = append(t.handles, inner)
	t.terms.TTL = max(t.terms.TTL, terms.TTL)
	return nil
}
