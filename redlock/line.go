package redlock

import (
	"errors"
	"slices"
	"sync"
)

// Lines are the queues of this Locker's own goroutines: for each name that somebody here wants or holds, one line. Only
// those at the head of a line talk to the masters; the others are parked, and cost the masters nothing.
//
//	Lock ──► parked ──► contending ──► holding ──► (gone)
//	   \───────────────────▲              │
//	            ▲ nobody else contends    │ Unlock: handed on, the masters are not asked
//	            └── parked ◄──────────────┘
//
// The zero lines are empty. mu is taken with a hold's mutex held, and never the other way round.
type lines struct {
	mu   sync.Mutex
	all  map[string]*line // guarded by mu, as is every line in it
	free []*line          // to be used again
}

// A line is what this Locker knows of one name: who holds it here, who contends for it, who is parked. It is in
// lines.all while any of these is there.
type line struct {
	name       string
	holder     *hold
	contending []contender
	last       error    // how the contenders' last attempt failed, nil where none did since the name was held here
	first      *parked  // in the order in which they get their turn
	end        **parked // where the next of the lowest priority goes
	ranked     bool     // some who are parked may have another priority than 0
}

// A contender is one goroutine that talks to the masters. It is stuck while its last attempt failed otherwise than by
// another's hold: a call that asks for something else than it may have more luck, and does not wait behind it.
type contender struct {
	cfg   *lockConfig
	stuck bool
}

// A parked is one goroutine that waits for its turn.
type parked struct {
	cfg  *lockConfig
	turn chan *hold // capacity 1: nil is the turn to contend, else what is handed on
	next *parked
}

// maxFreeLines bounds what is kept to be used again.
const maxFreeLines = 1024

// lineLocked returns the line of name, made where there is none.
func (ls *lines) lineLocked(name string) *line {
	ln := ls.all[name]
	if ln == nil {
		if n := len(ls.free); n > 0 {
			ln, ls.free = ls.free[n-1], ls.free[:n-1]
		} else {
			ln = new(line)
		}
		ln.name, ln.end = name, &ln.first
		if ls.all == nil {
			ls.all = make(map[string]*line)
		}
		ls.all[name] = ln
	}
	return ln
}

// join begins a wait for name. The caller contends where nobody does and nobody here holds the name, or where its
// priority is above that of all who contend; one in turn, where nobody is parked before it, contends while the name is
// held here too, so that the masters know of it. Else it is parked.
func (ls *lines) join(name string, cfg *lockConfig) (ln *line, p *parked) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln = ls.lineLocked(name)
	if (ln.first == nil || cfg.priority > ln.first.cfg.priority) && ln.mayContendLocked(cfg) {
		ln.contending = append(ln.contending, contender{cfg: cfg})
		return ln, nil
	}
	p = &parked{cfg: cfg, turn: make(chan *hold, 1)}
	at := ln.end
	ln.ranked = cfg.priority != 0 || ln.ranked && ln.first != nil
	if ln.ranked {
		for at = &ln.first; *at != nil && (*at).cfg.priority >= cfg.priority; at = &(*at).next {
		}
	}
	p.next, *at = *at, p
	if p.next == nil {
		ln.end = &p.next
	}
	ls.moveLocked(ln) // those who contend may be stuck
	return ln, p
}

// freeLocked reports whether nobody contends whom a call with cfg has to wait for.
func (ln *line) freeLocked(cfg *lockConfig) bool {
	for _, c := range ln.contending {
		if !c.stuck || !c.cfg.differs(cfg) {
			return false
		}
	}
	return true
}

// mayContendLocked reports whether a call with cfg may contend, as far as those who contend and the holder go.
func (ln *line) mayContendLocked(cfg *lockConfig) bool {
	urgent := cfg.fair && !slices.ContainsFunc(ln.contending, func(c contender) bool { return c.cfg.priority >= cfg.priority })
	return urgent || len(ln.contending) == 0 && ln.holder == nil
}

