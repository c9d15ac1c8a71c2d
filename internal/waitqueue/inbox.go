package waitqueue

import (
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// inboxIdle is the time for which an unused subscription is kept.
const inboxIdle = 10 * time.Second

// A Subscription is the subscription of a Locker to its inbox on all masters. Its methods do not block.
type Subscription interface {
	Confirmed() uint64 // the masters that have confirmed it, as bits
	Close()
}

// subscribeLocked registers c for wake-ups, and opens the inbox if that is needed.
func (q *Queue) subscribeLocked(c *Call) {
	q.subscribers[c.seq] = c
	q.useInboxLocked(inboxIdle)
}

// unsubscribeLocked undoes subscribeLocked. Afterwards, when a master sends a wake-up for c, the Locker removes c from
// the queue of that master.
func (q *Queue) unsubscribeLocked(c *Call) {
	if q.subscribers[c.seq] != nil {
		delete(q.subscribers, c.seq)
		q.useInboxLocked(inboxIdle)
	}
}

// Listen implements lease.LocalQueue.
func (q *Queue) Listen(l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listening[l] = true
	q.useInboxLocked(inboxIdle)
}

// useInboxLocked opens the inbox if a call or a lease needs it. Otherwise it closes the inbox after the time idle, or
// immediately once the Manager is closing.
func (q *Queue) useInboxLocked(idle time.Duration) {
	if q.closing != nil {
		q.closing.Stop()
	}
	select {
	case <-q.Manager.Closing:
		idle = 0
	default:
	}
	switch used := len(q.subscribers)+len(q.listening) > 0; {
	case used && q.inbox == nil:
		q.inbox = q.Subscribe()
	case used, q.inbox == nil:
	case idle > 0:
		q.closing = time.AfterFunc(idle, q.Close)
	default:
		q.inbox.Close()
		q.inbox = nil
	}
}

// Close closes the inbox if no call and no lease needs it. Once the Manager is closing, the last call or lease that
// needed the inbox closes it.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.useInboxLocked(0)
}

// receivingLocked reports whether wake-ups of a quorum of masters can arrive.
func (q *Queue) receivingLocked() bool {
	return q.inbox != nil && q.Manager.View().Config.Rule.Won(quorum.Set(q.inbox.Confirmed()))
}

// Message implements feed.Listener. It handles a message from the inbox on a master.
func (q *Queue) Message(master int, payload string) {
	h, ok := q.Manager.Prefix.ParseWakeUp(payload)
	switch {
	case !ok:
	case h.Lease != "":
		q.toLease(h)
	default:
		q.wakeUp(master, h)
	}
}

// wakeUp wakes the waiter that a wake-up is for.
func (q *Queue) wakeUp(master int, h scripts.WakeUp) {
	q.mu.Lock()
	c := q.subscribers[h.Number]
	if c != nil && !h.Probe {
		c.wakeLocked(master)
	}
	q.mu.Unlock()
	if c != nil {
		return
	}
	if l := q.Holder(h.Name); l != nil && l.Removes(h.Waiter, master) {
		return
	}
	// The waiter has won the name on other masters, or has given up.
	keys := q.Manager.Prefix.KeysOf(h.Name, h.Role)
	q.removeWaiter(&keys, h.Ticket(), quorum.One(master))
}

// toLease passes a message to the lease that it is about.
func (q *Queue) toLease(h scripts.WakeUp) {
	l := q.Manager.Addressee(h.Lease)
	if l == nil {
		l = q.Holder(h.Name)
	}
	if l != nil && l.ID == h.Lease {
		l.Message(h)
	}
}

// Resubscribed implements feed.Listener. It records that a master has confirmed the subscription, for the first time or
// again. Earlier messages may have been lost, so every waiter is woken as by a wake-up from that master.
func (q *Queue) Resubscribed(master int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.subscribers {
		c.wakeLocked(master)
	}
}

func (c *Call) wakeLocked(master int) {
	if c.woken == 0 {
		c.first = time.Now()
	}
	c.woken |= quorum.One(master)
	c.signal()
}
