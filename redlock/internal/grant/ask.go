package grant

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An Ask is one round for one new grant, with one id and one block of ballots. A call that asks again asks for another
// grant, with another id.
type Ask struct {
	Op     string // for errors
	Name   string
	Keys   *scripts.Keys
	Terms  *Terms
	Ticket *scripts.Ticket // nil: the caller does not wait in the masters' queues
	// Complete is called when the last vote of the round is in; nil: nobody is told.
	Complete func()
	Course   *Course // nil: nobody wants to know
	// Patience bounds how long the call waits while too many rounds are under way; 0: only the context does.
	Patience time.Duration
}

// A Course is what a call for a new grant has gone through, for those who watch it. The goroutine of the call alone
// uses it. The nil Course takes note of nothing.
type Course struct {
	Rounds int // that were sent
	// Granted of N masters had said yes when the last round was decided or given up, and Quorum were needed.
	Granted, Quorum, N int
	// Place is where the call stood when it first waited in a queue, from 1; 0: it has not waited in one.
	Place int
}

// took takes note of a round.
func (c *Course) took(r *round.Round) {
	if c == nil {
		return
	}
	t := r.Tally()
	c.Rounds++
	c.Granted, c.Quorum, c.N = t.Of(scripts.Granted).Len(), t.Rule.Least(), t.Rule.N()
	place := 0
	r.Each(func(_ int, v *round.Vote) {
		if v.Kind == scripts.Held {
			place = max(place, v.Place+1)
		}
	})
	c.StoodAt(place)
}

// StoodAt takes note of the place in a queue.
func (c *Course) StoodAt(place int) {
	if c != nil && c.Place == 0 {
		c.Place = place
	}
}

// Ask asks the masters of the present view for a new grant, and waits for their decision or the end of ctx. On
// success the grant is won and not yet live: see Grant.Begin. On failure everything that may have been granted is
// being rolled back, and Ask does not wait for that; the ticket keeps its place in the queues. The error is a
// *round.Failure, or one of ballots. The round is nil if nothing was sent: no quorum votes, or limiter.enter failed.
func (k *Keeper) Ask(ctx context.Context, a *Ask) (*Grant, *round.Round, error) {
	if err := k.rounds.enter(ctx, k.Closing, a.Patience); err != nil {
		return nil, nil, k.unasked(a, overloaded(err))
	}
	view := k.View() // after the wait
	if !view.Config.Rule.Won(view.Voting) {
		time.AfterFunc(failurePace, func() { k.rounds.leave(false) })
		return nil, nil, k.unasked(a, k.Sender.NoQuorum(view, a.Op, nil))
	}
	g := k.newGrant(a.Name, a.Keys, a.Ticket)
	g.asking.complete = a.Complete
	g.asking.active.Store(true)
	r := k.Sender.New(view, a.Op, &g.asking)
	r.Key, r.Grant = a.Keys.Lock(), g.ID
	first, last, err := k.Ballots.Propose(r.Start, a.Name, 0, a.Terms.handOns())
	if err != nil {
		k.rounds.leave(true)
		return nil, nil, err // nothing was sent
	}
	ttl := a.Terms.keep(0, k.Drift)
	g.sendAsk(r, view.Encoder.Acquire(a.Keys, g.ID, ttl, first, last, a.Ticket), ttl, last, round.NeedsVote)
	err = g.win(ctx, r, a.Terms, first, last)
	a.Course.took(r)
	k.Events.Asked(g, r, first, err)
	if err != nil {
		g.undo(r)
		return nil, r, err
	}
	return g, r, nil
}

// sendAsk sends a call that may create the grant to every master that is as the call needs it.
func (g *Grant) sendAsk(r *round.Round, call *scripts.Call, ttl time.Duration, ballot int64, need round.Need) {
	sent, unsent := r.SendAll(call, ttl, need)
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
	if r.Verdict() == quorum.Won {
		return nil
	}
	return r.Failure(r.Decision(), nil)
}

// win waits for a round that asks for g. It returns nil where the grant is won: a quorum granted in time.
func (g *Grant) win(ctx context.Context, r *round.Round, terms *Terms, first, last int64) error {
	if err := g.k.await(ctx, r); err != nil {
		g.k.learn(r, g.Name)
		return err
	}
	now := g.k.Clock.Now()
	ttl := terms.keep(0, g.k.Drift)
	v := validity{start: r.Start, ttl: ttl, drift: g.k.Drift.Of(ttl)}
	if left := v.left(now); left < terms.Least {
		return r.Failure(tooSlow(left, terms), nil)
	}
	if took := now.Sub(r.Start); took > r.View.Config.Slowest {
		// Another client's repair may rely on it: a master that has forgotten its vote for g no longer counts for g.
		return r.Failure(fmt.Errorf("%w: the masters needed %v, longer than the timeout of %v", round.ErrTooSlow,
			took.Round(time.Millisecond), r.View.Config.Slowest), nil)
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

// readClocks takes the masters' times from the refusals of a round.
func (k *Keeper) readClocks(r *round.Round, now clock.Instant) {
	within := now.Sub(r.Start) / 2
	r.Each(func(i int, v *round.Vote) {
		if v.Time > 0 {
			k.Ballots.Refine(i, v.Time, r.Start.Add(within), within)
		}
	})
}

// learn takes from the refusals what the next ask needs to know: fences and clocks.
func (k *Keeper) learn(r *round.Round, name string) {
	now := k.Clock.Now()
	k.readClocks(r, now)
	t := r.Tally()
	floor := int64(0)
	for _, set := range t.Rule.Sets() {
		var fences []int64
		r.Each(func(i int, v *round.Vote) {
			if v.Time > 0 && set.Has(i) && !t.Unable().Has(i) { // those do not show their fence, or cannot grant
				fences = append(fences, v.Fence)
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
	active   atomic.Bool // it counts in Keeper.rounds
}

// Booked implements round.Booker.
func (a *asking) Booked(r *round.Round, i int, v *round.Vote, decides, last bool) {
	if (decides || last) && a.active.Swap(false) { // not when the caller gives up: its messages are still queued
		a.g.k.rounds.leave(v.After <= r.View.Config.Slowest/4)
	}
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
	g.giveUp()
	if set &= g.sent.to; set != 0 {
		g.sendRelease("roll back", set, true)
	}
}

// newGrant makes a grant with an id of its own.
func (k *Keeper) newGrant(name string, keys *scripts.Keys, t *scripts.Ticket) *Grant {
	g := &Grant{k: k, Name: name, keys: keys, ticket: t}
	id := k.number.Add(1)
	if role := keys.Role(); role != scripts.Plain {
		g.ID = scripts.ShareID(k.Owner, id, role, k.Ballots.Median(k.Clock.Now()), k.Label)
	} else {
		g.ID = scripts.GrantID(k.Owner, id, k.Label)
	}
	g.asking.g = g
	return g
}
