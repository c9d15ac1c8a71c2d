package grant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A releasing is a release or a roll-back under way. What cannot be delivered is owed by the pool.
type releasing struct {
	round.Round
	g    *Grant
	keep time.Duration // 0: the grant ends now; else the masters keep it for so long, and then it ends
}

// release sends the end of g to every master that may have it, and returns the round. Nothing is waited for. The
// grant is ended, or was never live.
func (g *Grant) release(op string) *round.Round { return g.sendRelease(op, g.sent.to, false) }

// sendRelease is release to the masters of set. With back the waiter that asked keeps its place in the queues.
func (g *Grant) sendRelease(op string, set quorum.Set, back bool) *round.Round {
	k := g.k
	view := k.View()
	r := &releasing{g: g, keep: g.rest()}
	r.Init(k.Sender, view, op, r)
	rule := g.endRule(view.Config)
	r.Judge(rule, set)
	k.Enter()
	end := scripts.Ending{Grants: g.ids(), Waiter: g.ticket, Keep: r.keep}
	if back && g.ticket != nil {
		end.Back, end.AskBallot = true, g.sent.ballot
	}
	plain := view.Encoder.Release(g.keys, end)
	var unsent []round.Unsent
	for i := range r.Asked().All() {
		if !set.Has(i) {
			unsent = append(unsent, round.Unsent{Master: i, Vote: round.Vote{Vote: scripts.Vote{Kind: scripts.Missing}}})
			continue
		}
		err := pool.ErrSession
		if s := g.sent.session(i); s != 0 {
			// The ask went over this connection and came first: no ballot is needed.
			err = k.Sender.Pool.Send(i, plain, pool.Stamp{Session: s}, r)
		}
		if errors.Is(err, pool.ErrSession) {
			end.Ballot = g.sent.last(i)
			err = k.Sender.Pool.Send(i, view.Encoder.Release(g.keys, end), pool.Stamp{}, r)
		}
		if err != nil {
			unsent = append(unsent, round.Unsent{Master: i, Vote: round.Vote{Err: err}})
		}
	}
	r.CastAll(unsent)
	return &r.Round
}

// rest is for how long the masters keep the grant that ends now, because of its minimum hold.
func (g *Grant) rest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tenure.terms.MinHold == 0 {
		return 0
	}
	return g.tenure.terms.rest(g.heldLocked(g.k.Clock.Now()), g.k.Drift)
}

// endRule is what the end of the grant is confirmed by: the rule by which it was won, or the present one where that
// is one of its sets.
func (g *Grant) endRule(now *quorum.Config) quorum.Rule {
	if g.config == nil || now.Within(g.config) {
		return now.Rule
	}
	return g.config.Rule
}

// Booked implements round.Booker. A release that was not delivered is owed, without its waiter: late, it would put
// back one that is gone, or remove one that has asked again. If a minimum hold keeps the name, only the
// ballot is owed, so that a late ask is refused. The rest would come too late: the master keeps the name to the end of
// its TTL.
func (r *releasing) Booked(_ *round.Round, i int, v *round.Vote, _, last bool) {
	g := r.g
	if v.Kind == scripts.Failed && (!pool.Answered(v.Err) || pool.Transient(v.Err)) {
		keys, enc, ids := g.keys, r.View.Encoder, g.ids()
		if r.keep > 0 {
			ids = nil
		}
		g.k.Sender.Pool.Owe(i, pool.OwedRelease{
			Name: keys.Lock(), Grants: ids, Ballot: g.sent.last(i),
			CallFunc: func(grants []string, ballot int64) *scripts.Call {
				return enc.Release(keys, scripts.Ending{Grants: grants, Ballot: ballot})
			},
		})
	}
	if last {
		g.k.Leave()
	}
}

// grace is how long a caller whose context has ended still waits for the word of a quorum on a release.
const grace = 10 * time.Millisecond

var errUnconfirmed = errors.New("the masters did not confirm the release while the lock was valid")

// confirmed waits for a quorum's word on a release, which was sent in any case: until ctx ends and a moment longer, so
// that a release with a cancelled context is confirmed as a rule, and no longer than left. The error is a
// *round.Failure.
func confirmed(ctx context.Context, r *round.Round, left time.Duration) error {
	var over <-chan time.Time
	if left < r.View.Config.Slowest { // else the pool's own timeout comes first, and answers for every master
		over = time.After(max(left, grace))
	}
	select {
	case <-r.Done():
	case <-over:
		return r.Failure(round.ErrNoQuorum, errUnconfirmed)
	case <-ctx.Done():
		select {
		case <-r.Done():
		case <-time.After(grace):
			return r.Failure(nil, round.ContextError(ctx))
		}
	}
	t := r.Tally()
	switch {
	case r.Verdict() == quorum.Won:
		return nil
	case t.Rule.Lost(t.Of(scripts.Missing)):
		return r.Failure(ErrLost, nil)
	}
	return r.Failure(round.ErrNoQuorum, nil)
}

