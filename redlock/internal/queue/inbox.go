package queue

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// inboxIdle is how long the subscription is kept when nobody waits any more.
const inboxIdle = 10 * time.Second

// A Subscription is that of a Locker to its inbox on all masters.
type Subscription interface {
	StandingOn() uint64 // the masters that have confirmed it, as bits
	Close()
}

// An inbox hears the hints for all waiters of one Locker.
type inbox struct {
	q *Queue

	mu      sync.Mutex
	sub     Subscription // nil: nobody waits, or has for a while
	waiters map[uint64]*waiter
	idle    *time.Timer // closes sub
}

// A waiter is one call as the masters know it. Its ticket stays the same for the whole call.
type waiter struct {
	number uint64
	ticket *scripts.Ticket
	call   *Call
	// undated: no master's time was known when the ticket was made, so it dates from long ago. It must not be sent.
	undated bool

	mu     sync.Mutex
	hinted quorum.Set // masters that have given a hint since the last ask
	first  time.Time  // when the first of them did
}

func (b *inbox) init(q *Queue) {
	b.q, b.waiters = q, make(map[uint64]*waiter)
}

// of is the waiter of c, nil where it has none.
func (b *inbox) of(c *Call) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.w
}

// add makes the waiter of c, once, and subscribes where nobody has. It returns nil where the call has returned.
func (b *inbox) add(c *Call) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.over || c.w != nil && !c.w.undated {
		return c.w
	}
	k := b.q.Keeper
	w := &waiter{call: c, undated: k.Ballots.Read(c.Called).Known == 0}
	switch {
	case c.w != nil && w.undated:
		return c.w
	case c.w != nil: // its ticket was never sent: nobody could vote
		w.number = c.w.number
	default:
		w.number = b.q.number.Add(1)
	}
	w.ticket = scripts.NewTicket(k.Owner, w.number, k.Label, k.Ballots.Median(c.Called), c.Priority)
	b.waiters[w.number] = w
	if b.idle != nil {
		b.idle.Stop()
	}
	if b.sub == nil {
		b.sub = b.q.Listen()
	}
	c.w = w
	return w
}

// remove forgets the waiter of c. Hints for it are answered by leaving from here on.
func (b *inbox) remove(c *Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.over = true
	if c.w == nil {
		return
	}
	delete(b.waiters, c.w.number)
	c.w = nil
	if len(b.waiters) > 0 {
		return
	}
	select {
	case <-b.q.Closing:
		b.closeLocked()
		return
	default:
	}
	if b.idle == nil {
		b.idle = time.AfterFunc(inboxIdle, b.close)
	} else {
		b.idle.Reset(inboxIdle)
	}
}

// close ends the subscription if nobody waits.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiters) == 0 {
		b.closeLocked()
	}
}

func (b *inbox) closeLocked() {
	if b.idle != nil {
		b.idle.Stop()
	}
	if b.sub != nil {
		b.sub.Close()
		b.sub = nil
	}
}

// Close ends the subscription, now or with the last call that waits. Closing is closed.
func (q *Queue) Close() { q.inbox.close() }

// hearing reports whether hints of a quorum of masters can be heard.
func (q *Queue) hearing() bool {
	q.inbox.mu.Lock()
	sub := q.inbox.sub
	q.inbox.mu.Unlock()
	return sub != nil && q.Keeper.View().Config.Rule.Won(quorum.Set(sub.StandingOn()))
}

// Hint is told what the inbox got from a master.
func (q *Queue) Hint(master int, h scripts.Hint) {
	b := &q.inbox
	b.mu.Lock()
	w := b.waiters[h.Number]
	b.mu.Unlock()
	if w == nil || w.ticket.Waiter() != h.Waiter { // it has got the name elsewhere, or has given up
		keys := q.Keeper.Prefix.Keys(h.Name)
		q.leave(&keys, h.Ticket(), quorum.One(master))
		return
	}
	w.hint(master)
}

// Gap is told that the subscription stands on a master, for the first time or anew: what was published before is
// lost, so every waiter looks for itself as if it had got a hint.
func (q *Queue) Gap(master int) {
	b := &q.inbox
	b.mu.Lock()
	all := make([]*waiter, 0, len(b.waiters))
	for _, w := range b.waiters {
		all = append(all, w)
	}
	b.mu.Unlock()
	for _, w := range all {
		w.hint(master)
	}
}

// giveUp takes the waiter of c out of the queues of all masters.
func (q *Queue) giveUp(c *Call) {
	if w := q.inbox.of(c); w != nil {
		q.leave(c.Keys, w.ticket, q.Keeper.View().Config.Rule.All())
	}
}

// leave takes a waiter out of the queues of some masters. What is not delivered is not owed: late, it could remove a
// waiter that has asked again.
func (q *Queue) leave(keys *scripts.Keys, t *scripts.Ticket, set quorum.Set) {
	q.Keeper.Post(set, q.Keeper.View().Encoder.Release(keys, scripts.Ending{Waiter: t}))
}

// Releasing is told that the release of g is about to be sent: a fair call that is first in the local queue joins the
// masters' queues before it, over the same connections.
func (q *Queue) Releasing(g *grant.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock() // held to the end: a call that quits meanwhile leaves the queues after it has joined them
	ln := q.names[g.Name]
	if ln == nil || len(ln.waiting) == 0 || !ln.waiting[0].Fair || !q.hearing() || q.away.Load() {
		return
	}
	c := ln.waiting[0]
	w := q.inbox.add(c)
	if w == nil {
		return
	}
	k := q.Keeper
	view := k.View()
	join := scripts.Ending{Waiter: w.ticket, Back: true, AskBallot: k.Ballots.Median(q.Clock.Now())}
	k.Post(view.Config.Rule.All(), view.Encoder.Release(c.Keys, join))
}

// asks forgets the hints before an ask.
func (w *waiter) asks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hinted = 0
}

func (w *waiter) hint(master int) {
	w.mu.Lock()
	if w.hinted == 0 {
		w.first = time.Now()
	}
	w.hinted |= quorum.One(master)
	w.mu.Unlock()
	w.call.signal()
}

// hints are the masters that have given a hint since the last ask, and when the first of them did.
func (w *waiter) hints() (quorum.Set, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hinted, w.first
}
