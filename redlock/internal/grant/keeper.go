package grant

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/due"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// repairPace is the pause between two grants that are extended because a master has come back.
const repairPace = 20 * time.Microsecond

// Events reports what happens to grants. Its methods queue a report and do not block. They are called with no lock held.
type Events interface {
	Asked(g *Grant, r *round.Round, ballot int64, err error) // a round was decided, or given up
	Unasked(op, name string, f *round.Failure)               // nothing was sent
	// Acquired reports the first handle of a tenure. It has one end: Lost of its grant, or Released.
	Acquired(h *Handle)
	Extended(g *Grant, err error)
	Repaired(g *Grant, master int)
	Lost(g *Grant, cause error)    // it ended before its release
	Released(h *Handle, err error) // the last handle was unlocked, exported, handed on, or its Keeper closed
}

// Waiters is the local queue. It learns of the ends of grants directly, since they wake the next waiter: that is part
// of the lock and not of its trace. Its methods do not block, and are called with no lock held.
type Waiters interface {
	Releasing(g *Grant) // the release is about to be sent
	Over(g *Grant)      // the grant is not held here any more
}

// Env is what all grants of one Locker share.
type Env struct {
	Sender  *round.Sender
	Clock   *clock.Clock
	Drift   clock.Drift
	Ballots *ballot.Ballots
	View    func() *admission.View
	Prefix  scripts.Prefix
	Owner   string // the UUID of the Locker, which begins the ids of its grants and waiters
	Label   string // for people: what WithOwner sets
	Closing <-chan struct{}
	Events  Events
	Waiters Waiters // set before the first grant
	// Enter is called when a message is sent that no call may be waiting for, and Leave when it is answered. Close of the
	// Locker waits for these answers: only then may the pool be closed.
	Enter, Leave func()
}

// A Keeper looks after all live grants of one Locker. It never waits for the network.
type Keeper struct {
	Env
	list   *due.List[*Grant] // the live grants
	number atomic.Uint64     // of the ids
	rounds limiter           // of acquires
	shared atomic.Pointer[Keeper]
}

// NewKeeper starts the Keeper's goroutine. EndAll ends it.
func NewKeeper(env Env) *Keeper {
	return &Keeper{Env: env, list: due.New[*Grant](env.Clock), rounds: limiter{limit: firstRounds}}
}

// Share has k and first, which other Keepers may share as well, lock names as one in one order.
func (k *Keeper) Share(first *Keeper) { k.shared.Store(first) }

// order stands for all Keepers that share one order.
func (k *Keeper) order() *Keeper {
	if first := k.shared.Load(); first != nil {
		return first
	}
	return k
}

// All returns every live grant.
func (k *Keeper) All() []*Grant { return k.list.All() }

// Look implements due.Looker: it extends the grant, or ends it and its contexts. The function that it returns does the
// rest.
func (g *Grant) Look(now clock.Instant) (after func()) {
	var e *extension
	g.mu.Lock()
	n := g.endLocked(g.overLocked(now))
	if g.state == live {
		if g.renewInLocked(now) <= 0 {
			e = g.extendLocked("extend", 0)
			e.retry = now.Add(g.validity.retryIn(now))
			g.renewal.soon, g.renewal.retry = clock.Instant{}, e.retry
		}
		g.planLocked(now)
	}
	g.mu.Unlock()
	n.endContexts()
	switch {
	case n.cause != nil:
		return func() { g.report(n) }
	case e != nil && len(e.unsent) > 0:
		return func() { e.CastAll(e.unsent) }
	}
	return nil
}

// renewInLocked is how long until the next extension in the background.
func (g *Grant) renewInLocked(now clock.Instant) time.Duration {
	wait := time.Duration(math.MaxInt64)
	if !g.tenure.terms.Extend {
		return wait
	}
	if g.renewal.retry.IsZero() {
		wait = g.validity.extendIn(g.tenure.terms.TTL, g.k.Drift, now)
	}
	for _, at := range []clock.Instant{g.renewal.soon, g.renewal.retry} {
		if !at.IsZero() {
			wait = min(wait, time.Duration(at.Steady()-now.Steady())) // it only makes us wait: by the boot clock alone
		}
	}
	return wait
}

