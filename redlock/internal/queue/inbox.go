package queue

import (
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// inboxIdle is how long the subscription is kept when nobody waits any more.
const inboxIdle = 10 * time.Second

// A Subscription is that of a Locker to its inbox on all masters. Its methods do not block.
type Subscription interface {
	StandingOn() uint64 // the masters that have confirmed it, as bits
	Close()
}

// hearLocked has c hear hints from here on, and subscribes where nobody has.
func (q *Queue) hearLocked(c *Call) {
	q.hearers[c.seq] = c
	if q.idle != nil {
		q.idle.Stop()
	}
	if q.inbox == nil {
		q.inbox = q.Listen()
	}
}

// deafLocked ends hearLocked. From now on a hint for c has this Locker leave that queue.
func (q *Queue) deafLocked(c *Call) {
	if q.hearers[c.seq] == nil {
		return
	}
	delete(q.hearers, c.seq)
	if len(q.hearers) > 0 {
		return
	}
	select {
	case <-q.Keeper.Closing:
		q.closeLocked()
	default:
		q.idle = time.AfterFunc(inboxIdle, q.Close)
	}
}

// Close ends the subscription if nobody waits. Once the Keeper is closing, the last call that waits ends it.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.hearers) == 0 {
		q.closeLocked()
	}
}

func (q *Queue) closeLocked() {
	if q.idle != nil {
		q.idle.Stop()
	}
	if q.inbox != nil {
		q.inbox.Close()
		q.inbox = nil
	}
}

// hearingLocked reports whether hints of a quorum of masters can be heard.
func (q *Queue) hearingLocked() bool {
	return q.inbox != nil && q.Keeper.View().Config.Rule.Won(quorum.Set(q.inbox.StandingOn()))
}

// Hint is told what the inbox got from a master.
func (q *Queue) Hint(master int, h scripts.Hint) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.hearers[h.Number]; c != nil {
		if !h.Probe {
			c.hintLocked(master)
		}
		return
	}
	// It has got the name elsewhere, or has given up.
	keys := q.Keeper.Prefix.KeysOf(h.Name, h.Role)
	q.remove(&keys, h.Ticket(), quorum.One(master))
}

// Gap is told that the subscription stands on a master, for the first time or anew: what was published before is
// lost, so every waiter looks for itself as if it had got a hint.
func (q *Queue) Gap(master int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.hearers {
		c.hintLocked(master)
	}
}

func (c *Call) hintLocked(master int) {
	if c.hinted == 0 {
		c.first = time.Now()
	}
	c.hinted |= quorum.One(master)
	c.signal()
}
