package grant

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An Ask is one round for one new grant. One ask has one id and one ballot: what is asked for again is a new grant.
type Ask struct {
	Op     string // for errors
	Name   string
	Keys   *scripts.Keys
	Terms  *Terms
	Ticket *scripts.Ticket // nil: the caller does not wait in the masters' queues
	// Complete is called when the last vote of the round is in; nil: nobody is told.
	Complete func()
}

// Ask asks the masters of the present view for a new grant, and waits for their decision or the end of ctx. On
// success the grant is won and not yet live: see Grant.Begin. On failure everything that may have been granted is
// being rolled back, and nothing of that is waited for; the ticket keeps its place in the queues. The error is a
// *round.Failure, or one of ballots. The round is nil where nothing was sent.
func (k *Keeper) Ask(ctx context.Context, a *Ask) (*Grant, *round.Round, error) {
	view := k.View()
	if !view.Config.Rule.Won(view.Voting) {
		err := k.Sender.NoQuorum(view, a.Op, nil)
		k.Events.Unasked(a.Op, a.Name, err)
		return nil, nil, err
	}
	g := k.newGrant(a.Name, a.Keys, a.Ticket)
	g.asking.complete = a.Complete
	r := k.Sender.New(view, a.Op, &g.asking)
	r.Key = a.Keys.Lock()
	won := false
	defer func() {
		if !won { // also where a trace has panicked
			g.undo(r)
		}
	}()
	first, last, err := k.Ballots.Propose(r.Start, a.Name, 0, a.Terms.HandOns)
	if err != nil {
		return nil, nil, err
	}
	g.sendAsk(r, view.Encoder.Acquire(a.Keys, g.ID, a.Terms.TTL, first, last, a.Ticket), a.Terms.TTL, last, false)
	err = g.win(ctx, r, a.Terms, first, last)
	k.Events.Asked(g, r, first, k.Clock.Now().Sub(r.Start), err)
	if err != nil {
		return nil, r, err
	}
	won = true
	return g, r, nil
}

// sendAsk sends a call that may create the grant to every master that may vote.
func (g *Grant) sendAsk(r *round.Round, call *scripts.Call, ttl time.Duration, ballot int64, anyPhase bool) {
	sent, unsent := r.SendAll(call, ttl, anyPhase)
	for i := range sent.All() {
		g.sent.touch(r.View, i, ballot)
	}
	r.CastAll(unsent)
}

// await waits for the decision of a round, until ctx ends or the Keeper closes. It returns nil where the round was won.
func (k *Keeper) await(ctx context.Context, r *round.Round) error {
	select {
	case <-r.Done():
	case <-ctx.Done():
		return r.Failure(nil, round.ContextError(ctx))
	case <-k.Closing:
		return r.Failure(nil, ErrClosed)
	}
	t := r.Tally()
	switch {
	case r.Verdict() == quorum.Won:
		return nil
	case r.TooLong():
		return r.Failure(round.ErrGuardTime, nil)
	case t.HeldByOther():
		return r.Failure(round.ErrHeld, nil)
	}
	return r.Failure(round.ErrNoQuorum, nil)
}

