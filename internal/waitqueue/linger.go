package waitqueue

import "github.com/redlock-go/redlock/internal/lease"

// mostIdle bounds the leases that are idle at a time. All of them may end at one instant, and their releases must not
// delay the extensions of other leases.
const mostIdle = 1000

// StopLingering releases every lease that lingers, and makes KeepIdle and MayIdle return false from now on.
func (q *Queue) StopLingering() {
	q.mu.Lock()
	q.noLinger = true
	q.mu.Unlock()
	for _, l := range q.Manager.All() {
		l.EndIdle()
	}
}

// MayIdle implements lease.LocalQueue.
func (q *Queue) MayIdle(l *lease.Lease) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mayIdleLocked(l) != nil
}

// KeepIdle implements lease.LocalQueue.
func (q *Queue) KeepIdle(l *lease.Lease) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	nq := q.mayIdleLocked(l)
	if nq == nil {
		return false
	}
	nq.holder, nq.idle = nil, l
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

// takeOver makes the hold of c, which has joined, the first hold of a lease of the name that lingers. It reports
// whether it did. A lease that does not suit c is released, and c joins again.
func (q *Queue) takeOver(c *Call) bool {
	for l := q.takeIdle(c.Name, c); l != nil; l = q.takeIdle(c.Name, c) {
		if !c.Fair && c.Hold.TakeOver(l, c.Terms) {
			return true
		}
		l.EndIdle()
		q.join(c)
	}
	return false
}

// takeIdle returns the lease of name that lingers, now reserved for the caller, which must call TakeOver or release the
// lease. It returns nil if no lease lingers, or if a call that is not c contends for the name.
func (q *Queue) takeIdle(name string, c *Call) *lease.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	nq := q.names[name]
	if nq == nil || nq.idle == nil || nq.contender != c {
		return nil
	}
	nq.holder, nq.contender = nq.idle, nil
	q.endIdleLocked(nq)
	return nq.holder
}

// endIdleLocked records that the lease of nq no longer lingers, if it did.
func (q *Queue) endIdleLocked(nq *nameQueue) {
	if nq.idle != nil {
		nq.idle = nil
		q.lingering--
	}
}
