package queue

import (
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// How a call comes into the queues of the masters, and out of them.

// ticketLocked is the ticket of c, which is about to be sent. The masters' time is known.
func (q *Queue) ticketLocked(c *Call) *scripts.Ticket {
	if c.ticket == nil {
		k := q.Keeper
		c.ticket = scripts.NewTicket(c.Keys.Role(), k.Owner, c.seq, k.Label, k.Ballots.Median(c.Called), c.Priority)
	}
	q.hearLocked(c)
	c.queued = true
	return c.ticket
}

// leaveLocked takes c out of the queues of all masters, if it may be there.
func (q *Queue) leaveLocked(c *Call) {
	if c.queued {
		c.queued = false
		q.remove(c.Keys, c.ticket, q.Keeper.View().Config.Rule.All())
	}
}

// remove takes a waiter out of the queues of some masters. What is not delivered is not owed: late, it could remove a
// waiter that has asked again.
func (q *Queue) remove(keys *scripts.Keys, t *scripts.Ticket, set quorum.Set) {
	q.Keeper.Post(set, q.Keeper.View().Encoder.Release(keys, scripts.Ending{Waiter: t}))
}

// Releasing is told that the release of g is about to be sent: a fair call that is first in the local queue joins the
// masters' queues before it, over the same connections. Else the release would tell another program's waiter, although
// the call came first. The message is a release of nothing, which puts the waiter into the queues.
func (q *Queue) Releasing(g *grant.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock() // held to the end: a call that quits meanwhile leaves the queues after it has joined them
	ln := q.names[g.Name]
	if g.Role() != scripts.Plain || ln == nil || len(ln.waiting) == 0 || !ln.waiting[0].Fair ||
		!q.hearingLocked() || q.away {
		return
	}
	c, k := ln.waiting[0], q.Keeper
	view := k.View()
	join := scripts.Ending{Waiter: q.ticketLocked(c), Back: true, AskBallot: k.Ballots.Median(k.Clock.Now())}
	k.Post(view.Config.Rule.All(), view.Encoder.Release(c.Keys, join))
}
