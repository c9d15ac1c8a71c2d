package waitqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// How long a contender waits before its next attempt.
const (
	//mutant:delay-after-wake-up = time.Second
	leastDelay = 2 * time.Millisecond // after the first wake-up, if an attempt that one has caused was lost
	mostDelay  = time.Second          // the same, after many refusals
	firstPause = time.Second          // without a wake-up, if it is first or second in a queue
	otherPause = 5 * time.Second      // elsewhere
	awayPause  = time.Second          // while no quorum of masters can vote
)

// errYield reports that a call with a better priority takes over.
var errYield = errors.New("a call with a better priority is here")

// A contention makes the attempts of one call while it is the contender.
type contention struct {
	q       *Queue
	c       *Call
	wakeUps int                  // consecutive lost attempts that wake-ups have caused
	round   *round.Round         // of the last attempt; nil: nothing was sent, since too few masters vote
	ticket  bool                 // the last attempt carried the ticket
	decided time.Time            // when the last attempt was decided; a suspension only delays the next
	failure *round.Failure       // how
	before  *round.Failure       // why the call waited before it became the contender; nil if it did not wait
	held    *round.Failure       // of the last attempt that another client's lease refused; nil: none was
	lost    int                  // attempts since then
	pauses  func() time.Duration // from the first refusal on
	pause   time.Duration        // until the next attempt, if no wake-ups can arrive
}

