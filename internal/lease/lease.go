package lease

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/due"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Terms are the options of the call that acquires or re-enters a lease.
type Terms struct {
	TTL     time.Duration
	Least   time.Duration // the validity that must be left when the call returns
	MaxHold time.Duration // 0: no limit
	MinHold time.Duration // the masters keep the name for this long, even after Unlock; excludes Handoffs and Linger
	Extend  bool          // whether the lease is extended in the background
	Async   bool          // whether Unlock returns without waiting for the masters
	// Handoffs, in the terms of the call that wins the lease, bounds how often the lease is handed off until its release.
	// A later holder with Handoffs 0 does not hand the lease off. A holder hands the lease off only until its HandoffTime
	// has passed since the lease was won. See the package documentation.
	Handoffs    int
	HandoffTime time.Duration
	// HoldWarning is the time after which HeldLong returns true, unless there is a MaxHold; 0: it never does.
	HoldWarning time.Duration
	// Linger bounds how long the lease is kept after the last Unlock, for the next call of the Locker; 0: the last Unlock
	// releases the lease.
	Linger time.Duration
}

// remainingMinHold returns the part of MinHold that is left after held. The result includes the drift of MinHold, since
// the clock of the client or of a master may run fast.
func (t *Terms) remainingMinHold(held time.Duration) time.Duration {
	if t.MinHold == 0 {
		return 0
	}
	return max(0, t.MinHold+Drift(t.MinHold)-held)
}

// leaseTTL returns the TTL that is sent to the masters. held is the time since the lease was won.
func (t *Terms) leaseTTL(held time.Duration) time.Duration {
	//mutant:minimum-asked = t.TTL
	return max(t.TTL, t.remainingMinHold(held))
}

// fromGrant returns by how much the deadline of an acquire is later than its TTL. A minimum hold counts from the grant,
// which comes up to slowest after the start of the round. A release corrects the deadline.
func (t *Terms) fromGrant(slowest time.Duration) time.Duration {
	//mutant:minimum-from-grant = 0
	return t.leaseTTL(-slowest) - t.leaseTTL(0)
}

// A state is the state of a lease. A lease that was won is live until it ends, and may be idle in between: see
// linger.go.
type state uint8

const (
	trying state = iota
	live
	idle // the lease lingers without a holder: see linger.go
	ended
)

// A Lease is a name that the masters have granted, or may have granted, to one id. It has 496 bytes, and is in the size
// class of 512 of the allocator; the next one is 576.
type Lease struct {
	m        *Manager
	Name     string
	ID       string
	replaces string // for an import, the id by which masters may still know the lease; else ""
	keys     *scripts.Keys
	ticket   *scripts.Ticket // nil: the call has no waiter in the masters' queues
	waiter   Waiter          // of the call; nil if there is none
	active   atomic.Bool     // whether the round that acquires the lease is counted in Manager.rounds

	mu        sync.Mutex
	state     state
	inbox     inbox   // beside state, to save memory
	forced    *string // label of the client that says it has taken the lease by force; it only explains a loss
	validity  validity
	config    *quorum.Config // in which a majority last granted or confirmed the lease
	on        masters
	late      quorum.Set // masters that have not voted in a lost round, and whose grants must be rolled back
	sent      sent
	tokens    tokenRange
	ownership ownership
	renewal   renewal
	linger    linger
	value     scripts.Value // the latest that a holder has set, carried by extensions and repairs; "" for none
}

// Role returns the role of the lease: plain, reader or writer.
func (l *Lease) Role() scripts.Role { return l.keys.Role() }

// ids returns the ids by which masters may know the lease.
func (l *Lease) ids() []string {
	if l.replaces != "" {
		return []string{l.ID, l.replaces}
	}
	return []string{l.ID}
}

// A tokenRange holds the unused tokens of one acquire, and when the acquire was won. The first token is for the call
// that wins the lease. The others are for hand-offs, and for calls that take the lease over while it lingers.
type tokenRange struct {
	next, last int64
	handoffs   int // number of hand-offs left until the release
	won        clock.Instant
}

// A renewal determines when the Manager extends a lease: at soon or at the regular time, if that is earlier. The
// regular time is retry, or follows from validity.extendIn if retry is 0. A lease that is not extended in the
// background is only checked, at soon. The times are on the boot clock, because they only determine how long to wait.
type renewal struct {
	soon   int64          // when to extend early, because masters may lack the lease, or a message has come; 0: no reason
	retry  int64          // when to repeat the last extension; 0: the last extension was confirmed
	failed *round.Failure // of the last extension that was decided; nil if it was confirmed
	// nextCheck is the earliest time of the next extension that a message causes, on the boot clock.
	nextCheck int64
	entry     due.Entry[*Lease]
}

