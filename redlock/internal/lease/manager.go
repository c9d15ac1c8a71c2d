package lease

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/due"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// repairPace is the pause between two leases that are extended because a master has come back.
const repairPace = 20 * time.Microsecond

// Events reports what happens to leases. Its methods queue a report and do not block. They are called with no lock
// held.
type Events interface {
	Attempted(l *Lease, r *round.Round, ballot int64, err error) // a round was decided, or given up
	NotSent(op, name string, f *round.Failure)                   // nothing was sent
	// Acquired reports the first hold of an ownership. It has one end: Lost of its lease, or Released.
	Acquired(h Holder)
	Extended(l *Lease, err error)
	Repaired(l *Lease, master int)
	Lost(l *Lease, cause error)   // it ended before its release
	Released(h Holder, err error) // the last hold was unlocked, exported, handed off, or its Manager closed
}

// A Holder describes a Hold to Events.
type Holder interface {
	Lease() *Lease
	Token() int64
	Info() Info
}

// Waiters is the local queue. It learns of the ends of leases directly, since they wake the next waiter: that is part
// of the lock and not of its trace. Its methods do not block, and are called with no lock held
// unless they say otherwise.
type Waiters interface {
	Releasing(l *Lease) // the release is about to be sent
	Ended(l *Lease)     // the lease is no longer held here
	// MayIdle reports whether l may linger: no call waits for the name, and a quorum of masters can send recalls. It is
	// called with the lease's lock held.
	MayIdle(l *Lease) bool
	// Idle is MayIdle, and gives l to the next call if so.
	Idle(l *Lease) bool
	// Listen subscribes to the inbox, for messages about l, until Ended. It is called with the lease's lock held.
	Listen(l *Lease)
}

// Env is what all leases of one Locker share.
type Env struct {
	Sender  *round.Sender
	Clock   *clock.Clock
	Drift   Drift
	Ballots *ballot.Ballots
	View    func() *admission.View
	Prefix  scripts.Prefix
	Owner   string // the UUID of the Locker, which begins the ids of its leases and waiters
	Label   string // for people: what WithOwner sets
	Closing <-chan struct{}
	Events  Events
	Waiters Waiters // set before the first lease
	// Enter is called when a message is sent that no call may be waiting for, and Leave when it is answered. Close of
	// the Locker waits for these answers: only then may the pool be closed.
	Enter, Leave func()
}

// services are what a lease uses of its Manager.
type services struct {
	Env
	timers     *due.Timers[*Lease] // the live leases
	rounds     limiter             // of acquires
	addressees addressees
	checks     pacer
	first      atomic.Pointer[services] // represents all those that lock names as one in one order
}

// A Manager acquires leases, and extends and ends all live leases of one Locker. It never waits for the network, except
// in Acquire and Import.
type Manager struct {
	services
	number atomic.Uint64 // of the ids
}

// NewManager starts the Manager's goroutine. EndAll ends it.
func NewManager(env Env) *Manager {
	m := &Manager{}
	m.Env, m.timers, m.rounds.limit = env, due.New[*Lease](env.Clock), firstRounds
	m.Share(m)
	return m
}

// Share makes m and first, which other Managers may share as well, lock names as one in one order.
func (m *Manager) Share(first *Manager) { m.first.Store(&first.services) }

// All returns every live lease.
func (m *Manager) All() []*Lease { return m.timers.All() }

// Run implements due.Task: it extends the lease, or ends it and its contexts. The function that it returns does the
// rest.
func (l *Lease) Run(now clock.Instant) (after func()) {
	var e *extension
	l.mu.Lock()
	end := l.endLocked(l.expiredLocked(now))
	switch l.state {
	case live:
		if l.renewInLocked(now) <= 0 {
			e = l.renewLocked(now)
		}
		//mutant:long-hold-listens = false
		if l.listenInLocked(now) <= 0 {
			l.listenLocked()
		}
		l.scheduleLocked(now)
	case idle:
		l.scheduleLocked(now)
	}
	l.mu.Unlock()
	//mutant:expiry-before-log -> end.finish()
	end.endContexts()
	switch {
	case end.why != nil:
		//mutant:expiry-before-log = nil
		return func() { end.finish() }
	case e != nil && len(e.skipped) > 0:
		return func() { e.RecordAll(e.skipped) }
	}
	return nil
}

// renewLocked sends an extension, and another one later unless this one is confirmed. Without extension in the
// background it sends one that prolongs nothing, because of a message about the lease.
func (l *Lease) renewLocked(now clock.Instant) *extension {
	l.checkedLocked(now)
	if !l.ownership.terms.Extend {
		//mutant:check-prolongs = l.extendLocked("extend", 0)
		return l.checkLocked("check", "")
	}
	e := l.extendLocked("extend", 0)
	e.retry = now.Add(l.validity.retryIn(now))
	l.renewal.soon, l.renewal.retry = clock.Instant{}, e.retry
	return e
}