// quit takes p out of its line and reports whether it was still there: if not, its turn is on its way.
func (ls *lines) quit(ln *line, p *parked) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for at := &ln.first; *at != nil; at = &(*at).next {
		if *at == p {
			ln.unlinkLocked(at)
			ls.moveLocked(ln)
			return true
		}
	}
	return false
}

func (ln *line) unlinkLocked(at **parked) *parked {
	p := *at
	*at = p.next
	if ln.end == &p.next {
		ln.end = at
	}
	p.next = nil
	return p
}

// resign ends a contender's part, with the hold that it won or nil.
func (ls *lines) resign(ln *line, cfg *lockConfig, h *hold) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.IndexFunc(ln.contending, func(c contender) bool { return c.cfg == cfg })
	ln.contending = slices.Delete(ln.contending, i, i+1)
	if h != nil {
		ln.holder, ln.last, h.line = h, nil, ln
	}
	ls.moveLocked(ln)
}

// failed takes note of how an attempt of the contender with cfg ended.
func (ls *lines) failed(ln *line, cfg *lockConfig, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln.last = err
	for i := range ln.contending {
		if c := &ln.contending[i]; c.cfg == cfg {
			c.stuck = !errors.Is(err, ErrHeld)
		}
	}
	ls.moveLocked(ln)
}

// why is what a parked call knows of the name.
func (ls *lines) why(ln *line) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ln.last
}

// hold takes note of a hold that was won outside of the line.
func (ls *lines) hold(h *hold) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.lineLocked(h.name)
	if ln.holder == nil {
		ln.holder, h.line = h, ln
	}
}

// holder is the hold of name that is live here, or nil.
func (ls *lines) holder(name string) *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ln := ls.all[name]; ln != nil {
		return ln.holder
	}
	return nil
}

// ended takes note that h is no more. What it has to tell the masters is queued.
func (ls *lines) ended(h *hold) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ln := h.line; ln != nil && ln.holder == h {
		ln.holder = nil
		ls.moveLocked(ln)
	}
}

// handOn replaces the holder h by the hold that successor makes for the first who is parked, and returns both; nil
// where nobody waits who may get it so. The caller lets the successor live, and then gives it its turn.
func (ls *lines) handOn(h *hold, successor func(*parked) *hold) (*hold, *parked) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := h.line
	if ln == nil || ln.holder != h || len(ln.contending) > 0 || ln.first == nil || ln.first.cfg.fair {
		return nil, nil
	}
	next := successor(ln.first)
	if next == nil {
		return nil, nil
	}
	ln.holder, next.line = next, ln
	p := ln.unlinkLocked(&ln.first)
	ls.moveLocked(ln) // one in turn may be first now
	return next, p
}

// moveLocked lets the first who is parked contend where nobody does for whom it has to wait, all others having a lower
// priority or being stuck, and drops a line that is of no more use. Those behind it are looked at only where somebody is stuck.
func (ls *lines) moveLocked(ln *line) {
	for at := &ln.first; *at != nil; at = &(*at).next {
		if p := *at; ln.mayContendLocked(p.cfg) || ln.freeLocked(p.cfg) && (ln.holder == nil || p.cfg.fair) {
			ln.unlinkLocked(at)
			ln.contending = append(ln.contending, contender{cfg: p.cfg})
			p.turn <- nil
			break
		}
		if !slices.ContainsFunc(ln.contending, func(c contender) bool { return c.stuck }) {
			break
		}
	}
	ls.tidyLocked(ln)
}

func (ls *lines) tidyLocked(ln *line) {
	if ln.holder != nil || len(ln.contending) > 0 || ln.first != nil {
		return
	}
	delete(ls.all, ln.name)
	if len(ls.free) < maxFreeLines {
		*ln = line{contending: ln.contending}
		ls.free = append(ls.free, ln)
	}
}
