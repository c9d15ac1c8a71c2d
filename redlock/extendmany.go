package redlock

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
	"github.com/redlock-go/redlock/pool"
)

// Holds that are due together are extended by one call a master: a program that holds very many spends most of its time,
// and of the masters', on that. Such a call confirms a hold, or says nothing of it: where no majority confirms, the hold is
// extended by itself at once, and what that finds counts. So the cases that need a reason are in one place.
const (
	// manyLeast is how many must be due; fewer are extended one by one.
	manyLeast = 8
	// manyMost is how many go into one call. A master does nothing else meanwhile: a tenth of a millisecond.
	manyMost = 32
	// manyAhead is by how much a hold may be extended before it is due, to go with others; never more than a tenth of its
	// TTL. It is less than watchPeriod, by which the schedule puts off what it looks at.
	manyAhead = 2 * time.Millisecond
)

// A many is one call that extends several holds, and what has come of it.
type many struct {
	l     *Locker
	start clock.Instant
	ttl   time.Duration
	rule  rule
	of    *members

	mu    sync.Mutex
	parts []part // guarded by mu, but for who is in it
}

// A part is one hold of a many.
type part struct {
	h       *hold
	yes, no uint64 // masters that have said so; no is whatever else they said
	missing uint64 // those of no that do not have it
	verdict verdict
}

// A ripe is a hold that is to be extended by ttl.
type ripe struct {
	h   *hold
	ttl time.Duration
}

// extendAll extends holds that are due, in as few calls as there may be. It is called by the schedule alone, with no lock
// held.
func (l *Locker) extendAll(now clock.Instant, list []ripe) {
	var room [manyMost]*hold
	for len(list) > 0 {
		ttl, rest, together := list[0].ttl, list[:0], room[:0]
		for _, one := range list {
			if one.ttl == ttl && len(together) < manyMost {
				together = append(together, one.h)
			} else {
				rest = append(rest, one)
			}
		}
		if len(together) < manyLeast || !l.extendTogether(ttl, together) {
			for _, h := range together {
				h.tick(now, false)
			}
		}
		list = rest
	}
}

// extendTogether extends those of the holds that are still to be extended, and reports whether it could. It is the only one
// who has the mutexes of several holds, so it waits for nobody who waits for it.
func (l *Locker) extendTogether(ttl time.Duration, holds []*hold) bool {
	snap := l.guard.snap.Load()
	if snap.set.rule.joint() {
		return false
	}
	m := &many{l: l, start: l.now(), ttl: ttl, rule: snap.set.rule, of: snap.set, parts: make([]part, 0, len(holds))}
	var room [manyMost]scripts.ManyHold
	words := room[:0]
	for _, h := range holds {
		h.mu.Lock()
		if h.cause != nil || h.running || h.failed > 0 || h.ttl != ttl {
			h.mu.Unlock() // whoever has changed it has told the schedule
			continue
		}
		h.running = true
		m.parts = append(m.parts, part{h: h})
		words = append(words, scripts.ManyHold{Name: h.name, Number: h.seq, Depth: h.depth + h.coming})
	}
	unasked := uint64(0)
	if len(words) > 0 {
		call := snap.fleet.ExtendManyCall(scripts.Prefix(l.cfg.prefix), l.cfg.id, words, ttl)
		for rest := snap.set.rule.all(); rest != 0; {
			i := popFirst(&rest)
			s := &snap.masters[i]
			_, no := l.refusal(i, s, ttl, scripts.ModeHeal, "extend")
			if no || l.pool.Send(i, call, pool.Stamp{Text: s.text}, m) != nil {
				unasked |= bit(i)
			}
		}
	}
	for i := range m.parts {
		// The schedule has put it off by watchPeriod, and looks at it then; most are confirmed by that time.
		if h := m.parts[i].h; h.nextLocked().Sub(m.start) < watchPeriod {
			l.schedule.fix(h, h.nextLocked())
		}
	}
	for i := range m.parts {
		m.parts[i].h.mu.Unlock()
	}
	for unasked != 0 {
		m.add(popFirst(&unasked), nil)
	}
	return true
}

