package waitqueue

import (
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// How a call joins the queues of the masters, and leaves them.

// ticketLocked returns the ticket of c, and subscribes c to wake-ups. The masters' time must be known.
func (q *Queue) ticketLocked(c *Call) *scripts.Ticket {
	if c.ticket == nil {
		m := q.Manager
		c.ticket = scripts.NewTicket(c.Keys.Role(), m.Owner, c.seq, m.Label, m.Ballots.Median(c.Called), c.Priority)
	}
	q.subscribeLocked(c)
	return c.ticket
}

// A place is the place of a call in the masters' queues.
type place struct {
	q *Queue
	c *Call
}

// Join implements lease.Waiter.
func (p place) Join() {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	p.c.joined = true
}

// Waits implements lease.Waiter.
func (p place) Waits() bool {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	return p.c.joined && p.c.state == acquiring
}

// Voted implements lease.Waiter. It makes the call check its state again if the missing votes were needed to know
// whether a quorum can vote.
func (p place) Voted() {
	p.q.mu.Lock()
	defer p.q.mu.Unlock()
	if p.c.unsure {
		p.c.signal()
	}
}

// leaveMastersLocked removes c from the queues of all masters, if it may be there.
func (q *Queue) leaveMastersLocked(c *Call) {
	if c.joined {
		c.joined = false
		q.removeWaiter(c.Keys, c.ticket, q.Manager.View().Config.Rule.All())
	}
}

// removeWaiter removes a waiter from the queues of some masters. If the message cannot be delivered, it does not become
// pending, because a late message could remove a waiter that has tried again.
func (q *Queue) removeWaiter(keys *scripts.Keys, t *scripts.Ticket, set quorum.Set) {
	q.Manager.Post(set, q.Manager.View().Encoder.Release(keys, scripts.Ending{Waiter: t}))
}

// Releasing implements lease.LocalQueue. It makes a fair call that is first in the local queue join the masters' queues
// just before the release of l is sent, over the same connections. Otherwise the release would wake another client's
// waiter, although the call came first. The message is a release without a lease, which only puts the waiter into the
// queues.
func (q *Queue) Releasing(l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock() // held to the end, so that a call that ends meanwhile leaves the queues only after this join
	nq := q.names[l.Name]
	if nq == nil || nq.holder != l {
		return
	}
	c, m := nq.waiting.first(), q.Manager
	if c == nil || !c.Fair || !q.receivingLocked() || q.noQuorum {
		return
	}
	view := m.View()
	c.joined = true
	join := scripts.Ending{Waiter: q.ticketLocked(c), Back: true, AskBallot: m.Ballots.Median(m.Clock.Now())}
	m.Post(view.Config.Rule.All(), view.Encoder.Release(c.Keys, join))
}
