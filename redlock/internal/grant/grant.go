package grant

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/due"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Why a grant, or a handle of it, has ended. Package redlock exports these errors and documents them.
var (
	ErrLost     = errors.New("redlock: the lock was lost")
	ErrMaxHold  = fmt.Errorf("%w: it was held as long as its limit allows", ErrLost)
	ErrReleased = errors.New("redlock: the lock is released")
	ErrExported = errors.New("redlock: the lock was exported to another process")
	ErrClosed   = errors.New("redlock: the locker is closed")
	ErrNested   = errors.New("redlock: it is locked more than once; unlock the inner locks first")
)

// The two ways of losing a lock, for the log and for people. Callers see both as ErrLost.
var (
	errLapsed = fmt.Errorf("%w: no majority extended it in time", ErrLost)
	errGone   = fmt.Errorf("%w: too few masters still have it", ErrLost)
)

// Terms are what a caller asked for.
type Terms struct {
	TTL     time.Duration
	Least   time.Duration // the validity that must be left when the call returns
	MaxHold time.Duration // 0: no limit
	MinHold time.Duration // the masters keep the name for so long, also after its Unlock
	Extend  bool          // in the background
	// HandOns of the call that wins the grant is how often it may be handed on until its release. A later holder with 0
	// does not hand it on. HandOnTime is of the holder that unlocks: it hands the grant on only if less than this has
	// passed since the grant was won. See the package documentation.
	HandOns    int
	HandOnTime time.Duration
}

// rest is for how long the masters must still keep a grant that was won held ago, because of MinHold; 0: they need not.
// The drift is on top of it, for clocks that are fast, here or there.
func (t *Terms) rest(held time.Duration, d clock.Drift) time.Duration {
	if t.MinHold == 0 {
		return 0
	}
	return max(0, t.MinHold+d.Of(t.MinHold)-held)
}

// handOns is HandOns; a lock with a minimum hold is not handed on.
func (t *Terms) handOns() int {
	if t.MinHold > 0 {
		return 0
	}
	return t.HandOns
}

// keep is the TTL that the masters are sent for such a grant.
func (t *Terms) keep(held time.Duration, d clock.Drift) time.Duration {
	return max(t.TTL, t.rest(held, d))
}

// A state says how far a grant is.
type state uint8

const (
	trying state = iota
	live
	ended
)

// A Grant is one id on the masters.
type Grant struct {
	k        *Keeper
	Name     string
	ID       string
	replaces string // of an import: the id by which masters may know it still; else ""
	keys     *scripts.Keys
	ticket   *scripts.Ticket // of the waiter that asked; nil where it had none
	asking   asking

	mu       sync.Mutex
	state    state
	validity validity
	config   *quorum.Config // by which it was last won or confirmed
	on       masters
	sent     sent
	block    block
	tenure   tenure
	renewal  renewal
}

// Role is what the grant is to its name.
func (g *Grant) Role() scripts.Role { return g.keys.Role() }

// ids are those by which masters may know the grant.
func (g *Grant) ids() []string {
	if g.replaces != "" {
		return []string{g.ID, g.replaces}
	}
	return []string{g.ID}
}

// masters are those that have the grant by their last answer, and those that have lost it.
type masters struct{ has, lost quorum.Set }

func (m *masters) gain(set quorum.Set) { m.has, m.lost = m.has|set, m.lost&^set }
func (m *masters) lose(set quorum.Set) { m.has, m.lost = m.has&^set, m.lost|set }

// A block is the ballots of one acquire that are tokens still to come, and when the acquire was won. All but the first
// are for handing the grant on.
type block struct {
	next, last int64
	won        clock.Instant
}

// A renewal says when the Keeper extends a grant: at the first of these, or when the validity says.
type renewal struct {
	soon  clock.Instant // ExtendSoon was called; zero: it was not
	retry clock.Instant // the last extension has not been confirmed; zero: it was
	entry due.Entry[*Grant]
}

// A tenure is what a caller holds: from its Lock to its last Unlock.
type tenure struct {
	token   int64
	depth   int // handles that are not unlocked
	coming  int // re-entries under way, which are no handles yet
	terms   Terms
	began   clock.Instant
	handles []*Handle
	alone   [1]*Handle // the first handle; what handles is cut from while there is one
}

// Begin makes a won grant live with h as its first handle. It fails with a *round.Failure where the Keeper has closed,
// or too many masters have lost the grant meanwhile; then the grant has been released.
func (g *Grant) Begin(h *Handle, terms *Terms) error {
	now := g.k.Clock.Now()
	g.mu.Lock()
	g.state = live
	g.tenure.start(g, h, g.block.next, terms, now)
	g.block.next++
	open := g.k.list.Add(&g.renewal.entry, g, g.lookAtLocked(now))
	view := g.k.View() // after Add: of later changes Keeper.Changed tells
	g.on.lose(g.on.has &^ same(g.sent.view, view))
	lacks := newlyReachable(g.sent.view, view) &^ g.on.has
	cause := g.goneLocked()
	if !open {
		cause = ErrClosed
	}
	g.endLocked(cause)
	if cause != nil {
		g.tenure.terms.MinHold = 0 // the caller does not get it
	}
	g.mu.Unlock()
	if cause != nil {
		g.release("unlock")
		return &round.Failure{Decision: cause}
	}
	g.k.Events.Acquired(h)
	if lacks != 0 {
		g.ExtendSoon(0)
	}
	return nil
}

