package waitqueue

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Env holds what a Queue uses of its client.
type Env struct {
	Manager *lease.Manager
	// Ready waits for a view in which an attempt makes sense. Changed returns a channel that is closed when the view
	// changes.
	Ready   func(ctx context.Context) (*admission.View, error)
	Changed func() <-chan struct{}
	// Subscribe subscribes the Queue to the inbox; the Queue is the feed.Listener.
	Subscribe func() Subscription
	// Starved is called, with no lock held, when a call begins to wait because no quorum can grant its name.
	Starved func()
	// OwnHold is called, with no lock held, when an endless call has waited for a second for a lease of this same Locker.
	// OwnHold is called at most once for each holder.
	OwnHold func(l *lease.Lease)
}

// A Queue holds the waiting calls of one client. Its methods are safe for concurrent use.
type Queue struct {
	Env

	mu          sync.Mutex
	calls       uint64 // number of calls so far
	noQuorum    bool   // whether no quorum of masters could vote in the last attempt, for any name
	names       map[string]*nameQueue
	inbox       Subscription          // nil: closed, because no call and no lease needs it
	closing     *time.Timer           // closes inbox after inboxIdle
	subscribers map[uint64]*Call      // calls that need the inbox, by Call.seq
	refused     map[*Call]bool        // contenders whose last attempt has failed
	listening   map[*lease.Lease]bool // leases that need the inbox

	attempts uint64 // number of attempts so far of calls that do not queue
	trials   map[string]*trials

	lingering int  // number of leases that linger; see package lease
	noLinger  bool // whether StopLingering was called
}

// A nameQueue holds the calls of this Locker for one name. It is in Queue.names while this Locker holds the name, or
// its lease lingers, or one of its calls waits for the name.
type nameQueue struct {
	holder    *lease.Lease   // nil: this Locker does not hold the name
	contender *Call          // nil: no call of this Locker contends for the name
	waiting   levels         // the local queue
	idle      *lease.Lease   // the lease that lingers, which the next call may take over; nil if none does
	refusal   *round.Failure // why calls must wait: heldLocally, or how the contender's last attempt failed
}

// heldLocally is the failure of a call that waits while its own Locker holds the name.
var heldLocally = &round.Failure{Decision: round.ErrHeld, Left: -1}

// A Call is one call of Lock that waits. On the masters, a Call is one waiter.
type Call struct {
	Op       redlockinfo.Op // for errors and events
	Name     string
	Keys     *scripts.Keys
	Terms    *lease.Terms
	Stats    *lease.AcquireStats // nil: not recorded
	Hold     *lease.Hold         // becomes the hold of the lease that the call gets
	Priority int
	Fair     bool
	Endless  bool                          // whether nothing ends the wait of the call but the lock
	Called   clock.Instant                 // when the call began, for its place in the masters' queues
	Poll     func(retry int) time.Duration // returns the pause before a retry (from 1) if no wake-ups can arrive

	names *nameQueue
	own   nameQueue     // storage for names, if the name has no nameQueue yet
	seq   uint64        // number of the call in the order of calls; also the number of its waiter
	wake  chan struct{} // makes the call check its state again; capacity 1; nil until the call first waits

	prev, next *Call // neighbors in the level of the local queue

	waiter
}

// A waiter is the state of a waiting Call. It is guarded by Queue.mu.
type waiter struct {
	ticket *scripts.Ticket // nil until the ticket is first needed; does not change
	state  waiterState
	joined bool       // whether the waiter may be in the queues of the masters
	unsure bool       // whether votes that decide if a quorum of masters can vote are missing
	woken  quorum.Set // masters that have sent a wake-up since the last attempt
	first  time.Time  // when the first of these wake-ups arrived
}

// A waiterState is the state of a waiting Call.
type waiterState uint8

const (
	queued    waiterState = iota // the call is in the local queue
	acquiring                    // the call is the contender
	handoff                      // a lease is being handed off to the call
	holding                      // the call has the lease
	abandoned                    // the call has given up
)