// planLocked says when the grant is to be looked at again.
func (g *Grant) planLocked(now clock.Instant) { g.k.list.Fix(&g.renewal.entry, g.lookAtLocked(now)) }

// lookAtLocked is when the grant is to be looked at again, on the boot clock.
func (g *Grant) lookAtLocked(now clock.Instant) int64 {
	return now.Steady() + int64(max(0, min(g.leftLocked(now), g.renewInLocked(now))))
}

// ExtendSoon has the grant extended after a pause, so that masters which lack it are given it. It does so while an
// extension is under way, too: that one may have come too early for them.
func (g *Grant) ExtendSoon(after time.Duration) {
	now := g.k.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.extendSoonLocked(now, after)
}

func (g *Grant) extendSoonLocked(now clock.Instant, after time.Duration) {
	at := now.Add(after)
	if g.state == live && (g.renewal.soon.IsZero() || at.Steady() < g.renewal.soon.Steady()) {
		g.renewal.soon = at
		g.planLocked(now)
	}
}

// newlyReachable returns the masters that accept calls of a round that follows now, and may have rejected those of a
// round that followed then: they have another session or another record, or have begun to vote.
func newlyReachable(then, now *admission.View) (set quorum.Set) {
	for i := range now.Masters {
		m, before := &now.Masters[i], admission.State{}
		if i < len(then.Masters) {
			before = then.Masters[i]
		}
		if m.Session != 0 && (m.Session != before.Session || m.Stamp != before.Stamp ||
			m.Phase == admission.Voting && before.Phase != m.Phase) {
			set |= quorum.One(i)
		}
	}
	return set
}

// Changed is told that the view has changed: what masters have forgotten is lost, and what they lack is repaired.
func (k *Keeper) Changed(old, now *admission.View) {
	forgot, up := quorum.First(now.Config.Slots)&^same(old, now), newlyReachable(old, now)
	if forgot|up == 0 {
		return
	}
	pace := time.Duration(0)
	var reports []func()
	for _, g := range k.All() {
		g.mu.Lock()
		g.on.lose(g.on.has & forgot)
		n, lacks := g.endLocked(g.goneLocked()), up&^g.on.has != 0
		g.mu.Unlock()
		n.endContexts()
		if n.cause != nil {
			reports = append(reports, func() { g.report(n) })
		}
		if lacks {
			g.ExtendSoon(pace)
			pace += repairPace
		}
	}
	for _, report := range reports {
		report()
	}
}

// Post sends a call to the masters in set. Nobody waits for the answers.
func (k *Keeper) Post(set quorum.Set, c *scripts.Call) {
	for i := range set.All() {
		k.Enter()
		if k.Sender.Pool.Send(i, c, pool.Stamp{}, posted{k}) != nil { // a master that is down is not told
			k.Leave()
		}
	}
}

// posted receives the answer to a message that was posted.
type posted struct{ k *Keeper }

// Reply implements pool.Receiver.
func (p posted) Reply(int, any, error) { p.k.Leave() }

// EndAll ends every live grant with ErrClosed: first the contexts of all, then it sends the releases. It also ends the
// Keeper's goroutine. From here on no grant becomes live. It does not wait.
func (k *Keeper) EndAll() {
	k.list.Close()
	var releases []func()
	for _, g := range k.All() {
		g.mu.Lock()
		n := g.endLocked(ErrClosed)
		g.mu.Unlock()
		n.endContexts()
		if n.cause != nil {
			releases = append(releases, func() {
				g.report(n)
				g.release("unlock")
				k.Events.Released(n.handles[0], ErrClosed)
			})
		}
	}
	for _, release := range releases {
		release()
	}
}

// Ended is closed when the goroutine has ended, which EndAll ends.
func (k *Keeper) Ended() <-chan struct{} { return k.list.Close() }
