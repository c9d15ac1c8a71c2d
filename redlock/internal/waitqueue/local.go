package waitqueue

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Env is what a Queue needs of its Locker.
type Env struct {
	Manager *lease.Manager
	// Ready waits for a view in which an attempt makes sense; Changed is closed when the view changes.
	Ready   func(ctx context.Context) (*admission.View, error)
	Changed func() <-chan struct{}
	// Subscribe subscribes to the inbox: wake-ups arrive through Queue.WakeUp and Queue.Resubscribed.
	Subscribe func() Subscription
	// Starved is called, with no lock held, when a call begins to wait because no quorum can grant its name.
	Starved func()
	// OwnHold is called, with no lock held, when a call whose context never ends has waited for a second for a lease of
	// this same Locker. It is called once for each lease.
	OwnHold func(l *lease.Lease)
}

// A Queue holds the waiting calls of one Locker. Its methods are safe for concurrent use.
type Queue struct {
	Env

	mu          sync.Mutex
	calls       uint64 // how many so far
	noQuorum    bool   // according to the last attempt, no quorum of masters can vote, for any name
	names       map[string]*nameQueue
	inbox       Subscription // nil: it has not been needed for inboxIdle, or ever
	idle        *time.Timer  // closes inbox
	subscribers map[uint64]*Call
	refused     map[*Call]bool        // contenders whose last attempt has failed
	listening   map[*lease.Lease]bool // leases that need the inbox

	attempts uint64 // how many so far, of calls that do not queue
	trying   map[string]*attempt

	lingering int  // leases that linger; see package lease
	noLinger  bool // no further lease may linger
}

// A nameQueue holds the calls of this Locker for one name. It is in Queue.names while this Locker holds the name, or
// one of its calls waits for the name.
type nameQueue struct {
	holder    *lease.Lease   // nil: this Locker does not hold the name
	contender *Call          // nil: no call of this Locker contends for the name
	waiting   levels         // the local queue
	idle      bool           // holder lingers, and the next call takes it over
	refusal   *round.Failure // why calls must wait: heldLocally, or how the contender's last attempt failed
	noticed   *lease.Lease   // the last lease for which OwnHold was called
}

// heldLocally is the failure of a call that waits while its own Locker holds the name.
var heldLocally = &round.Failure{Decision: round.ErrHeld, Left: -1}

// A Call is one Lock that waits. To the masters it is one waiter.
type Call struct {
	Name     string
	Keys     *scripts.Keys
	Terms    *lease.Terms
	Stats    *lease.AcquireStats // nil: not recorded
	Hold     *lease.Hold         // becomes the first hold of a new lease, or of one that is handed off
	Priority int
	Fair     bool
	Called   clock.Instant                 // when the call began, for its place in the masters' queues
	Poll     func(retry int) time.Duration // returns the pause before a retry (from 1) if no wake-ups can arrive

	names *nameQueue
	own   nameQueue     // becomes the nameQueue of a name that has none yet
	seq   uint64        // numbers the calls in their order; also the number of the waiter
	wake  chan struct{} // capacity 1: check again; nil until the call first waits

	prev, next *Call // in its level of the local queue

	waiter
}

// A waiter is the state of a waiting Call. It is guarded by Queue.mu.
type waiter struct {
	state  waiterState
	ticket *scripts.Ticket // made when it is first sent, and kept
	joined bool            // the waiter may be in the queues of the masters
	unsure bool            // it is not known yet whether a quorum of masters can vote
	woken  quorum.Set      // masters that have sent a wake-up since the last attempt
	first  time.Time       // when the first of them did
}

// A waiterState is the state of a waiting Call.
type waiterState uint8

const (
	queued    waiterState = iota // it is in the local queue
	acquiring                    // it is the contender
	handoff                      // the lease is being handed off to it
	holding                      // it has the lease
	abandoned                    // it has given up
)

// New makes the Queue of one Locker.
func New(env Env) *Queue {
	return &Queue{
		Env: env, names: make(map[string]*nameQueue), subscribers: make(map[uint64]*Call), refused: make(map[*Call]bool),
		listening: make(map[*lease.Lease]bool), trying: make(map[string]*attempt),
	}
}

// join makes c the contender, or puts it into the local queue. If the name has a lease that lingers, it returns the
// lease instead, which is then reserved for c.
func (q *Queue) join(c *Call) *lease.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	c.seq = q.calls
	if c.Keys.Role() != scripts.Plain { // all of them contend, and the masters keep the order
		c.own = nameQueue{contender: c, refusal: heldLocally}
		c.names, c.state = &c.own, acquiring
		return nil
	}
	nq := q.names[c.Name]
	if nq == nil {
		nq = &c.own
		nq.refusal = heldLocally
		q.names[c.Name] = nq
	}
	if l := q.takeIdleLocked(nq); l != nil {
		return l
	}
	c.names = nq
	if nq.holder == nil && nq.contender == nil {
		nq.contender, c.state = c, acquiring
		return nil
	}
	c.wake = make(chan struct{}, 1)
	place := 1 + nq.waiting.insert(c)
	if nq.contender != nil {
		place++
	}
	c.Stats.RecordPlace(place)
	if c.Fair {
		q.subscribeLocked(c) // it must be subscribed by the time of the release; see Releasing
	}
	if nq.contender != nil && c.Priority > nq.contender.Priority {
		nq.contender.signal()
	}
	return nil
}