// giveUp ends a grant that was not won, or that nobody has taken.
func (g *Grant) giveUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = ended
}

// heldLocked is how long ago the tenure began. A wall clock that was set forward must not free the name too early, so
// it goes by the boot clock alone.
func (g *Grant) heldLocked(now clock.Instant) time.Duration {
	return time.Duration(now.Steady() - g.tenure.began.Steady())
}

// start makes t the tenure of h.
func (t *tenure) start(g *Grant, h *Handle, token int64, terms *Terms, now clock.Instant) {
	*t = tenure{token: token, depth: 1, terms: *terms, began: now}
	h.g, h.token = g, token
	t.alone[0] = h
	t.handles = t.alone[:]
}

// same is the set of the masters at whose addresses the servers of then still stand, and have not forgotten since.
func same(then, now *admission.View) (set quorum.Set) {
	for i := range min(len(then.Masters), len(now.Masters)) {
		if then.Masters[i].Generation == now.Masters[i].Generation {
			set |= quorum.One(i)
		}
	}
	return set
}

// gainLocked takes the word of master i that it has the grant, given in the view then.
func (g *Grant) gainLocked(then *admission.View, i int) {
	g.on.gain(quorum.One(i))
	g.on.lose(quorum.One(i) &^ same(then, g.k.View()))
}

// bookLocked takes the answer of master i in a round into account.
func (g *Grant) bookLocked(r *round.Round, i int, k scripts.Kind) {
	switch k {
	case scripts.Granted:
		g.gainLocked(r.View, i)
	case scripts.Missing:
		g.on.lose(quorum.One(i))
	}
}

// leftLocked is what the holder may rely on at now: validity, and what remains of the longest hold.
func (g *Grant) leftLocked(now clock.Instant) time.Duration {
	left := g.validity.left(now)
	if m := g.tenure.terms.MaxHold; m > 0 {
		left = min(left, m-now.Sub(g.tenure.began))
	}
	return left
}

// overLocked is why the time of a live grant is over at now, nil where it is not.
func (g *Grant) overLocked(now clock.Instant) error {
	switch {
	case g.state == live && g.validity.left(now) <= 0:
		return errLapsed
	case g.state == live && g.leftLocked(now) <= 0:
		return ErrMaxHold
	}
	return nil
}

// goneLocked is errGone where too many masters have lost a live grant, else nil.
func (g *Grant) goneLocked() error {
	if g.state == live && g.config.Rule.Lost(g.on.lost) {
		return errGone
	}
	return nil
}

// A notice is whom to tell that a grant has ended, once no lock is held. The zero notice is for nobody.
type notice struct {
	cause   error
	handles []*Handle
}

// endLocked ends a live grant, for a cause; nil: it goes on. Nothing is sent: the holder hears of it first.
func (g *Grant) endLocked(cause error) notice {
	if cause == nil || g.state != live {
		return notice{}
	}
	g.state = ended
	g.k.list.Remove(&g.renewal.entry)
	return notice{cause, g.tenure.endLocked(cause)}
}

// endLocked ends every handle of the tenure.
func (t *tenure) endLocked(cause error) []*Handle {
	handles := t.handles
	t.handles = nil
	for _, h := range handles {
		h.endLocked(cause)
	}
	return handles
}

// tell ends the contexts of a grant that has ended, wakes the next local waiter, and reports the loss.
func (g *Grant) tell(n notice) {
	n.endContexts()
	g.report(n)
}

// report is tell without the contexts: where several grants end at once, the contexts of all of them end first.
func (g *Grant) report(n notice) {
	if n.cause == nil {
		return
	}
	g.k.Waiters.Over(g)
	if errors.Is(n.cause, ErrLost) {
		g.k.Events.Lost(g, n.cause)
	}
}

func (n *notice) endContexts() {
	for _, h := range n.handles {
		h.endContexts(n.cause)
	}
}

// Info describes the grant at this moment.
type Info struct {
	Token   int64
	Depth   int
	Left    time.Duration
	Held    time.Duration // since the tenure began
	Kept    time.Duration // of a grant that has ended: for how long its minimum hold still lasts
	On      int           // masters that are up and have it by their last answer
	Expects int           // masters of the configuration
}

// Info describes the grant as it is now, or was when it ended.
func (g *Grant) Info() Info {
	now := g.k.Clock.Now()
	view := g.k.View()
	g.mu.Lock()
	defer g.mu.Unlock()
	i := Info{
		Token: g.tenure.token, Depth: g.tenure.depth, Left: g.leftLocked(now), Held: now.Sub(g.tenure.began),
		Expects: view.Config.N(),
	}
	if g.state == ended {
		i.Kept = g.tenure.terms.rest(g.heldLocked(now), g.k.Drift)
	}
	for m := range (g.on.has & view.Config.Rule.All()).All() {
		if view.Masters[m].Session != 0 {
			i.On++
		}
	}
	return i
}

// Config is the configuration by which the grant was last won or confirmed.
func (g *Grant) Config() *quorum.Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.config
}

// Extends reports whether the grant is live and is extended in the background.
func (g *Grant) Extends() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state == live && g.tenure.terms.Extend
}