// win waits for a round that asks for g. It returns nil where the grant is won: a quorum granted in time.
func (g *Grant) win(ctx context.Context, r *round.Round, terms *Terms, first, last int64) error {
	if err := g.k.await(ctx, r); err != nil {
		g.k.learn(r, g.Name)
		return err
	}
	now := g.k.Clock.Now()
	v := validity{start: r.Start, ttl: terms.TTL, drift: g.k.Drift.Of(terms.TTL)}
	if left := v.left(now); left < terms.Least {
		return r.Failure(tooSlow(left, terms), nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.validity, g.config = v, r.View.Config
	g.block = block{next: first, last: last, won: now}
	return nil
}

func tooSlow(left time.Duration, terms *Terms) error {
	return fmt.Errorf("%w: %v of validity left of %v, at least %v wanted",
		round.ErrTooSlow, left.Round(time.Microsecond), terms.TTL, terms.Least)
}

// learn takes from the refusals what the next ask needs to know: fences and clocks.
func (k *Keeper) learn(r *round.Round, name string) {
	now := k.Clock.Now()
	arrived := r.Start.Add(now.Sub(r.Start) / 2)
	t := r.Tally()
	floor := int64(0)
	for _, set := range t.Rule.Sets() {
		var fences []int64
		r.Each(func(i int, v *round.Vote) {
			if v.Time > 0 && set.Has(i) {
				k.Ballots.Refine(i, v.Time, arrived, now.Sub(r.Start)/2)
				if !t.Unable().Has(i) { // those do not tell their fence, or could not grant whatever it is
					fences = append(fences, v.Fence)
				}
			}
		})
		ill := t.Unable() & set &^ r.View.Connecting // those may be well: nothing is known of them yet
		floor = max(floor, ballot.Floor(fences, set.Len(), ill.Len()))
	}
	k.Ballots.Saw(now, name, floor)
}

// An asking books the votes of a round that may create the grant.
type asking struct {
	g        *Grant
	complete func()
}

// Booked implements round.Booker.
func (a *asking) Booked(r *round.Round, i int, v *round.Vote, _, last bool) {
	if last && a.complete != nil {
		defer a.complete()
	}
	a.g.mu.Lock()
	a.g.bookLocked(r, i, v.Kind)
	n := a.g.endLocked(a.g.goneLocked())
	a.g.mu.Unlock()
	a.g.tell(n)
}

// undo releases what a round that was not won has been granted, or may still be. It returns at once.
func (g *Grant) undo(r *round.Round) {
	set := quorum.Set(0)
	r.Each(func(i int, v *round.Vote) {
		if v.Kind == scripts.Granted || v.Unsure() {
			set |= quorum.One(i)
		}
	})
	g.rollBack(set)
}

// rollBack ends a grant that is not live, and releases it on those masters of set that may have it.
func (g *Grant) rollBack(set quorum.Set) {
	g.mu.Lock()
	g.state = ended
	g.mu.Unlock()
	if set &= g.sent.to; set != 0 {
		g.sendRelease("roll back", set, true)
	}
}

// Import asks for the grant that another process has exported: under a new id, on the masters that still have the
// previous one. It is one grant for all rounds, since what an earlier round has taken over is ours in the next:
// Import sends one round, and is called again on the same Grant until it succeeds or the caller gives up and calls
// Abandon.
func (g *Grant) Import(ctx context.Context, op string, terms *Terms, above int64) error {
	k := g.k
	view := k.View()
	r := k.Sender.New(view, op, &g.asking)
	first, last, err := k.Ballots.Propose(r.Start, g.Name, max(above, g.sent.ballot), terms.HandOns)
	if err != nil {
		return err
	}
	g.sent.mixed |= r.Asked() // an ask of the exporter, over a connection of its own, may still arrive
	g.sendAsk(r, view.Encoder.Import(g.keys, g.ID, g.replaces, terms.TTL, first, last), terms.TTL, last, true)
	err = g.win(ctx, r, terms, first, last)
	switch f, ok := round.AsFailure(err); {
	case !ok:
		g.sent.to |= r.Asked() // a master that was not reached may still have what the exporter left
	case r.Verdict() == quorum.Lost:
		g.importFailed(ctx, r, f, terms, first)
	}
	k.Events.Asked(g, r, first, k.Clock.Now().Sub(r.Start), err)
	return err
}

// importFailed says in f what became of an import that was lost. Where a majority of one of two sets has confirmed it,
// the masters that know nothing of it are given it, and the next round may win.
func (g *Grant) importFailed(ctx context.Context, r *round.Round, f *round.Failure, terms *Terms, first int64) {
	t := r.Tally()
	if t.Rule.Joint() && r.Complete(ctx) {
		t = r.Tally()
		if t.Rule.WonHalf(t.Of(scripts.Granted)) {
			for i := range t.Of(scripts.Missing).All() {
				g.mu.Lock()
				g.repairLocked(i, r.Vote(i), terms.TTL, first)
				g.mu.Unlock()
			}
			f.Decision = round.ErrNoQuorum
			return
		}
	}
	if !t.Rule.WonHalf(t.Rule.All() &^ t.Of(scripts.Missing) &^ t.Of(scripts.Held)) {
		f.Decision = ErrLost
	}
}

// Abandon releases what an import has taken over.
func (g *Grant) Abandon() { g.rollBack(g.sent.to) }

// newGrant makes a grant with an id of its own.
func (k *Keeper) newGrant(name string, keys *scripts.Keys, t *scripts.Ticket) *Grant {
	g := &Grant{k: k, Name: name, keys: keys, ticket: t}
	g.ID = scripts.GrantID(k.Owner, k.number.Add(1), k.Label)
	g.asking.g = g
	return g
}

// NewImport makes the grant that takes over the one with the previous id.
func (k *Keeper) NewImport(name string, keys *scripts.Keys, previous string) *Grant {
	g := k.newGrant(name, keys, nil)
	g.replaces = previous
	return g
}
