package waitqueue

import (
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
)

// mostIdle bounds the leases that are idle at a time. All of them may end at one instant, and their releases must not
// delay the extensions of other leases.
const mostIdle = 1000

// StopLingering makes Idle and MayIdle return false from now on.
func (q *Queue) StopLingering() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noLinger = true
}

// MayIdle implements lease.Waiters.
func (q *Queue) MayIdle(l *lease.Lease) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mayIdleLocked(l) != nil
}

// Idle implements lease.Waiters.
func (q *Queue) Idle(l *lease.Lease) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	nq := q.mayIdleLocked(l)
	if nq == nil {
		return false
	}
	nq.idle = true
	q.lingering++
	return true
}

// mayIdleLocked returns the nameQueue of l if l may linger, else nil.
func (q *Queue) mayIdleLocked(l *lease.Lease) *nameQueue {
	nq := q.names[l.Name]
	switch {
	case nq == nil, nq.holder != l, nq.contender != nil, nq.waiting.first() != nil:
		return nil
	case q.noLinger, q.lingering >= mostIdle, !q.receivingLocked():
		return nil
	}
	return nq
}

// takeIdleLocked returns the lease that lingers, reserved for the caller; nil if there is none.
func (q *Queue) takeIdleLocked(nq *nameQueue) *lease.Lease {
	if !nq.idle {
		return nil
	}
	nq.idle = false
	q.lingering--
	return nq.holder
}

// joinOrTakeOver calls join. If the name has a lease that lingers, the call takes that lease over and gets its hold, or
// releases the lease. joinOrTakeOver reports whether the call has its hold.
func (q *Queue) joinOrTakeOver(c *Call) bool {
	for l := q.join(c); l != nil; l = q.join(c) {
		if !c.Fair && c.Hold.TakeOver(l, c.Terms) {
			return true
		}
		l.Message(scripts.WakeUp{}) // releases the idle lease
	}
	return false
}

// terms returns the terms for the next attempt. A call that had to wait does not linger, because other waiters may not
// try again before the release.
func (n *contention) terms() *lease.Terms {
	if n.failure == nil || n.c.Terms.Linger == 0 {
		return n.c.Terms
	}
	terms := *n.c.Terms
	terms.Linger = 0
	return &terms
}

// takeOver makes h the first hold of the lease of name that lingers, and reports whether it did; see
// [lease.Hold.TakeOver].
func (q *Queue) takeOver(name string, h *lease.Hold, terms *lease.Terms) bool {
	q.mu.Lock()
	var l *lease.Lease
	if nq := q.names[name]; nq != nil {
		l = q.takeIdleLocked(nq)
	}
	q.mu.Unlock()
	return l != nil && h.TakeOver(l, terms)
}