// Reply implements pool.Receiver.
func (m *many) Reply(i int, value any, err error) {
	var present []bool
	if err == nil {
		present, _ = scripts.DecodeMany(value, len(m.parts)) // an answer that cannot be read is none
	}
	m.add(i, present)
}

// What one master's answer has changed for a part.
type news uint8

const (
	nothing  news = iota
	confirms      // a majority has it now
	fails         // no majority can confirm it any more
	adds          // it was confirmed, and is on one master more
	lacks         // it was confirmed, and this master does not have it
)

// add counts the answer of master i: nil is one that says nothing.
func (m *many) add(i int, present []bool) {
	var changed [manyMost]news
	var missing [manyMost]uint64
	m.mu.Lock()
	for k := range m.parts {
		p := &m.parts[k]
		has := present != nil && present[k]
		switch {
		case has:
			p.yes |= bit(i)
		case present != nil:
			p.missing |= bit(i)
			fallthrough
		default:
			p.no |= bit(i)
		}
		switch {
		case p.verdict == won && has:
			changed[k] = adds
		case p.verdict == won && present != nil:
			changed[k] = lacks
		case p.verdict != pending:
		case m.rule.has(p.yes):
			p.verdict, changed[k] = won, confirms
		case !m.rule.has(m.rule.all() &^ p.no):
			p.verdict, changed[k] = lost, fails
		}
		missing[k] = p.missing
	}
	m.mu.Unlock()
	for k := range m.parts {
		h := m.parts[k].h
		switch changed[k] {
		case confirms:
			m.confirmed(&m.parts[k], missing[k])
		case fails:
			h.extendAlone()
		case adds:
			h.mu.Lock()
			if h.lease.start == m.start {
				h.has |= bit(i)
			}
			h.mu.Unlock()
		case lacks:
			h.probe(i)
		}
	}
}

// confirmed takes a majority's "still mine" into account, as extending does. An answer that comes meanwhile is either in
// what is read here with the hold's mutex held, or is added once that is given up.
func (m *many) confirmed(p *part, missing uint64) {
	h := p.h
	h.mu.Lock()
	live := h.cause == nil || teeth.ExtendEnded
	if live {
		ls := lease{start: m.start, ttl: m.ttl, drift: m.l.cfg.drift}
		if ls.end().Sub(h.lease.end()) > 0 {
			h.lease = ls
		}
		m.mu.Lock()
		yes := p.yes
		m.mu.Unlock()
		h.held, h.has, h.of, h.failed, h.running = nil, yes, m.of, 0, false
		m.l.schedule.fix(h, h.nextLocked())
	}
	h.mu.Unlock()
	if !live {
		return
	}
	for missing != 0 {
		h.probe(popFirst(&missing))
	}
	m.l.traceHold(onExtended, h, nil)
}

// extendAlone extends a hold that many could not confirm: by itself, so that it is known why.
func (h *hold) extendAlone() {
	var e *extending
	h.mu.Lock()
	if h.cause == nil {
		e = h.extendLocked("extend", h.ttl, true)
	}
	h.mu.Unlock()
	if e != nil {
		e.cast()
	}
}

// probe asks master i what it has in the place of a hold that a majority has just confirmed, and heals it.
func (h *hold) probe(i int) {
	l := h.l
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil {
		return
	}
	snap := l.guard.snap.Load()
	s := &snap.masters[i]
	if _, no := l.refusal(i, s, h.ttl, scripts.ModeHeal, "extend"); no {
		return
	}
	call := snap.fleet.ExtendCall(*h.id(), h.ttl, h.depth+h.coming)
	_ = l.pool.Send(i, call, pool.Stamp{Text: s.text}, probing{h}) // the next extension asks again
}

// probing receives the answer to a probe.
type probing struct{ h *hold }

// Reply implements pool.Receiver.
func (p probing) Reply(i int, value any, err error) {
	if err != nil {
		return
	}
	if v, err := scripts.DecodeVote(value); err == nil && v.Kind == scripts.Missing {
		p.h.heal(i, vote{Vote: v, in: true})
	}
}
