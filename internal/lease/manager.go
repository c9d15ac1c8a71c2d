package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/due"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// repairPace is the pause between the extensions of two leases because of a master that is reachable again.
const repairPace = 20 * time.Microsecond

// Events receives reports about leases. Its methods do not block, and are called with no lock held.
type Events interface {
	Attempted(l *Lease, r *round.Round, ballot int64, err error) // a round was decided, or given up
	NotSent(op redlockinfo.Op, name string, f *round.Failure)    // an attempt has ended without sending anything
	// Acquired reports the first hold of an ownership. Exactly one report of its end follows: Lost for its lease, or
	// Released.
	Acquired(h *Hold)
	Extended(l *Lease, err error)
	Repaired(l *Lease, master int)
	Lost(l *Lease, cause error)  // the lease ended before its release
	Released(h *Hold, err error) // the ownership ended by Unlock, export or hand-off, or its Manager closed
}

// A LocalQueue has the calls that wait here. Leases call it directly, and not through Events, because waking the next
// waiter is part of locking, not of tracing. Its methods do not block, and are called with no lock held unless their
// comments say otherwise.
type LocalQueue interface {
	Releasing(l *Lease) // the release is about to be sent
	Ended(l *Lease)     // the lease is no longer held here
	// MayIdle reports whether l may linger: no call waits for the name, and messages from a quorum of masters can arrive.
	// It is called with the lease's lock held.
	MayIdle(l *Lease) bool
	// KeepIdle reports the same as MayIdle. If it returns true, the next call for the name may take l over.
	KeepIdle(l *Lease) bool
	// Successor returns the call to which the lease of name is handed off; nil if there is none. left is the validity of
	// the lease, and ttl its TTL. Successor is called with the lease's lock held.
	Successor(name string, left, ttl time.Duration) *Successor
	// Listen subscribes to the inbox, for messages about l, until Ended is called for l. It is called with the lease's
	// lock held.
	Listen(l *Lease)
}

// Env holds what all leases of one client share.
type Env struct {
	Sender     *round.Sender
	Clock      *clock.Clock
	Ballots    *ballot.Ballots
	View       func() *admission.View
	Prefix     scripts.Prefix
	Owner      string // the UUID with which the ids of its leases and waiters begin
	Locker     any    // equal for all shards of one Locker, which share one order of names: see OutOfOrder
	Label      string // human-readable name of the client, from WithLabel
	Closing    <-chan struct{}
	Events     Events
	LocalQueue LocalQueue // set before the first lease
	// Enter is called when a message is sent without a call that waits for the answer, and Leave when the answer has
	// arrived. Close of the Locker waits for these answers, because the pool may be closed afterwards.
	Enter, Leave func()
}

// A Manager acquires leases, and extends and ends all live leases of one client. Of its methods for other packages,
// only Acquire waits for the network.
type Manager struct {
	Env
	number     atomic.Uint64       // number of ids so far
	timers     *due.Timers[*Lease] // the live and idle leases
	rounds     limiter             // of the acquire rounds
	reentries  limiter             // of the re-entries, which therefore do not wait for acquire rounds
	addressees sync.Map            // the leases that Addressee finds, by id
	checks     pacer
	stopped    sync.Pool // timers for confirmed: a new one is three allocations
}

// NewManager returns a Manager and starts its goroutine, which EndAll ends.
func NewManager(env Env) *Manager {
	m := &Manager{}
	m.Env, m.timers, m.rounds.limit = env, due.New[*Lease](env.Clock), firstRounds
	m.reentries.limit = firstRounds
	return m
}

// All returns every live or idle lease.
func (m *Manager) All() []*Lease { return m.timers.All() }

// newlyReachable returns the masters that may have rejected the calls of a round with the view old, and can accept
// those of a round with the view now: masters with a new session or record, and masters that have begun to vote.
func newlyReachable(old, now *admission.View) quorum.Set {
	return quorum.First(len(now.Masters)).Where(func(i int) bool {
		master, before := &now.Masters[i], admission.State{}
		if i < len(old.Masters) {
			before = old.Masters[i]
		}
		return master.Session != 0 && (master.Session != before.Session || master.Stamp != before.Stamp ||
			master.Phase == admission.Voting && before.Phase != master.Phase)
	})
}

// unsure returns the masters of up that may have lost leases without a sign of the loss in the view, because the
// restart guard is off.
func unsure(now *admission.View, up quorum.Set) quorum.Set {
	return up.Where(func(i int) bool { return now.Masters[i].Stamp == "" })
}

// ViewChanged handles a changed view. It ends the leases that too many masters may have forgotten, and extends those
// that a newly reachable master lacks, so that the master is repaired.
func (m *Manager) ViewChanged(old, now *admission.View) {
	forgot, up := quorum.First(now.Config.Slots)&^same(old, now), newlyReachable(old, now)
	if forgot|up == 0 {
		return
	}
	pace := time.Duration(0)
	var ends []ending
	for _, l := range m.All() {
		l.mu.Lock()
		l.on.lose(l.on.has & forgot)
		end, lacks := l.endLocked(l.goneLocked()), up&^l.on.has|unsure(now, up) != 0
		l.mu.Unlock()
		end.endContexts()
		if end.why != nil {
			ends = append(ends, end)
		}
		if lacks {
			l.ExtendSoon(pace)
			pace += repairPace
		}
	}
	for _, end := range ends { // only now: see ending.endContexts
		end.finish()
	}
}

// Post sends a call to the masters in set. No call waits for the answers.
func (m *Manager) Post(set quorum.Set, c *frame.Call) {
	for i := range set.All() {
		m.Enter()
		if m.Sender.Pool.Send(i, c, transport.Condition{}, posted{m}) != nil { // a master that is down is not notified
			m.Leave()
		}
	}
}

// posted receives the answer to a message that was posted.
type posted struct{ m *Manager }

// Reply implements transport.Receiver.
func (p posted) Reply(int, any, error) {
	p.m.Sender.Health.Answers.Add(1)
	p.m.Leave()
}

// EndAll ends the Manager's goroutine and all leases; afterwards no lease becomes live. It ends the contexts of all
// leases, and then sends the releases. EndAll does not wait: if there are many leases, a goroutine sends the rest of
// the releases, and then calls Leave.
func (m *Manager) EndAll() {
	m.timers.Close()
	var ends []ending
	for _, l := range m.All() {
		l.mu.Lock()
		end := l.endLocked(closed)
		l.mu.Unlock()
		end.endContexts()
		if end.why != nil {
			ends = append(ends, end)
		}
	}
	m.finishPaced(ends)
}

// finishPaced finishes endings that send releases. It immediately sends half as many releases as the queue to a master
// holds, and each further one when an earlier one has been answered. More could fill the queue. The pool would
// then reject further releases, which would become pending, and might never be sent because the pool may be closed
// first.
func (m *Manager) finishPaced(ends []ending) {
	sent := make([]*round.Round, 0, len(ends))
	send := func() { sent = append(sent, ends[len(sent)].finish()) }
	first := min(len(ends), max(1, m.Sender.Pool.QueueLimit()/2))
	for len(sent) < first {
		send()
	}
	if first == len(ends) {
		return
	}
	m.Enter()
	go func() {
		defer m.Leave()
		for len(sent) < len(ends) {
			sent[len(sent)-first].Complete(context.Background()) // returns after the pool's timeout at the latest
			send()
		}
	}()
}

// Stopped ends the Manager's goroutine, if EndAll has not, and returns a channel that is closed when the goroutine has
// ended.
func (m *Manager) Stopped() <-chan struct{} { return m.timers.Close() }
