package redlock

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
	"github.com/redlock-go/redlock/pool"
)

// An extending is one round that prolongs a hold: by the schedule, by Lock.Extend, or by a re-entry; or, with keepTTL,
// one that only writes its depth.
type extending struct {
	round
	h         *hold
	start     clock.Instant
	ttl       time.Duration // that was sent; 0: the depth alone
	scheduled bool

	mending sync.Mutex // taken before mu, and before that of the hold
	mended  uint64     // of a joint round: masters that were given the hold; guarded by mending

	// unsent are the votes of masters that were not asked, cast by cast once no lock is held.
	unsent []unsent
}

type unsent struct {
	master int
	vote   vote
}

// extendLocked queues a round that prolongs the hold to ttl, or leaves its time alone where ttl is 0, and writes its
// depth. h.mu is held and h is live. The caller calls cast after it has given up the mutex.
func (h *hold) extendLocked(op string, ttl time.Duration, scheduled bool) *extending {
	l := h.l
	e := &extending{h: h, start: l.now(), ttl: ttl, scheduled: scheduled}
	snap := l.guard.snap.Load()
	e.init(l, snap.set, op, e)
	if ttl == 0 {
		e.tally.rule = h.endRule(snap.set)
		e.asked |= e.tally.rule.all()
	}
	call := snap.fleet.ExtendCall(*h.id(), ttl, h.depth+h.coming)
	for rest := e.asked; rest != 0; {
		i := popFirst(&rest)
		m := &snap.masters[i]
		v, no := l.refusal(i, m, ttl, scripts.ModeHeal, op)
		if !no {
			if err := l.pool.Send(i, call, pool.Stamp{Text: m.text}, e); err != nil {
				v, no = vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: err}, true
			}
		}
		if no {
			e.unsent = append(e.unsent, unsent{i, v})
		}
	}
	return e
}

// cast casts the votes of the masters that were not asked.
func (e *extending) cast() {
	for _, u := range e.unsent {
		e.add(u.master, u.vote)
	}
}

// booked runs in the goroutine of a connection, for each vote.
func (e *extending) booked(_ *round, i int, v vote, decides, _ bool) {
	if teeth.HealUnconfirmed && v.Kind == scripts.Missing && e.ttl > 0 {
		e.h.heal(i, v)
	}
	switch {
	case decides && e.verdict() == won:
		e.confirmed()
		return
	case decides:
		e.unconfirmed()
	case e.verdict() == won:
		if v.Kind == scripts.Missing && e.ttl > 0 {
			e.h.heal(i, v)
		}
		return
	}
	if e.tally.rule.joint() && e.ttl > 0 {
		e.half()
	}
}

// half gives the hold to masters that lack it where a majority of one of two sets has confirmed it in this round: of one
// that was taken by the old set alone, the next ones know nothing. It is extended only by a round that both confirm. Where
// others go by the next set alone, its masters refuse the epoch of this one. When it returns, every heal is queued that the
// votes that are in call for.
func (e *extending) half() {
	e.mending.Lock()
	defer e.mending.Unlock()
	e.mu.Lock()
	var todo []unsent
	if e.tally.rule.either(e.tally.set(scripts.Granted)) {
		for rest := e.tally.set(scripts.Missing) &^ e.mended; rest != 0; {
			i := popFirst(&rest)
			e.mended |= bit(i)
			todo = append(todo, unsent{i, e.votes[i]})
		}
	}
	e.mu.Unlock()
	for _, m := range todo {
		e.h.heal(m.master, m.vote)
	}
}

// confirmed takes a majority's "still mine" into account: the hold has a new lease, counted from before the round was
// sent, and the masters that have lost it get it back.
func (e *extending) confirmed() {
	h := e.h
	if e.ttl == 0 {
		return
	}
	e.mu.Lock()
	var missing []unsent
	for rest := e.tally.set(scripts.Missing); rest != 0; {
		i := popFirst(&rest)
		missing = append(missing, unsent{i, e.votes[i]})
	}
	e.mu.Unlock()
	h.mu.Lock()
	live := h.cause == nil || teeth.ExtendEnded
	if live {
		ls := lease{start: e.start, ttl: e.ttl, drift: h.l.cfg.drift}
		if ls.end().Sub(h.lease.end()) > 0 {
			h.lease = ls
		}
		h.holdBy(&e.round)
		h.failed = 0
		if e.scheduled {
			h.running = false
		}
		h.l.schedule.fix(h, h.nextLocked())
	}
	h.mu.Unlock()
	if !live {
		return
	}
	e.keep(h)
	for _, m := range missing {
		h.heal(m.master, m.vote)
	}
	h.l.traceHold(onExtended, h, nil)
}

