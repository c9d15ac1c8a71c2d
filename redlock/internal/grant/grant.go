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
	ErrExported = errors.New("redlock: the lock was handed to another process")
	ErrClosed   = errors.New("redlock: the locker is closed")
	ErrNested   = errors.New("redlock: it is locked more than once; unlock the inner locks first")
)

// Terms are what a caller asked for.
type Terms struct {
	TTL        time.Duration
	Least      time.Duration // the validity that must be left when the call returns
	MaxHold    time.Duration // 0: no limit
	Extend     bool          // in the background
	HandOns    int           // how often the grant may be handed on; 0: never
	HandOnTime time.Duration // for how long after it was won
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
	k    *Keeper
	Name string
	ID   string
	keys *scripts.Keys
	ids  []string // by which the masters may know it: ID, and of an import the id that it replaces
	// ticket is that of the waiter that asked; nil where it had none.
	ticket *scripts.Ticket
	asking asking

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

// masters are those that have the grant by their last answer, and those that have lost it.
type masters struct{ has, lost quorum.Set }

func (m *masters) gain(i int) { m.has, m.lost = m.has|quorum.One(i), m.lost&^quorum.One(i) }
func (m *masters) lose(i int) { m.has, m.lost = m.has&^quorum.One(i), m.lost|quorum.One(i) }

// A block is the tokens of one acquire, and since when they may be used to hand the grant on.
type block struct {
	next, last int64
	won        clock.Instant
}

// A renewal is what the Keeper knows of a grant's extensions.
type renewal struct {
	running bool // one is under way
	failed  int  // in a row
	soon    bool // the next is due at retryAt and not by the validity
	retryAt clock.Instant

	entry due.Entry
}

// A tenure is what a caller holds: from its Lock to its last Unlock.
type tenure struct {
	token   int64
	depth   int // handles that are not unlocked
	coming  int // re-entries under way, which are no handles yet
	terms   Terms
	began   clock.Instant
	handles []*Handle
	alone   [1]*Handle // what handles is cut from while there is one
}

// Begin makes a won grant live with h as its first handle. It fails with ErrClosed where the Keeper has closed: then
// the grant has been released, and with a *round.Failure where too many masters have lost it meanwhile.
func (g *Grant) Begin(h *Handle, terms *Terms) error {
	now := g.k.Clock.Now()
	g.mu.Lock()
	g.state = live
	g.tenure.start(g, h, g.block.next, terms, now)
	g.block.next++
	open := g.k.list.Add(&g.renewal.entry, g, g.nextLocked(now))
	view := g.k.View()
	for i := range g.on.has.All() {
		g.checkLocked(g.sent.view, view, i)
	}
	gone := g.config.Rule.Lost(g.on.lost)
	g.mu.Unlock()
	switch {
	case !open:
		g.end(ErrClosed)
		g.release("unlock")
		return ErrClosed
	case gone:
		g.end(ErrLost)
		g.release("unlock")
		return &round.Failure{Decision: ErrLost}
	}
	returns := false
	defer func() {
		if !returns && g.end(ErrReleased) { // a trace has panicked: the caller gets no lock to release
			g.release("unlock")
		}
	}()
	g.k.Events.Acquired(h)
	returns = true
	g.repairSoon(view)
	return nil
}

// start makes t the tenure of h.
func (t *tenure) start(g *Grant, h *Handle, token int64, terms *Terms, now clock.Instant) {
	*t = tenure{token: token, depth: 1, terms: *terms, began: now}
	h.g, h.token = g, token
	t.alone[0] = h
	t.handles = t.alone[:]
}

// checkLocked takes the word of master i, given in the view then, as lost if another server, or one that may have
// forgotten, stands at its address now.
func (g *Grant) checkLocked(then, now *admission.View, i int) {
	if i < len(then.Masters) && i < len(now.Masters) && then.Masters[i].Generation == now.Masters[i].Generation {
		return
	}
	g.on.lose(i)
}

// bookLocked takes the answer of master i in a round into account, and reports whether too many have lost the grant.
func (g *Grant) bookLocked(r *round.Round, i int, k scripts.Kind) (gone bool) {
	switch k {
	case scripts.Granted:
		g.on.gain(i)
		g.checkLocked(r.View, g.k.View(), i)
	case scripts.Missing:
		g.on.lose(i)
	}
	return g.state == live && g.config.Rule.Lost(g.on.lost)
}

// Forgot is told that master i may have forgotten what it granted.
func (g *Grant) Forgot(i int) {
	g.mu.Lock()
	gone := false
	if g.state == live && g.on.has.Has(i) {
		g.on.lose(i)
		gone = g.config.Rule.Lost(g.on.lost)
	}
	g.mu.Unlock()
	if gone {
		g.lose(ErrLost)
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

// overLocked is why the grant must end at now, nil where it need not.
func (g *Grant) overLocked(now clock.Instant) error {
	if g.validity.left(now) <= 0 {
		return ErrLost
	}
	if g.leftLocked(now) <= 0 {
		return ErrMaxHold
	}
	return nil
}

// endLocked makes the grant ended, and returns the handles whose contexts are to be cancelled without the lock.
func (g *Grant) endLocked(cause error) []*Handle {
	g.state = ended
	return g.tenure.endLocked(cause)
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

// end makes the grant ended, cancels the contexts made from it, and reports whether it was live. Nothing is sent: the
// holder hears of it first.
func (g *Grant) end(cause error) bool { return g.endTenure(cause, 0) }

// endTenure is end for the tenure with this token alone; 0: for any.
func (g *Grant) endTenure(cause error, token int64) bool {
	g.mu.Lock()
	if g.state != live || token != 0 && token != g.tenure.token {
		g.mu.Unlock()
		return false
	}
	handles := g.endLocked(cause)
	g.mu.Unlock()
	g.k.list.Remove(&g.renewal.entry)
	endContexts(handles, cause)
	g.k.Events.Over(g)
	return true
}

// lose ends the grant before its release, and tells the holder. Nothing is sent.
func (g *Grant) lose(cause error) {
	g.loseTenure(cause, 0)
}

// loseTenure is lose for the tenure with this token alone: the grant may have been handed on since it was seen to be
// over. 0: for any.
func (g *Grant) loseTenure(cause error, token int64) {
	if g.endTenure(cause, token) {
		g.k.Events.Lost(g, cause)
	}
}

// Info describes the grant at this moment.
type Info struct {
	Token   int64
	Depth   int
	Left    time.Duration
	On      int // masters that are up and have it by their last answer
	Expects int // masters of the configuration
}

// Info describes the grant as it is now, or was when it ended.
func (g *Grant) Info() Info {
	now := g.k.Clock.Now()
	view := g.k.View()
	g.mu.Lock()
	defer g.mu.Unlock()
	i := Info{Token: g.tenure.token, Depth: g.tenure.depth, Left: g.leftLocked(now), Expects: view.Config.N()}
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