// signal makes the call check its state again.
func (c *Call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sleep waits until c must check its state again, because it was signalled, the view has changed, or pause has ended.
// It returns why the call must end, or nil if the call continues.
func (q *Queue) sleep(ctx context.Context, c *Call, changed <-chan struct{}, pause <-chan time.Time) error {
	select {
	case <-c.wake:
	case <-changed:
	case <-pause:
	case <-ctx.Done():
		return fault.ContextError(ctx)
	case <-q.Manager.Closing:
		return lease.ErrClosed
	}
	return nil
}

// recordFailure records how an attempt of a contender has failed.
func (q *Queue) recordFailure(c *Call, f *round.Failure) {
	q.mu.Lock()
	starves := starved(f) && (!q.refused[c] || !starved(c.names.refusal))
	c.names.refusal, q.refused[c] = f, true
	q.mu.Unlock()
	if starves && q.Starved != nil {
		q.Starved()
	}
}

// yieldLocked puts the contender c back into the local queue if a call with a higher priority waits there, and reports
// whether it did.
func (q *Queue) yieldLocked(c *Call) bool {
	nq := c.names
	if first := nq.waiting.first(); first == nil || first.Priority <= c.Priority {
		return false
	}
	q.leaveMastersLocked(c)
	delete(q.refused, c)
	nq.contender, c.state = nil, queued
	nq.waiting.insert(c)
	q.promoteLocked(c.Name, nq)
	return true
}

// leave removes c from the local queue and from those of the masters, and promotes the next waiter. It returns the
// state of c: abandoned, or handoff or holding if c gets the lease.
func (q *Queue) leave(c *Call) waiterState {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.state == queued || c.state == acquiring {
		q.leaveMastersLocked(c)
		nq := c.names
		if c.state == acquiring {
			nq.contender = nil
		} else {
			nq.waiting.remove(c)
		}
		q.promoteLocked(c.Name, nq)
		c.state = abandoned
	}
	delete(q.refused, c)
	q.unsubscribeLocked(c)
	return c.state
}

// promoteLocked makes the first of the local queue the contender if there is none, and removes an empty nameQueue.
func (q *Queue) promoteLocked(name string, nq *nameQueue) {
	switch c := nq.waiting.first(); {
	case nq.holder != nil || nq.contender != nil:
	case c != nil:
		nq.waiting.remove(c)
		nq.contender, c.state = c, acquiring
		c.signal()
	case q.names[name] == nq:
		delete(q.names, name)
	}
}

// startHold makes the won lease of c live.
func (q *Queue) startHold(c *Call, l *lease.Lease) error {
	q.mu.Lock()
	c.names.contender, c.state = nil, holding
	delete(q.refused, c)
	if l.Role() == scripts.Plain {
		q.recordHoldLocked(l)
	}
	q.mu.Unlock()
	return c.Hold.Start(l, c.Terms)
}

// Holder returns the lease of name that this Locker has; nil if it has none.
func (q *Queue) Holder(name string) *lease.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	if nq := q.names[name]; nq != nil {
		return nq.holder
	}
	return nil
}

// RecordHold records a lease of a call that has not waited here: a TryLock, an Import.
func (q *Queue) RecordHold(l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recordHoldLocked(l)
}

func (q *Queue) recordHoldLocked(l *lease.Lease) {
	nq := q.names[l.Name]
	if nq == nil {
		nq = &nameQueue{}
		q.names[l.Name] = nq
	}
	q.takeIdleLocked(nq) // nq still has a holder if the masters have lost its lease, and this Locker has not noticed that
	nq.holder, nq.refusal = l, heldLocally
	if l.MayLinger() {
		q.listenLocked(l)
	}
}

// Ended implements lease.Waiters: the lease is no longer held here, and the first of the local queue contends.
func (q *Queue) Ended(l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listening[l] {
		delete(q.listening, l)
		q.useInboxLocked(inboxIdle)
	}
	if nq := q.names[l.Name]; nq != nil && nq.holder == l {
		q.takeIdleLocked(nq)
		nq.holder = nil
		q.promoteLocked(l.Name, nq)
	}
}

// Successor implements lease.Waiters. It considers only the first call of the local queue, so that no other call
// overtakes it. It returns nil if that call is fair, has a shorter TTL than the lease, or requires more validity than
// is left.
func (q *Queue) Successor(name string, left, ttl time.Duration) *lease.Successor {
	q.mu.Lock()
	defer q.mu.Unlock()
	nq := q.names[name]
	if nq == nil || nq.contender != nil { // the contender comes before the other calls
		return nil
	}
	c := nq.waiting.first()
	if c == nil || c.Fair || left < c.Terms.Least {
		return nil
	}
	if ttl > c.Terms.TTL { // the masters would keep it for longer than the TTL of c
		return nil
	}
	nq.waiting.remove(c)
	c.state = handoff
	return &lease.Successor{First: c.Hold, Terms: c.Terms, OnHandoff: func() { q.finishHandoff(c) }}
}

// finishHandoff notifies c that it has the lease.
func (q *Queue) finishHandoff(c *Call) {
	q.mu.Lock()
	c.state = holding
	q.mu.Unlock()
	c.signal()
}
