package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// How long a contender waits before it asks again.
const (
	leastDelay = 2 * time.Millisecond // after the first hint
	mostDelay  = time.Second          // the same, after many refusals
	firstPause = time.Second          // without a word, where it is first or second in a queue
	otherPause = 5 * time.Second      // elsewhere
	awayPause  = time.Second          // while no quorum of masters can vote
)

// errYield says that a call with a better priority takes over.
var errYield = errors.New("a call with a better priority is here")

// A contention is the asking of one call while it is the contender.
type contention struct {
	q       *Queue
	c       *Call
	hinted  int                  // asks in a row that hints have caused, and that were lost
	round   *round.Round         // of the last ask; nil: nothing was sent, since too few masters vote
	ticket  bool                 // the last ask carried the ticket
	decided time.Time            // when the last ask was decided; a machine that sleeps asks later, which costs time alone
	failure *round.Failure       // how
	pauses  func() time.Duration // from the first refusal on
	pause   time.Duration        // until the next ask, where the masters cannot be heard
}

// contend asks for the name until it is granted, ctx ends, or a call with a better priority is here.
func (q *Queue) contend(ctx context.Context, c *Call) (*grant.Grant, error) {
	n := &contention{q: q, c: c}
	for {
		g, err := n.ask(ctx)
		if err == nil {
			return g, nil
		}
		if !Waitable(err) {
			return nil, Told(n.failure, err)
		}
		n.failure, _ = round.AsFailure(err)
		q.learn(c, n.failure)
		if err = n.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// ask asks, with the ticket if the masters can be heard and can vote. The first ask of a Locker that has not waited yet
// carries none: it subscribes only after a refusal, so a name that is free costs no subscription.
func (n *contention) ask(ctx context.Context) (g *grant.Grant, err error) {
	q, c := n.q, n.c
	view, err := q.Ready(ctx)
	if err != nil {
		return nil, q.Keeper.Sender.NoQuorum(view, "lock", err)
	}
	a := grant.Ask{Op: "lock", Name: c.Name, Keys: c.Keys, Terms: c.Terms, Course: c.Course}
	q.mu.Lock()
	if n.hinted++; c.hinted == 0 {
		n.hinted = 0
	}
	c.hinted = 0
	if n.ticket = q.hearingLocked() && !q.away && view.Config.Rule.Won(view.Voting); n.ticket {
		a.Ticket = q.ticketLocked(c)
	}
	if q.hearers[c.seq] != nil {
		a.Complete = func() { q.completed(c) }
	}
	q.mu.Unlock()
	g, n.round, err = q.Ask(ctx, &a)
	n.decided = time.Now()
	return g, err
}

// wait returns nil when it is time to ask again.
func (n *contention) wait(ctx context.Context) error {
	if n.pauses == nil {
		n.pauses = n.c.PausesFunc()
	}
	n.pause = n.pauses() // one a refusal, used if the masters cannot be heard
	for {
		changed := n.q.Changed()
		d, yields := n.untilAsk()
		switch {
		case yields:
			return errYield
		case d <= 0:
			return nil
		}
		if cause := n.q.sleep(ctx, n.c, changed, time.After(d)); cause != nil {
			return n.gaveUp(cause)
		}
	}
}

// untilAsk is how long to wait from now, and whether a call with a better priority has taken over.
func (n *contention) untilAsk() (d time.Duration, yields bool) {
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	if n.q.yieldLocked(n.c) {
		return 0, true
	}
	n.q.hearLocked(n.c)
	return n.untilAskLocked(), false
}

// gaveUp is how the call failed that ended for cause: with all that the masters have said by now.
func (n *contention) gaveUp(cause error) *round.Failure {
	if n.round != nil {
		decision := n.failure.Decision
		if errors.Is(decision, round.ErrUndecided) { // more votes may have come since
			decision = n.round.Decision()
		}
		return n.round.Failure(decision, cause)
	}
	return n.failure.Ended(cause)
}

// untilAskLocked is how long to wait from now, by what is known now; not positive: ask at once. There are four cases:
//
//	too few masters can vote           a second since the last ask; at once when they can again
//	it is in the queues                until hints come, and no longer than unhinted says
//	it is not, and hears the masters   it asks at once, and joins the queues by that ask
//	it cannot hear them                the pause of its Delays, or less if the name may be free earlier
func (n *contention) untilAskLocked() time.Duration {
	q, since := n.q, time.Since(n.decided)
	voters := n.voters()
	n.c.unsure = voters == quorum.Pending
	switch voters {
	case quorum.Lost: // who cannot win must not stand in front of others
		q.away = true
		q.leaveLocked(n.c)
	case quorum.Won:
		if q.away {
			q.away = false
			return 0
		}
	}
	switch {
	case q.away && n.returned():
		return 0
	case q.away:
		return awayPause - since
	case n.ticket:
		return min(n.unhinted(since), n.hintedLocked())
	case q.hearingLocked():
		return 0
	}
	return n.orFree(n.pause) - since
}

// completed is told that all votes of the last ask of c are in: c looks again if it could not tell whether a quorum can
// vote.
func (q *Queue) completed(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.unsure {
		c.signal()
	}
}

// able are the masters that could vote in the last round. A master whose clock is far off the median refuses every
// ballot that the others accept: it is no voter.
func (n *contention) able(t *quorum.Tally) quorum.Set {
	able := t.Of(scripts.Granted) | t.Of(scripts.Held)
	for i := range (t.Of(scripts.Stale) | t.Of(scripts.Ahead)).All() {
		if !n.round.View.Masters[i].ClockOff {
			able |= quorum.One(i)
		}
	}
	return able
}

// returned reports whether the masters have changed since the last ask, and a quorum of them may vote.
func (n *contention) returned() bool {
	now := n.q.Keeper.View()
	return (n.round == nil || n.round.View != now) && now.Config.Rule.Won(now.Voting)
}

// voters tells whether a quorum of masters could vote in the last round.
func (n *contention) voters() quorum.Verdict {
	if n.round == nil {
		return quorum.Lost
	}
	t := n.round.Tally()
	switch {
	case t.Rule.Won(n.able(&t)):
		return quorum.Won
	case t.Rule.All()&^t.In() == 0:
		return quorum.Lost
	}
	return quorum.Pending
}

// unhinted is for how long to wait without any hint: until the name may be free, by the times that came with the
// refusals, and no longer than a pause that depends on the place in the queues.
func (n *contention) unhinted(since time.Duration) time.Duration {
	pause := otherPause
	n.round.Each(func(_ int, v *round.Vote) {
		if told(v) && v.Place >= 0 && v.Place <= 1 {
			pause = firstPause
		}
	})
	return n.orFree(pause) - since
}

// orFree is a pause, or if that is shorter, the time until a quorum may be free.
func (n *contention) orFree(pause time.Duration) time.Duration {
	if left := n.round.Left(); left >= 0 {
		return min(pause, left)
	}
	return pause
}

// told reports whether a vote is the word of the master itself: one that was not asked has a vote too.
func told(v *round.Vote) bool { return v.Kind != scripts.Failed && v.Err == nil }

// hintedLocked is for how long to wait by the hints that came since the last ask: not at all after those of a quorum;
// a little after the first one, which doubles with each ask that a hint has caused in vain; for ever without any.
func (n *contention) hintedLocked() time.Duration {
	switch {
	case n.c.hinted == 0:
		return time.Hour
	case n.round.View.Config.Rule.Won(n.c.hinted):
		return 0
	}
	delay := max(leastDelay, 2*n.spread()) << min(n.hinted, 9)
	return min(delay, mostDelay) - time.Since(n.c.first)
}

// spread is how much later than the first one the reply came that makes a quorum.
func (n *contention) spread() time.Duration {
	var after []time.Duration
	n.round.Each(func(_ int, v *round.Vote) {
		if told(v) {
			after = append(after, v.After)
		}
	})
	least := n.round.View.Config.Rule.Least()
	if len(after) < least {
		return 0
	}
	slices.Sort(after)
	return after[least-1] - after[0]
}