// Unlock ends h. The last Unlock of a grant ends the grant: it is handed on to the handle that next returns, or
// released. next is called with the grant's lock held and gets the validity left; it is nil where the grant may not
// be handed on.
//
// It sends whatever the state of ctx, and waits for the word of a quorum until ctx ends, and no longer than the
// validity lasts. Errors are *round.Failure: ErrReleased for the second call; the reason where h had ended before,
// its remains being released all the same; ErrNoQuorum or the error of ctx where the release was not confirmed. h is
// not held any more in each case.
func (h *Handle) Unlock(ctx context.Context, next Next) error {
	g := h.g
	now := g.k.Clock.Now()
	g.mu.Lock()
	if h.unlocked {
		g.mu.Unlock()
		return &round.Failure{Decision: ErrReleased}
	}
	h.unlocked = true
	n := g.endLocked(g.overLocked(now))
	g.tenure.depth--
	if err := h.ended; err != nil {
		last := g.tenure.depth == 0
		g.mu.Unlock()
		g.tell(n)
		if last && errors.Is(err, ErrLost) {
			g.release("unlock")
		}
		return &round.Failure{Decision: err}
	}
	left := g.leftLocked(now)
	if g.tenure.depth > 0 {
		return g.leaveInner(ctx, h, left)
	}
	h.lasted = now.Sub(g.tenure.began)
	if heir := g.heirLocked(next, now); heir != nil {
		g.handOn(h, heir, now)
		return nil
	}
	n = g.endLocked(ErrReleased)
	g.mu.Unlock()
	n.endContexts()
	g.k.Waiters.Releasing(g)
	r := g.release("unlock")
	g.k.Waiters.Over(g)
	err := confirmed(ctx, r, left)
	g.k.Events.Released(h, err)
	return err
}

// leaveInner takes h out of a grant that goes on, and has the masters told the depth. g.mu is held on entry.
func (g *Grant) leaveInner(ctx context.Context, h *Handle, left time.Duration) error {
	g.tenure.handles = slices.DeleteFunc(g.tenure.handles, func(other *Handle) bool { return other == h })
	h.endLocked(ErrReleased)
	view := g.k.View()
	r := g.k.Sender.New(view, "unlock", nil)
	r.Judge(g.endRule(view.Config), view.Config.Rule.All())
	_, unsent := r.SendAll(view.Encoder.Extend(g.keys, g.ID, 0, g.tenure.depth+g.tenure.coming), 0, round.NeedsConnection)
	g.mu.Unlock()
	h.endContexts(ErrReleased)
	r.CastAll(unsent)
	return confirmed(ctx, r, left)
}

// An Heir is who gets the grant from its last Unlock.
type Heir struct {
	Handle *Handle
	Terms  *Terms
	// Take is called once the grant is the heir's, with no lock held.
	Take func()
}

// Next chooses the heir of a grant with this much validity and TTL left; nil where there is none.
type Next func(left, ttl time.Duration) *Heir

// heirLocked is who gets the grant, nil where it is to be released: there are tokens and time left, and nobody
// re-enters.
func (g *Grant) heirLocked(next Next, now clock.Instant) *Heir {
	t := &g.tenure
	switch {
	case next == nil, t.terms.handOns() == 0, g.block.next > g.block.last, t.coming > 0,
		now.Sub(g.block.won) >= t.terms.HandOnTime:
		return nil
	}
	return next(g.validity.left(now), g.validity.ttl)
}

// handOn ends the tenure, of which h is the last handle, and begins that of the heir, with the next token. To the
// masters it is the same grant. g.mu is held on entry.
func (g *Grant) handOn(h *Handle, heir *Heir, now clock.Instant) {
	g.tenure.endLocked(ErrReleased)
	g.tenure.start(g, heir.Handle, g.block.next, heir.Terms, now)
	g.block.next++
	g.planLocked(now)
	g.mu.Unlock()
	h.endContexts(ErrReleased)
	g.k.Events.Released(h, nil)
	g.k.Events.Acquired(heir.Handle)
	heir.Take()
}

// Export ends the grant here without releasing it, and returns what another process needs to take it over: the id and
// the largest ballot that was sent, so that a late repair is refused. A repair of a master whose fence somebody has set
// into the future is left out: one such fence must not become everybody's.
func (h *Handle) Export() (id string, ballot int64, err error) {
	return h.pass(ErrExported, ErrExported)
}

// Downgrade is Export for a grant that another one of this Keeper replaces at once: it is released.
func (h *Handle) Downgrade() (id string, ballot int64, err error) { return h.pass(ErrReleased, nil) }

// pass ends the grant for a cause without releasing it, and tells that it was released with an outcome.
func (h *Handle) pass(cause, outcome error) (id string, ballot int64, err error) {
	if err := h.lockHeld(); err != nil {
		return "", 0, err
	}
	g := h.g
	if g.tenure.depth+g.tenure.coming > 1 {
		g.mu.Unlock()
		return "", 0, ErrNested
	}
	ballot = g.sent.ballot
	median := g.k.Ballots.Median(g.k.Clock.Now())
	for _, b := range g.sent.repair {
		if b <= median {
			ballot = max(ballot, b)
		}
	}
	n := g.endLocked(cause)
	g.mu.Unlock()
	g.tell(n)
	g.k.Events.Released(h, outcome)
	return g.ID, ballot, nil
}
