package lease

import (
	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// lingerTokens is the number of tokens that the acquire of a lease that may linger reserves. So the fence is at most
// 100 ms ahead of the masters' time, and an acquire of another client within that time is refused once as stale.
const lingerTokens = 100_000

// A linger records whether and how long a lease may be kept without a holder after its last Unlock, so that the next
// call of the Locker takes the lease over without waiting for the masters.
//
// On the masters, the depth of such a lease ends with "~". Because of this mark, a script that refuses another client
// publishes a message to the owner's inbox: see inbox.go. If the lease is held, an extension then removes the mark.
type linger struct {
	allowed  bool  // whether the acquire announced to the masters that the lease may linger
	recalled bool  // whether another client wants the name
	until    int64 // when an idle lease is released, on the boot clock
}

// WithoutLinger returns terms without Linger that are otherwise equal.
func (t *Terms) WithoutLinger() *Terms {
	if t.Linger == 0 {
		return t
	}
	changed := *t
	changed.Linger = 0
	return &changed
}

// spareTokens returns the number of tokens that an acquire with these terms reserves, beside its own.
func (t *Terms) spareTokens() int {
	if t.Linger > 0 {
		return lingerTokens
	}
	return t.Handoffs
}

// announceLinger decides whether a new lease may linger. If so, its depth says so from the acquire on.
func (l *Lease) announceLinger(terms *Terms) {
	if l.linger.allowed = terms.Linger > 0 && l.tokens.next < l.tokens.last; l.linger.allowed {
		l.address()
	}
}

func (l *Lease) mayLingerLocked() bool { return l.linger.allowed && !l.linger.recalled }

// Idle reports whether the lease lingers without a holder.
func (l *Lease) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == idle
}

// depthLocked returns the depth that is sent to the masters.
func (l *Lease) depthLocked() scripts.Depth {
	depth := scripts.Depth(max(1, l.ownership.depth+int(l.ownership.entering)))
	if l.mayLingerLocked() {
		depth |= scripts.Lingers
	}
	return depth
}

// lingerLocked makes the lease idle after its last hold was unlocked. It returns false if the lease must be released
// instead: the lease may not linger (see MayIdle too), has no tokens left, has a value, or was won at least a TTL ago.
// After a TTL, the message of another client that wants the name may have been lost. An idle lease is not extended.
func (l *Lease) lingerLocked(now clock.Instant) bool {
	d, entering := l.ownership.terms.Linger, l.ownership.entering > 0
	switch {
	case d == 0, entering, !l.mayLingerLocked(), l.tokens.next > l.tokens.last:
		return false
	case l.value != "": // the value is that of the last holder
		return false
	case now.Sub(l.tokens.won) >= l.ownership.terms.TTL, !l.m.LocalQueue.MayIdle(l):
		return false
	}
	l.ownership.endHoldsLocked(ErrReleased)
	l.state, l.linger.until = idle, now.Add(min(d, l.validity.left(now))).Steady()
	l.m.timers.Advance(&l.renewal.entry, l.nextRunLocked(now))
	return true
}

// EndIdle releases the lease if it lingers.
func (l *Lease) EndIdle() {
	l.mu.Lock()
	end := ending{}
	if l.state == idle {
		end = l.endLocked(unused)
	}
	l.mu.Unlock()
	end.finish()
}

// TakeOver makes h the first hold of an idle lease, with the next token. TakeOver does not wait, but sends an extension
// if one is due. It returns false if the lease has ended, or if it does not suit the terms; in the second case TakeOver
// releases the lease.
func (h *Hold) TakeOver(l *Lease, terms *Terms) bool {
	now := l.m.Clock.Now()
	l.mu.Lock()
	end := l.endLocked(l.expiredLocked(now))
	if l.state == idle && !l.suitsLocked(terms, now) {
		end = l.endLocked(unused)
	}
	if l.state != idle {
		l.mu.Unlock()
		end.finish()
		return false
	}
	h.beginLocked(l, terms, now)
	var e *extension
	if l.renewInLocked(now) <= 0 {
		e = l.renewLocked(now)
	}
	l.m.timers.Advance(&l.renewal.entry, l.nextRunLocked(now))
	l.mu.Unlock()
	if e != nil {
		e.RecordSkipped()
	}
	l.m.Events.Acquired(h)
	return true
}

// suitsLocked reports whether a call with these terms can use an idle lease. The masters must not keep the lease for
// longer than the TTL of the call.
func (l *Lease) suitsLocked(terms *Terms, now clock.Instant) bool {
	//mutant:idle-validity 3= true
	return terms.MinHold == 0 && l.validity.ttl <= terms.TTL && l.validity.left(now) >= terms.Least
}
