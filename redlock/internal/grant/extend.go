package grant

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An extension is one round that prolongs a grant: by the Keeper, by Extend or by a re-entry; or, with a TTL of 0,
// one that only writes the depth.
type extension struct {
	round.Round
	g        *Grant
	ttl      time.Duration
	keepers  bool       // the Keeper has sent it
	unsent   []unsent   // votes of masters that were not asked, cast once no lock is held
	repaired quorum.Set // masters that were sent a repair by this round; guarded by g.mu
}

type unsent struct {
	master int
	vote   round.Vote
}

// extendLocked queues a round that prolongs the grant to ttl, or leaves its time alone where ttl is 0, and writes its
// depth. g.mu is held and g is live. The caller calls cast once it has given up the lock.
func (g *Grant) extendLocked(op string, ttl time.Duration, keepers bool) *extension {
	k := g.k
	view := k.View()
	e := &extension{g: g, ttl: ttl, keepers: keepers}
	e.Init(k.Sender, view, op, e)
	if ttl == 0 {
		e.Judge(g.endRule(view.Config), view.Config.Rule.All())
	}
	g.renewal.soon = false
	call := view.Encoder.Extend(g.keys, g.ID, ttl, g.tenure.depth+g.tenure.coming)
	for i := range e.Asked().All() {
		v, no := k.Sender.Refusal(view, i, ttl, true, op)
		if !no {
			m := &view.Masters[i]
			if err := k.Sender.Pool.Send(i, call, pool.Stamp{Session: m.Session, Text: m.Record}, &e.Round); err != nil {
				v, no = round.Vote{Err: err}, true
			}
		}
		if no {
			e.unsent = append(e.unsent, unsent{i, v})
		}
	}
	return e
}

// cast casts the votes of the masters that were not asked.
func (e *extension) cast() {
	for _, u := range e.unsent {
		e.Cast(u.master, u.vote)
	}
}

// Booked implements round.Booker.
func (e *extension) Booked(r *round.Round, i int, v *round.Vote, decides, _ bool) {
	g := e.g
	verdict := r.Verdict()
	now := g.k.Clock.Now()
	g.mu.Lock()
	gone := g.bookLocked(r, i, v.Kind)
	if g.state == live && decides && verdict == quorum.Won {
		gone = e.confirmedLocked(now)
	}
	if g.state == live && decides && verdict == quorum.Lost && e.keepers {
		g.renewal.running = false
		g.renewal.failed++
		g.renewal.soon = true
		g.renewal.retryAt = now.Add(g.validity.retryIn(g.renewal.failed, now))
		g.planLocked(now)
	}
	if g.state == live && e.ttl > 0 && !gone {
		e.repairLocked(r)
	}
	g.mu.Unlock()
	if gone {
		g.lose(ErrLost)
		return
	}
	if decides && e.ttl > 0 {
		var err error
		if verdict != quorum.Won {
			err = r.Failure(round.ErrNoQuorum, nil)
		}
		g.k.Events.Extended(g, err)
	}
}

// confirmedLocked takes a majority's "still yours" into account, and reports whether too many masters have lost the
// grant by the rule that it goes by from here on.
func (e *extension) confirmedLocked(now clock.Instant) (gone bool) {
	g := e.g
	if e.ttl > 0 {
		g.config = e.View.Config
		v := validity{start: e.Start, ttl: e.ttl, drift: g.k.Drift.Of(e.ttl)}
		if v.left(now) > g.validity.left(now) {
			g.validity = v
		}
		g.renewal.failed = 0
		if e.keepers {
			g.renewal.running = false
		}
		g.planLocked(now)
	}
	return g.config.Rule.Lost(g.on.lost)
}

// repairLocked gives the grant to the masters that lack it, once a majority of the same round has confirmed it. In a
// joint configuration a majority of one set is enough: a grant that was won by the old set alone is so given to the
// next.
func (e *extension) repairLocked(r *round.Round) {
	t := r.Tally()
	if !t.Rule.WonHalf(t.Of(scripts.Granted)) {
		return
	}
	for i := range (t.Of(scripts.Missing) &^ e.repaired).All() {
		e.repaired |= quorum.One(i)
		e.g.repairLocked(i, r.Vote(i), e.g.validity.ttl, e.g.tenure.token)
	}
}

// repairLocked gives a master what the others have, by an acquire with a fresh ballot and the old token. It is called
// only after a majority has confirmed the grant, with g.mu held and g not ended. A master on which another grant
// stands refuses; it is tried again with the next extension.
func (g *Grant) repairLocked(i int, v round.Vote, ttl time.Duration, token int64) {
	k := g.k
	view := k.View()
	if _, no := k.Sender.Refusal(view, i, ttl, true, "repair"); no {
		return
	}
	ballot, err := k.Ballots.Repair(k.Clock.Now(), max(v.Fence, token, g.sent.last(i)))
	if err != nil {
		return
	}
	call := view.Encoder.Repair(g.keys, g.ID, ttl, ballot, token, max(1, g.tenure.depth+g.tenure.coming))
	before := g.sent.touchRepair(view, i, ballot)
	m := &view.Masters[i]
	to := &repairing{g: g, then: view, ballot: ballot, before: before}
	// The next extension sees whether it worked.
	_ = k.Sender.Pool.Send(i, call, pool.Stamp{Session: m.Session, Text: m.Record}, to)
}

