package waitqueue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
)

// How long a contender waits before its next attempt.
const (
	leastDelay = 2 * time.Millisecond // after the first wake-up, if an attempt that a wake-up has caused was lost
	mostDelay  = time.Second          // the maximum of that delay, which doubles with each lost attempt
	firstPause = time.Second          // without a wake-up, if it is first or second in a queue
	otherPause = 5 * time.Second      // without a wake-up, if it is farther back in all queues
	awayPause  = time.Second          // while no quorum of masters can vote
)

// A contention records the attempts of one call while the call is the contender.
type contention struct {
	q       *Queue
	op      string // the call, for errors and events
	c       *Call
	terms   *lease.Terms   // of the next attempt
	watch   time.Duration  // pause before the next noticeOwnHold, while the call is in the local queue
	wakeUps int            // number of consecutive lost attempts that wake-ups have caused
	round   *round.Round   // the last round; nil: the last attempt sent nothing, since too few masters vote
	ticket  bool           // whether the last attempt carried the ticket
	decided time.Time      // when the last attempt was decided; a suspension only delays the next attempt
	failure *round.Failure // how the last attempt failed
	before  *round.Failure // why the call waited before it became the contender; nil if it did not wait
	held    *round.Failure // how the last attempt failed that got ErrHeld; nil: no attempt got ErrHeld
	lost    int            // number of attempts that have failed since held
	refused int            // number of attempts that have failed
	pause   time.Duration  // time until the next attempt, if no wake-ups can arrive
}

// Lock waits for the name until the lease of c.Hold is live, or until ctx ends. op names the call in errors. An error
// is a *round.Failure, or an error of package ballot. After an error nothing is held, and leases that masters may have
// granted are being rolled back.
func (q *Queue) Lock(ctx context.Context, op string, c *Call) error {
	q.join(c)
	if q.takeOver(c) { // a lease that lingers
		return nil
	}
	return q.contend(ctx, op, c)
}

// contend is the one loop of a call that has joined; at its end the call leaves. The loop does what the state of the
// call requires: a queued call sleeps until it is signalled; the contender makes an attempt, or sleeps until the next
// is due.
func (q *Queue) contend(ctx context.Context, op string, c *Call) error {
	defer q.leave(c)
	n := &contention{q: q, op: op, c: c, terms: c.Terms}
	for {
		changed := q.Changed()
		state, pause := n.next()
		var timer <-chan time.Time
		switch {
		case state == holding:
			return nil
		case state == queued && c.Endless: // the call may wait forever for a lock of its own caller
			changed = nil
			n.watch = min(max(2*n.watch, ownHoldPause), time.Minute)
			timer = time.After(n.watch)
		case state != acquiring: // only the contender reacts to a changed view
			changed = nil
		case pause <= 0:
			var l *lease.Lease
			a, err := n.prepare(ctx)
			if err == nil {
				l, n.round, err = q.Manager.Acquire(ctx, a)
				n.decided = time.Now()
			}
			if err == nil {
				return q.startHold(c, l)
			}
			if !round.Waitable(err) {
				return n.ended(err)
			}
			n.recordRefusal(err)
			continue
		default:
			timer = time.After(pause)
		}
		if cause := q.sleep(ctx, c, changed, timer); cause != nil {
			return n.abandon(ctx, cause)
		}
		if c.Endless {
			n.noticeOwnHold()
		}
	}
}

// next returns the state of the call and, for the contender, how long to wait before its next attempt. The contender
// goes back to the local queue if a call with a higher priority waits there.
func (n *contention) next() (waiterState, time.Duration) {
	q, c := n.q, n.c
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case c.state == queued, c.state == handoff:
		n.before = c.names.refusal
		return c.state, 0
	case c.state == holding, n.failure == nil:
		return c.state, 0
	}
	if c.wake == nil { // earlier signals are covered by the checks below
		c.wake = make(chan struct{}, 1)
	}
	if q.yieldLocked(c) {
		*n = contention{q: q, op: n.op, c: c, terms: c.Terms, before: c.names.refusal}
		return c.state, 0
	}
	q.subscribeLocked(c)
	return acquiring, n.untilAttemptLocked()
}

// recordRefusal records how an attempt failed.
func (n *contention) recordRefusal(err error) {
	n.failure, _ = round.AsFailure(err)
	if n.lost++; errors.Is(n.failure.Decision, round.ErrHeld) {
		n.held, n.lost = n.failure, 0
	}
	n.terms = n.c.Terms.WithoutLinger() // other waiters may not try again before the release
	n.q.recordFailure(n.c, n.failure)
	n.refused++
	n.pause = n.c.Poll(n.refused) // computed once for each failure, since the pause may be random
}

