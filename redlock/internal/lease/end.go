package lease

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Why a lease, or a hold of it, has ended. Package redlock exports these errors and documents them.
var (
	ErrLost     = errors.New("redlock: the lock was lost")
	ErrMaxHold  = fmt.Errorf("%w: maximum hold time reached", ErrLost)
	ErrReleased = errors.New("redlock: the lock was released before")
	ErrExported = errors.New("redlock: the lock was exported to another process")
	ErrClosed   = errors.New("redlock: the locker is closed")
	ErrNested   = errors.New("redlock: the lock is locked more than once; unlock the inner locks first")
)

// A reason says why a lease ends, and what is done then. In each case its contexts end first, and the next local waiter
// contends last, after the release if sends is set. If sends is not set, the last Unlock sends the release, or the
// lease continues elsewhere.
type reason struct {
	err     error // the error of its holds from then on
	sends   bool  // the release is sent
	joins   bool  // a fair local waiter joins the masters' queues before the release
	lost    bool  // the lease is reported as lost
	ended   bool  // the lease is reported as released, with outcome
	outcome error
}

// The reasons for which a lease ends. A lease without a holder ends as unused, regardless of the cause. An attempt
// that does not win its lease is rolled back instead: see Lease.undo. The first two reasons differ only in their
// texts, for the log and for people: both are ErrLost.
var (
	expired    = &reason{err: fmt.Errorf("%w: no majority extended it in time", ErrLost), lost: true}
	forgotten  = &reason{err: fmt.Errorf("%w: too few masters still have it", ErrLost), lost: true}
	overdue    = &reason{err: ErrMaxHold, lost: true}
	released   = &reason{err: ErrReleased, sends: true, joins: true} // Unlock reports it when the release is confirmed
	closed     = &reason{err: ErrClosed, sends: true, ended: true, outcome: ErrClosed}
	exported   = &reason{err: ErrExported, ended: true, outcome: ErrExported}
	downgraded = &reason{err: ErrReleased, ended: true}
	unused     = &reason{err: errors.New("redlock: the idle lock is released"), sends: true}
)

// An ending is the end of a lease. finish must be called for it as soon as no lock is held. The zero ending does
// nothing.
type ending struct {
	lease *Lease
	why   *reason
	holds []holding
}

// endLocked ends a live or idle lease for a reason, and does nothing if why is nil. The caller must call finish of the
// ending after it has unlocked l.mu.
func (l *Lease) endLocked(why *reason) ending {
	if why == nil || l.state != live && l.state != idle {
		return ending{}
	}
	if l.state == idle {
		why = unused
	}
	l.state = ended
	l.m.timers.Remove(&l.renewal.entry)
	if l.Role() != scripts.Plain {
		l.m.addressees.Delete(l.ID)
	}
	return ending{l, why, l.ownership.endLocked(why.err)}
}

// endContexts ends the contexts of the holds. If several leases end together, endContexts is called for all of them
// before the first finish.
func (e ending) endContexts() {
	for _, h := range e.holds {
		h.endContexts(e.why.err)
	}
}

// finish ends the contexts, sends the release, wakes the next local waiter and reports the end, as its reason requires.
// It returns the round of the release; nil if none was sent.
func (e ending) finish() (r *round.Round) {
	if e.why == nil {
		return nil
	}
	l := e.lease
	e.endContexts()
	if e.why.joins {
		l.m.Waiters.Releasing(l)
	}
	if e.why.sends {
		r = l.release("unlock")
	}
	l.m.Waiters.Ended(l)
	switch {
	case e.why.lost:
		l.m.Events.Lost(l, e.why.err)
	case e.why.ended:
		l.m.Events.Released(e.holds[0], e.why.outcome)
	}
	return r
}

// finishAll finishes endings whose contexts have ended.
func finishAll(ends []ending) {
	for _, e := range ends {
		e.finish()
	}
}

// expiredLocked returns why a live or idle lease has expired at now; nil if it has not.
func (l *Lease) expiredLocked(now clock.Instant) *reason {
	switch {
	case l.state == live && l.validity.left(now) <= 0:
		return expired
	case l.state == live && l.leftLocked(now) <= 0:
		return overdue
	case l.state == idle && l.linger.until <= now.Steady():
		return unused
	}
	return nil
}

// goneLocked returns forgotten if too many masters have lost a live or idle lease, else nil.
func (l *Lease) goneLocked() *reason {
	//mutant:lost-masters = false
	if (l.state == live || l.state == idle) && l.config.Rule.Lost(l.on.lost) {
		return forgotten
	}
	return nil
}

// endLocked ends every hold of the ownership.
func (o *ownership) endLocked(cause error) []holding {
	holds := o.holds
	o.holds = nil
	for _, h := range holds {
		h.endLocked(cause)
	}
	return holds
}