// contend makes attempts until the name is granted, ctx ends, or a call with a better priority comes. before is why the
// call waited until now, nil if it did not wait.
func (q *Queue) contend(ctx context.Context, c *Call, before *round.Failure) (*lease.Lease, error) {
	n := &contention{q: q, c: c, before: before}
	for {
		l, err := n.acquire(ctx)
		if err == nil {
			return l, nil
		}
		if !Waitable(err) {
			return nil, n.ended(err)
		}
		n.record(err)
		q.recordFailure(c, n.failure)
		if err = n.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// acquire makes one attempt, with the ticket if wake-ups can arrive and a quorum can vote. The first attempt of a
// Locker that has not waited yet carries no ticket: it subscribes only after a refusal, so a free name costs no
// subscription.
func (n *contention) acquire(ctx context.Context) (l *lease.Lease, err error) {
	q, c := n.q, n.c
	view, err := q.Ready(ctx)
	if err != nil {
		return nil, q.Manager.Sender.NoQuorum(view, "lock", err)
	}
	a := lease.Attempt{Op: "lock", Name: c.Name, Keys: c.Keys, Terms: c.Terms, Stats: c.Stats}
	//mutant:linger-waited-for 1= false
	if n.failure != nil && c.Terms.Linger > 0 { // other waiters may not try again before the name is released
		terms := *c.Terms
		terms.Linger = 0
		a.Terms = &terms
	}
	q.mu.Lock()
	//mutant:quiet-attempts = false
	if n.wakeUps++; c.woken == 0 {
		n.wakeUps = 0
	}
	c.woken = 0
	if n.ticket = q.receivingLocked() && !q.noQuorum && view.Config.Rule.Won(view.Voting); n.ticket {
		a.Ticket, a.Waits = q.ticketLocked(c), func() bool { return q.waits(c) }
	}
	if q.subscribers[c.seq] != nil {
		a.Complete = func() { q.votesComplete(c) }
	}
	q.mu.Unlock()
	l, n.round, err = q.Acquire(ctx, &a)
	n.decided = time.Now()
	return l, err
}

// wait returns nil when it is time for the next attempt.
func (n *contention) wait(ctx context.Context) error {
	if n.pauses == nil {
		n.pauses = n.c.Delays.Pauses()
	}
	n.pause = n.pauses() // one per refusal, used if no wake-ups can arrive
	for {
		changed := n.q.Changed()
		d, yields := n.untilAttempt()
		switch {
		case yields:
			return errYield
		case d <= 0:
			return nil
		}
		if cause := n.q.sleep(ctx, n.c, changed, time.After(d)); cause != nil {
			return n.abandonedBy(cause)
		}
	}
}

// untilAttempt returns how long to wait from now, and whether a call with a better priority has taken over.
func (n *contention) untilAttempt() (d time.Duration, yields bool) {
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	if n.c.wake == nil { // earlier signals are covered by the checks below
		n.c.wake = make(chan struct{}, 1)
	}
	if n.q.yieldLocked(n.c) {
		return 0, true
	}
	n.q.subscribeLocked(n.c)
	return n.untilAttemptLocked(), false
}

// record records how an attempt has failed.
func (n *contention) record(err error) {
	n.failure, _ = round.AsFailure(err)
	if n.lost++; errors.Is(n.failure.Decision, round.ErrHeld) {
		n.held, n.lost = n.failure, 0
	}
}

// ended returns the error of a call of which err ended the last attempt, in which the masters may not have decided.
func (n *contention) ended(err error) error {
	switch {
	case n.failure != nil:
		err = WithLastFailure(n.failure, err)
	case n.before != nil:
		err = WithLastFailure(n.before, err)
	}
	if f, ok := round.AsFailure(err); ok {
		return n.orHeld(f)
	}
	return err
}

// orHeld returns f, or, if f is of a single attempt that was lost for want of a quorum, the refusal before it: the name
// was held. The same applies after several such attempts if a quorum can vote all the same.
func (n *contention) orHeld(f *round.Failure) *round.Failure {
	if n.held == nil || f.Cause == nil || !errors.Is(f.Decision, round.ErrNoQuorum) {
		return f
	}
	if view := n.q.Manager.View(); n.lost > 1 && !view.Config.Rule.Won(n.q.Manager.Sender.Able(view)) {
		return f
	}
	held := n.held.Ended(f.Cause)
	held.Masters = f.Masters
	return held
}

// abandonedBy returns the failure of a call that ended for cause, with all votes that have come by now.
func (n *contention) abandonedBy(cause error) *round.Failure {
	if n.round != nil {
		decision := n.failure.Decision
		if errors.Is(decision, round.ErrUndecided) { // more votes may have come since
			decision = n.round.Decision()
		}
		return n.orHeld(n.round.Failure(decision, cause))
	}
	return n.orHeld(n.failure.Ended(cause))
}

// untilAttemptLocked returns how long to wait before the next attempt; not positive: try at once. The four cases are:
//
//	too few masters can vote           a second since the last attempt; at once when they can again
//	it is in the queues                until wake-ups come, and no longer than pollDelay
//	it is not, and is subscribed       it tries at once, and joins the queues by that attempt
//	it is not subscribed               the pause of its Delays, or less if the name may be free earlier
func (n *contention) untilAttemptLocked() time.Duration {
	q, since := n.q, time.Since(n.decided)
	voters := n.voters()
	n.c.unsure = voters == quorum.Pending
	switch voters {
	case quorum.Lost: // a client that cannot win must not be first
		//mutant:voters-leave = n.round == nil
		q.noQuorum = true
		//mutant:voters-leave drop
		q.leaveMastersLocked(n.c)
	case quorum.Won:
		if q.noQuorum {
			q.noQuorum = false
			return 0
		}
	}
	switch {
	case q.noQuorum && n.returned():
		return 0
	case q.noQuorum:
		return awayPause - since
	case n.ticket:
		return min(n.pollDelay(since), n.wakeUpDelayLocked())
	case q.receivingLocked():
		return 0
	}
	return n.orFree(n.pause) - since
}

// votesComplete makes c check again, when all votes of its last attempt are in, if c did not know whether a quorum can
// vote.
func (q *Queue) votesComplete(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.unsure {
		c.signal()
	}
}

// waits reports whether c may be in the queues of the masters.
func (q *Queue) waits(c *Call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return c.joined && c.state == acquiring
}

// able returns the masters that could vote in the last round. A master whose clock is far off the median refuses every
// ballot that the others accept: it is no voter.
func (n *contention) able(t *quorum.Tally) quorum.Set {
	able := t.Of(quorum.Granted) | t.Of(quorum.Held)
	for i := range (t.Of(quorum.Stale) | t.Of(quorum.Ahead)).All() {
		//mutant:clock-off-no-voter = true
		if !n.round.View.Masters[i].ClockOff {
			able |= quorum.One(i)
		}
	}
	return able
}

// returned reports whether the masters have changed since the last attempt, and a quorum of them may vote.
func (n *contention) returned() bool {
	now := n.q.Manager.View()
	return (n.round == nil || n.round.View != now) && now.Config.Rule.Won(now.Voting)
}

// voters reports whether a quorum of masters could vote in the last round.
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

// pollDelay returns how long to wait without any wake-up: until the name may be free, by the times that came with the
// refusals, and no longer than a pause that depends on the place in the queues.
func (n *contention) pollDelay(since time.Duration) time.Duration {
	pause := otherPause
	n.round.Each(func(_ int, v *round.Vote) {
		if answered(v) && v.Place >= 0 && v.Place <= 1 {
			pause = firstPause
		}
	})
	return n.orFree(pause) - since
}

// orFree returns pause, or the time until a quorum may be free if that is shorter.
func (n *contention) orFree(pause time.Duration) time.Duration {
	if left := n.round.Left(); left >= 0 {
		return min(pause, left)
	}
	return pause
}

// answered reports whether a vote comes from the master itself: a master to which nothing was sent has a vote too.
func answered(v *round.Vote) bool { return v.Outcome != quorum.Failed && v.Err == nil }

// wakeUpDelayLocked returns how long to wait for further wake-ups: not at all after the first one. The holder has sent
// its release to all masters at once, so on each of them it is ahead of an attempt that follows the wake-up of one. If
// such an attempt is lost all the same, the next one waits for the wake-ups of a quorum, or for a short delay after the
// first, which doubles with each attempt that is lost. Without any wake-up it is an hour.
func (n *contention) wakeUpDelayLocked() time.Duration {
	switch {
	case n.c.woken == 0:
		return time.Hour
	//mutant:first-wake-up 1= false
	case n.wakeUps == 0, n.round.View.Config.Rule.Won(n.c.woken):
		return 0
	}
	//mutant:delay-doubles = max(leastDelay, 2*n.replySpread())
	delay := max(leastDelay, 2*n.replySpread()) << min(n.wakeUps, 10) / 2
	return min(delay, mostDelay) - time.Since(n.c.first)
}

// replySpread returns the time from the first reply to the one that makes a quorum.
func (n *contention) replySpread() time.Duration {
	var after []time.Duration
	n.round.Each(func(_ int, v *round.Vote) {
		if answered(v) {
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