// abandon ends the wait of a call because of cause, and returns the failure of the call. If a lease is being handed off
// to the call, abandon waits until the call has the lease, and unlocks it.
func (n *contention) abandon(ctx context.Context, cause error) error {
	q, c := n.q, n.c
	var f *round.Failure
	if n.failure != nil {
		f = n.abandonedBy(cause)
	} else {
		q.mu.Lock()
		f = c.names.refusal.Ended(cause)
		q.mu.Unlock()
	}
	state := q.leave(c)
	for state == handoff {
		<-c.wake // a short wait: the holder that hands the lease off does not block
		state = q.leave(c)
	}
	if state == holding {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Hold.Unlock(ended) // sends the release without waiting
	}
	return f
}

// prepare returns the next attempt, with the ticket if wake-ups can arrive and a quorum can vote. The first attempt of
// a Locker that is not subscribed carries no ticket. The Locker subscribes only after a refusal, so a free name costs
// no subscription.
func (n *contention) prepare(ctx context.Context) (*lease.Attempt, error) {
	q, c := n.q, n.c
	view, err := q.Ready(ctx)
	if err != nil {
		return nil, q.Manager.Sender.NoQuorum(view, err)
	}
	a := &lease.Attempt{Op: n.op, Name: c.Name, Keys: c.Keys, Terms: n.terms, Stats: c.Stats}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n.wakeUps++; c.woken == 0 {
		n.wakeUps = 0
	}
	c.woken = 0
	if n.ticket = q.receivingLocked() && !q.noQuorum && view.Config.Rule.Won(view.Voting); n.ticket {
		a.Ticket = q.ticketLocked(c)
	}
	if q.subscribers[c.seq] != nil {
		a.Waiter = place{q, c}
	}
	return a, nil
}

// ended returns the error of a call whose last attempt failed with err. If err only says why the call stopped waiting,
// ended adds the failure of the attempt before.
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

// orHeld returns f, or n.held with the cause of f, since n.held names the holder. It returns n.held if f has a cause
// and reports no quorum, and at most one attempt has failed since n.held, or a quorum of masters can grant a lock now.
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

// abandonedBy returns the failure of a call that ended for cause, with all votes that have arrived by now.
func (n *contention) abandonedBy(cause error) *round.Failure {
	if n.round != nil {
		decision := n.failure.Decision
		if errors.Is(decision, round.ErrUndecided) { // more votes may have arrived since
			decision = n.round.Decision()
		}
		return n.orHeld(n.round.Failure(decision, cause))
	}
	return n.orHeld(n.failure.Ended(cause))
}

// untilAttemptLocked returns how long to wait before the next attempt. If the result is not positive, the contender
// tries immediately. The four cases are:
//
//	too few masters can vote           until a second after the last attempt, or until enough can vote again
//	the waiter is in the queues        until wake-ups arrive, but no longer than pollDelay
//	it is not, but is subscribed       no wait: the next attempt joins the queues
//	it is not subscribed               the pause of Call.Poll, or less if the name may be free earlier
func (n *contention) untilAttemptLocked() time.Duration {
	q, since := n.q, time.Since(n.decided)
	voters := n.voters()
	n.c.unsure = voters == quorum.Pending
	switch voters {
	case quorum.Lost: // leave the queues, in which a client that cannot win must not be first
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

// returned reports whether a quorum of masters may vote in the current view, and the last attempt used an older view.
func (n *contention) returned() bool {
	now := n.q.Manager.View()
	return (n.round == nil || n.round.View != now) && now.Config.Rule.Won(now.Voting)
}

// voters returns Won if a quorum of masters could vote in the last round, Lost if not, and Pending while missing votes
// decide it.
func (n *contention) voters() quorum.Verdict {
	if n.round == nil {
		return quorum.Lost
	}
	t := n.round.Tally()
	switch {
	case t.Rule.Won(n.round.Able()):
		return quorum.Won
	case t.Rule.All()&^t.In() == 0:
		return quorum.Lost
	}
	return quorum.Pending
}

// pollDelay returns how long to wait if no wake-up arrives: until the name may be free according to the TTLs in the
// refusals, but no longer than a pause that depends on the place in the queues.
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

// answered reports whether a vote comes from the master itself. A master to which nothing was sent also has a vote.
func answered(v *round.Vote) bool { return v.Outcome != quorum.Failed && v.Err == nil }

// wakeUpDelayLocked returns how long to wait for further wake-ups; it returns an hour before the first wake-up. After
// the first wake-up the contender does not wait: the holder has sent its release to all masters together, so on each
// master the release arrives before the attempt that the wake-up of one master has caused. If such an attempt is lost
// anyway, the next attempt waits for the wake-ups of a quorum, or for a short delay after the first wake-up. The delay
// doubles with each further lost attempt.
func (n *contention) wakeUpDelayLocked() time.Duration {
	switch {
	case n.c.woken == 0:
		return time.Hour
	case n.wakeUps == 0, n.round.View.Config.Rule.Won(n.c.woken):
		return 0
	}
	delay := max(leastDelay, 2*n.replySpread()) << min(n.wakeUps, 10) / 2
	return min(delay, mostDelay) - time.Since(n.c.first)
}

// replySpread returns the time from the first reply to the reply that completes a quorum.
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