// An ownership is the state of a caller from its Lock to its last Unlock, including re-entries.
type ownership struct {
	token    int64
	depth    int   // number of holds that are not unlocked
	entering int32 // number of re-entries under way, which have no Hold yet
	reported bool  // whether HeldLong has returned true
	awaited  bool  // whether AwaitedLong has returned true
	// requested is closed when another client requests a release; nil: the holder has not called Requested.
	requested chan struct{}
	terms     Terms
	began     clock.Instant
	holds     []*Hold  // in no order
	single    [1]*Hold // the first hold; also the storage of holds before a re-entry
}

// addLocked adds a re-entry.
func (o *ownership) addLocked(h *Hold) {
	h.index = int32(len(o.holds))
	o.holds = append(o.holds, h)
}

// removeLocked removes h in constant time: thousands of re-entries may be unlocked together, while the Manager waits
// for the mutex of the lease.
func (o *ownership) removeLocked(h *Hold) {
	last := len(o.holds) - 1
	moved := o.holds[last]
	moved.index = h.index
	o.holds[h.index] = moved
	o.holds[last] = nil
	o.holds = o.holds[:last]
}

// giveUp ends a lease that is not live.
func (l *Lease) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = ended
	l.unaddressLocked()
}

// heldLocked returns the time since the ownership began. It uses only the boot clock, because a wall clock that was set
// forward must not free the name too early.
func (l *Lease) heldLocked(now clock.Instant) time.Duration {
	return time.Duration(now.Steady() - l.ownership.began.Steady())
}

// leftLocked returns how long the holder may rely on the lease: the validity, or the rest of the maximum hold if that
// is less.
func (l *Lease) leftLocked(now clock.Instant) time.Duration {
	left := l.validity.left(now)
	if m := l.ownership.terms.MaxHold; m > 0 {
		left = min(left, m-now.Sub(l.ownership.began))
	}
	return left
}

// Info describes a lease at one moment.
type Info struct {
	Token int64
	Left  time.Duration
	Held  time.Duration // since the ownership began
	Kept  time.Duration // remaining minimum hold of a lease that has ended
}

// Info describes the lease at this moment.
func (l *Lease) Info() Info {
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	i := Info{Token: l.ownership.token, Left: l.leftLocked(now), Held: now.Sub(l.ownership.began)}
	if l.state == ended {
		i.Kept = l.ownership.terms.remainingMinHold(l.heldLocked(now))
	}
	return i
}

// On returns how many masters are up and have the lease according to their last answer, and the number of all masters.
func (l *Lease) On() (on, of int) {
	view := l.m.View()
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range (l.on.has & view.Config.Rule.All()).All() {
		if view.Masters[m].Session != 0 {
			on++
		}
	}
	return on, view.Config.Rule.N()
}

// HeldLong reports whether the lease is live, and its ownership has lasted for Terms.HoldWarning. It returns true only
// once for each ownership.
func (l *Lease) HeldLong() bool {
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.ownership
	d := o.terms.HoldWarning
	long := l.state == live && !o.reported && d > 0 && o.terms.MaxHold == 0 && l.heldLocked(now) >= d
	o.reported = o.reported || long
	return long
}

// Over reports whether the lease has ended. It ends a lease whose validity has expired.
func (l *Lease) Over() bool {
	now := l.m.Clock.Now()
	l.mu.Lock()
	end := l.endLocked(l.expiredLocked(now))
	over := l.state == ended
	l.mu.Unlock()
	end.finish()
	return over
}

func (l *Lease) isLive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == live
}

// AwaitedLong reports whether the ownership of the lease has lasted for d. It returns true only once for each
// ownership.
func (l *Lease) AwaitedLong(d time.Duration) bool {
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.ownership
	long := l.state == live && !o.awaited && l.heldLocked(now) >= d
	o.awaited = o.awaited || long
	return long
}

// Config returns the configuration in which the lease was last won or confirmed.
func (l *Lease) Config() *quorum.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config
}

// Extends reports whether the lease is live and is extended in the background.
func (l *Lease) Extends() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == live && l.ownership.terms.Extend
}
