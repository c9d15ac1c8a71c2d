package waitqueue

import (
	"slices"
	"time"

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
// master the release arrives before the attempt that the wake-up of one master has caused. The package documentation
// says what follows if such an attempt is lost anyway.
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