// unconfirmed takes a round without a majority into account. It changes nothing about the hold, which goes on to its
// end and is tried again before, unless a majority says that it is gone.
func (e *extending) unconfirmed() {
	h := e.h
	e.mu.Lock()
	gone := e.tally.rule.has(e.tally.set(scripts.Missing))
	e.mu.Unlock()
	if gone {
		h.lose(ErrLost)
		return
	}
	if e.ttl == 0 {
		return
	}
	h.mu.Lock()
	if h.cause == nil && e.scheduled {
		h.running = false
		h.failed++
		now := h.l.now()
		h.retryAt = now.Add(h.lease.retryAfter(int(h.failed), now))
		h.l.schedule.fix(h, h.nextLocked())
	}
	h.mu.Unlock()
	if t := h.l.cfg.trace; t != nil && t.Extended != nil {
		h.l.traceHold(onExtended, h, e.round.error(h.name, ErrNoQuorum, nil))
	}
}

// heal gives a master that has lost the hold what the others have, by an acquire with a fresh ballot that leaves the
// token as it is. It is called only after a majority of the same round has confirmed the hold.
func (h *hold) heal(i int, v vote) {
	if v.Left >= 0 && h.id().Previous == "" {
		return // another has the name there; ours comes back when that one is gone
	}
	l := h.l
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cause != nil && !teeth.ExtendEnded {
		return
	}
	snap := l.guard.snap.Load()
	m := &snap.masters[i]
	if _, no := l.refusal(i, m, h.ttl, scripts.ModeHeal, "heal"); no {
		return
	}
	h.another()
	h.growSentTo(i)
	ballot, err := l.ballots.heal(l.now(), max(v.Bar, h.token, h.sentTo[i]))
	if err != nil {
		return
	}
	if teeth.HealOldBallot {
		ballot = h.token
	}
	// Its own bar alone: one master with a poisoned bar must not drag the other masters', or the hold's, ballots up.
	before := h.sentTo[i]
	h.sent |= 1 << i
	h.sentTo[i] = ballot
	call := snap.fleet.AcquireCall(*h.id(), scripts.ModeHeal, h.ttl, ballot, ballot, h.depth+h.coming)
	// Whether it worked is seen by the next extension.
	_ = l.pool.Send(i, call, pool.Stamp{Session: m.stamp.Session, Text: m.text}, &healing{h: h, before: before})
}

// healing receives the answer to a heal.
type healing struct {
	h      *hold
	before int64 // the largest ballot that the master had been sent before
}

func (g *healing) Reply(i int, value any, err error) {
	if err != nil {
		return
	}
	v, err := scripts.DecodeVote(value)
	if err != nil {
		return
	}
	h := g.h.latest()
	h.mu.Lock()
	switch {
	case v.Kind == scripts.Granted:
		h.has |= 1 << i
	case v.Kind == scripts.Ahead && h.cause == nil: // as if it had not been sent
		h.sentTo[i] = g.before
	}
	h.mu.Unlock()
	if v.Kind != scripts.Granted {
		return
	}
	if t := h.l.cfg.trace; t != nil && t.Healed != nil {
		t.Healed(HealInfo{Name: h.name, ID: h.idText(), Master: h.l.pool.Addr(i)})
	}
}

// lose ends the hold before its release, for the given reason, and tells the holder. Nothing is sent.
func (h *hold) lose(cause error) {
	if h.end(cause) {
		h.l.traceHold(onLost, h, cause)
	}
}

// nextLocked is when the hold is to be looked at again: its next extension, the end of its validity or of its maximum
// hold. h.mu is held.
func (h *hold) nextLocked() clock.Instant {
	at := h.lease.end()
	if h.extend && !h.running {
		next := h.lease.extendAt(h.ttl)
		if h.failed > 0 {
			next = h.retryAt
		}
		if at.Sub(next) > 0 {
			at = next
		}
	}
	if !h.maxEnd.IsZero() && at.Sub(h.maxEnd) > 0 {
		at = h.maxEnd
	}
	if look := h.since.Add(freshFor); h.fresh && at.Sub(look) > 0 {
		at = look
	}
	return at
}

// tick does what is due for the hold at now. It is called by the schedule alone, with no lock held. Together with others,
// an extension that is due, or nearly so, is left to the caller, who is told its TTL; else ttl is 0.
func (h *hold) tick(now clock.Instant, together bool) (ttl time.Duration) {
	h.mu.Lock()
	if h.cause != nil {
		h.mu.Unlock()
		return 0
	}
	h.fresh = false
	var over error
	var e *extending
	switch {
	case !h.maxEnd.IsZero() && now.Sub(h.maxEnd) >= 0:
		over = ErrMaxHold
	case h.lease.left(now) <= 0:
		over = ErrLost
	case together && h.extend && !h.running && h.failed == 0 && now.Sub(h.lease.extendAt(h.ttl)) >= -min(manyAhead, h.ttl/10):
		ttl = h.ttl
	case h.extend && !h.running && (h.failed == 0 && now.Sub(h.lease.extendAt(h.ttl)) >= 0 || h.failed > 0 && now.Sub(h.retryAt) >= 0):
		h.running = true
		e = h.extendLocked("extend", h.ttl, true)
	}
	h.forget()
	if over == nil && ttl == 0 {
		h.l.schedule.fix(h, h.nextLocked())
	}
	h.mu.Unlock()
	if over != nil {
		h.lose(over)
	}
	if e != nil {
		e.cast()
	}
	return ttl
}