// repairDuring is repair for an import that one of two sets has confirmed.
func (g *Grant) repairDuring(r *round.Round, i int, terms *Terms, token int64) {
	v := r.Vote(i)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repairLocked(i, v, terms.TTL, token)
}

// A repairing receives the answer to a repair.
type repairing struct {
	g              *Grant
	then           *admission.View
	ballot, before int64
}

// Reply implements pool.Receiver.
func (p *repairing) Reply(i int, value any, err error) {
	if err != nil {
		return
	}
	v, err := scripts.DecodeVote(value)
	if err != nil {
		return
	}
	g := p.g
	g.mu.Lock()
	switch v.Kind {
	case scripts.Granted:
		g.on.gain(i)
		g.checkLocked(p.then, g.k.View(), i)
	case scripts.Ahead: // it has had no effect, and a release with this ballot would be refused the raising of the fence
		if g.sent.repair[i] == p.ballot {
			g.sent.repair[i] = p.before
		}
	}
	g.mu.Unlock()
	if v.Kind == scripts.Granted {
		g.k.Events.Repaired(g, i)
	}
}

// Extend prolongs the grant by its TTL from now and waits for the decision. On failure nothing has changed. It
// succeeds only with validity left at its return.
func (h *Handle) Extend(ctx context.Context) error {
	for try := 0; ; try++ {
		if err := h.Err(); err != nil {
			return &round.Failure{Decision: err}
		}
		g := h.g
		g.mu.Lock()
		if h.ended != nil {
			defer g.mu.Unlock()
			return &round.Failure{Decision: h.ended}
		}
		e := g.extendLocked("extend", g.tenure.terms.TTL, false)
		g.mu.Unlock()
		e.cast()
		err := e.wait(ctx, h)
		if err == nil || try > 0 || !e.worthAnother(ctx) {
			return err
		}
	}
}

// wait waits for the decision of e, and returns nil where a majority confirmed the grant and h is held at this instant.
func (e *extension) wait(ctx context.Context, h *Handle) error {
	select {
	case <-e.Done():
	case <-ctx.Done():
		return e.Failure(nil, round.ContextError(ctx))
	case <-h.g.k.Closing:
		return e.Failure(ErrClosed, nil)
	}
	if err := h.Err(); err != nil {
		return e.Failure(err, nil)
	}
	return decided(&e.Round)
}

// worthAnother reports whether the round has given the grant to masters that had not heard of it, so that another
// round may be confirmed: in a joint configuration.
func (e *extension) worthAnother(ctx context.Context) bool {
	bounded, cancel := context.WithTimeout(ctx, e.View.Config.Slowest)
	defer cancel()
	if !e.View.Config.Rule.Joint() || !e.Complete(bounded) {
		return false
	}
	e.g.mu.Lock()
	defer e.g.mu.Unlock()
	return e.repaired != 0
}

// Reenter makes inner one more handle of the grant of h: it is extended, and its depth is one more. A failure leaves
// the grant as it was. It succeeds only with the wanted validity left.
func (h *Handle) Reenter(ctx context.Context, inner *Handle, terms *Terms) error {
	if err := h.Err(); err != nil {
		return &round.Failure{Decision: err}
	}
	g := h.g
	g.mu.Lock()
	if h.ended != nil {
		defer g.mu.Unlock()
		return &round.Failure{Decision: h.ended}
	}
	g.tenure.coming++
	e := g.extendLocked("re-enter", max(g.tenure.terms.TTL, terms.TTL), false)
	g.mu.Unlock()
	e.cast()
	err := e.wait(ctx, h)
	now := g.k.Clock.Now()
	g.mu.Lock()
	g.tenure.coming--
	if left := g.validity.left(now); err == nil && h.ended != nil { // it ended meanwhile
		err = e.Failure(h.ended, nil)
	} else if err == nil && left < terms.Least {
		err = e.Failure(tooSlow(left, terms), nil)
	}
	switch {
	case g.state != live:
		g.mu.Unlock()
		return err
	case err == nil:
		inner.g, inner.token = g, g.tenure.token
		g.tenure.depth++
		g.tenure.handles = append(g.tenure.handles, inner)
		g.tenure.terms.TTL = max(g.tenure.terms.TTL, terms.TTL)
		g.mu.Unlock()
		return nil
	}
	undo := g.extendLocked("unlock", 0, false)
	g.mu.Unlock()
	undo.cast()
	return err
}