// New makes the Queue of one client.
func New(env Env) *Queue {
	return &Queue{
		Env: env, names: make(map[string]*nameQueue), subscribers: make(map[uint64]*Call), refused: make(map[*Call]bool),
		listening: make(map[*lease.Lease]bool), trials: make(map[string]*trials),
	}
}

// recordFailure records how an attempt of a contender has failed.
func (q *Queue) recordFailure(c *Call, f *round.Failure) {
	q.mu.Lock()
	starves := starved(f) && (!q.refused[c] || !starved(c.names.refusal))
	c.names.refusal, q.refused[c] = f, true
	q.mu.Unlock()
	if starves {
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

// promoteLocked makes the first call in the local queue the contender if the name has no holder and no contender. It
// removes an empty nameQueue.
func (q *Queue) promoteLocked(name string, nq *nameQueue) {
	switch c := nq.waiting.first(); {
	case nq.holder != nil || nq.contender != nil || nq.idle != nil:
	case c != nil:
		nq.waiting.remove(c)
		nq.contender, c.state = c, acquiring
		c.signal()
	case q.names[name] == nq:
		delete(q.names, name)
	}
}

// Holder returns the lease of name that this Locker holds, or that lingers; nil if there is none.
func (q *Queue) Holder(name string) *lease.Lease {
	q.mu.Lock()
	defer q.mu.Unlock()
	if nq := q.names[name]; nq != nil {
		return cmp.Or(nq.holder, nq.idle)
	}
	return nil
}

// Start makes h the first hold of a lease that a call has won without waiting here, by [Queue.Try] or an import.
func (q *Queue) Start(l *lease.Lease, h *lease.Hold, terms *lease.Terms) error {
	q.mu.Lock()
	q.recordHoldLocked(l)
	q.mu.Unlock()
	return h.Start(l, terms)
}

// heldHere returns the failure of a call for a name that this Locker itself holds, or nil if it does not hold the name.
// Such a call sends nothing. A lease that has ended is not held, even if Ended has not been called for it yet.
func (q *Queue) heldHere(name string) error {
	l := q.Holder(name)
	if l == nil || l.Over() {
		return nil
	}
	i, rule := l.Info(), q.Manager.View().Config.Rule
	return &round.Failure{
		Decision: round.ErrHeld, Quorum: rule.Least(), N: rule.N(), Left: i.Left, Holder: l.ID, Token: i.Token,
	}
}

func (q *Queue) recordHoldLocked(l *lease.Lease) {
	nq := q.names[l.Name]
	if nq == nil {
		nq = &nameQueue{}
		q.names[l.Name] = nq
	}
	q.endIdleLocked(nq) // the masters have lost the lease of nq, and this Locker has not noticed that
	nq.holder, nq.refusal = l, heldLocally
}

// Ended implements lease.LocalQueue. It records that l is no longer held here, and makes the first call in the local
// queue the contender.
func (q *Queue) Ended(l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listening[l] {
		delete(q.listening, l)
		q.useInboxLocked(inboxIdle)
	}
	if nq := q.names[l.Name]; nq != nil && cmp.Or(nq.holder, nq.idle) == l {
		q.endIdleLocked(nq)
		nq.holder = nil
		q.promoteLocked(l.Name, nq)
	}
}

// Successor implements lease.LocalQueue. It considers only the first call in the local queue, so that no other call
// overtakes that call.
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
	if ttl > c.Terms.TTL { // the masters would keep the lease for longer than the TTL of c
		return nil
	}
	nq.waiting.remove(c)
	c.state = handoff
	return &lease.Successor{First: c.Hold, Terms: c.Terms, OnHandoff: func() { q.finishHandoff(c) }}
}

// finishHandoff notifies c that the hand-off is done.
func (q *Queue) finishHandoff(c *Call) {
	q.mu.Lock()
	c.state = holding
	q.mu.Unlock()
	c.signal()
}