const forever = time.Duration(math.MaxInt64)

// renewInLocked returns the time until the next extension in the background.
func (l *Lease) renewInLocked(now clock.Instant) time.Duration {
	wait := l.checkInLocked(now)
	if !l.ownership.terms.Extend {
		return wait
	}
	if l.renewal.retry == (clock.Instant{}) {
		wait = min(wait, l.validity.extendIn(l.ownership.terms.TTL, l.m.Drift, now))
	}
	return min(wait, until(l.renewal.soon, now), until(l.renewal.retry, now))
}

// until returns the time from now to at, by the boot clock alone: it only makes us wait. It is forever for the zero
// Instant.
func until(at, now clock.Instant) time.Duration {
	if at == (clock.Instant{}) {
		return forever
	}
	return time.Duration(at.Steady() - now.Steady())
}

// scheduleLocked sets when the manager runs the lease again.
func (l *Lease) scheduleLocked(now clock.Instant) {
	l.m.timers.Reschedule(&l.renewal.entry, l.nextRunLocked(now))
}

// nextRunLocked returns when the manager is to run the lease again, on the boot clock.
func (l *Lease) nextRunLocked(now clock.Instant) int64 {
	wait := min(l.leftLocked(now), l.renewInLocked(now), l.listenInLocked(now))
	if l.state == idle {
		wait = time.Duration(l.linger.until - now.Steady())
	}
	return now.Steady() + int64(max(0, wait))
}

// ExtendSoon extends the lease after a pause, so that masters which lack it are given it. It does so while an
// extension is under way, too: that one may have come too early for them. A lease that lingers is extended when it is
// taken over.
func (l *Lease) ExtendSoon(after time.Duration) {
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extendSoonLocked(now, after)
}

func (l *Lease) extendSoonLocked(now clock.Instant, after time.Duration) {
	at := now.Add(after)
	soon := l.renewal.soon
	//mutant:idle-repair 2= false
	if (l.state == live || l.state == idle) && (soon == (clock.Instant{}) || at.Steady() < soon.Steady()) {
		l.renewal.soon = at
		l.scheduleLocked(now)
	}
}

// newlyReachable returns the masters that accept calls of a round that follows now, and may have rejected those of a
// round that followed then: they have another session or another record, or have begun to vote.
func newlyReachable(then, now *admission.View) (set quorum.Set) {
	for i := range now.Masters {
		master, before := &now.Masters[i], admission.State{}
		if i < len(then.Masters) {
			before = then.Masters[i]
		}
		if master.Session != 0 && (master.Session != before.Session || master.Stamp != before.Stamp ||
			master.Phase == admission.Voting && before.Phase != master.Phase) {
			set |= quorum.One(i)
		}
	}
	return set
}

// unsure returns the masters of up that may have lost leases. With the restart guard off a restart does not show that.
func unsure(now *admission.View, up quorum.Set) (set quorum.Set) {
	for i := range up.All() {
		if now.Masters[i].Stamp == "" {
			set |= quorum.One(i)
		}
	}
	return set
}

// Changed handles a changed view: it drops what masters have forgotten, and repairs missing leases.
func (m *Manager) Changed(old, now *admission.View) {
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
			//mutant:loss-before-log -> end.finish()
			ends = append(ends, end)
		}
		if lacks {
			l.ExtendSoon(pace)
			pace += repairPace
		}
	}
	finishAll(ends)
}

// Post sends a call to the masters in set. No client waits for the answers.
func (m *services) Post(set quorum.Set, c *frame.Call) {
	for i := range set.All() {
		m.Enter()
		if m.Sender.Pool.Send(i, c, transport.Stamp{}, posted{m}) != nil { // a master that is down is not notified
			m.Leave()
		}
	}
}

// posted receives the answer to a message that was posted.
type posted struct{ m *services }

// Reply implements transport.Receiver.
func (p posted) Reply(int, any, error) { p.m.Leave() }

// EndAll ends every live lease with ErrClosed: first the contexts of all, then it sends the releases. It also ends the
// Manager's goroutine. From here on no lease becomes live. It does not wait.
func (m *Manager) EndAll() {
	m.timers.Close()
	var ends []ending
	for _, l := range m.All() {
		l.mu.Lock()
		end := l.endLocked(closed)
		l.mu.Unlock()
		//mutant:close-before-log -> end.endContexts(); finishAll(ends); ends = nil
		end.endContexts()
		ends = append(ends, end)
	}
	finishAll(ends)
}

// Stopped returns a channel that is closed when the goroutine has ended, which EndAll ends.
func (m *Manager) Stopped() <-chan struct{} { return m.timers.Close() }
