package lease

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// Errors of leases and holds that have ended or cannot be ended. Package redlock exports and documents them.
var (
	ErrLost     = errors.New("redlock: the lock was lost")
	ErrMaxHold  = fmt.Errorf("%w: maximum hold time reached", ErrLost)
	ErrReleased = errors.New("redlock: the lock was released before")
	ErrExported = errors.New("redlock: the lock was exported to another process")
	ErrClosed   = fault.New("redlock: the locker is closed", fault.ErrClosed)
	ErrNested   = errors.New("redlock: the lock is locked more than once; unlock the inner locks first")
)

// An EndError is the error with which the lock of a name has ended, for code that does not know the name: that of a
// context.
type EndError struct {
	name string
	error
}

// named returns err, with which l has ended, as an error that names the lock.
func (l *Lease) named(err error) error { return EndError{l.PublicName(), err} }

func (e EndError) Error() string {
	return fmt.Sprintf("redlock: lock %.80q: %s", e.name, strings.TrimPrefix(e.error.Error(), "redlock: "))
}

func (e EndError) Unwrap() error { return e.error }

// A reason says why a lease ends and which steps follow. In each case the contexts of its holds end first. The next
// local waiter contends after the release, if a release is sent. If sends is false, the last Unlock sends the release,
// or another lease replaces this one.
type reason struct {
	err     error // the error that the holds return afterwards
	sends   bool  // whether the release is sent immediately
	joins   bool  // whether a fair local waiter joins the masters' queues before the release
	lost    bool  // whether Events.Lost reports the end, with err
	ended   bool  // whether Events.Released reports the end, with outcome
	outcome error
}

// The reasons for which a lease ends. An idle lease always ends as unused. A lease that was not won is rolled back
// instead: see Lease.undo. The errors of expired, paused, unextended and forgotten differ only in their texts: all
// wrap ErrLost.
var (
	expired    = &reason{err: fmt.Errorf("%w: no majority extended it in time", ErrLost), lost: true}
	paused     = &reason{err: fmt.Errorf("%w: no extension was sent in time: %s", ErrLost, halted), lost: true}
	unextended = &reason{err: fmt.Errorf("%w: its background extension is off", ErrLost), lost: true}
	forgotten  = &reason{err: fmt.Errorf("%w: too few masters still have it", ErrLost), lost: true}
	overdue    = &reason{err: ErrMaxHold, sends: true, joins: true, lost: true}
	released   = &reason{err: ErrReleased, sends: true, joins: true} // Unlock reports the end after the release
	closed     = &reason{err: ErrClosed, sends: true, ended: true, outcome: ErrClosed}
	exported   = &reason{err: ErrExported, ended: true, outcome: ErrExported}
	downgraded = &reason{err: ErrReleased, ended: true}
	unused     = &reason{sends: true} // an idle lease has no holds, which would return an error
)

const halted = "this process or machine was paused, or its clock has jumped"

// An ending holds what remains to be done for a lease that has ended. The caller must call finish as soon as it holds
// no lock. For the zero ending, finish does nothing.
type ending struct {
	lease *Lease
	why   *reason
	holds []*Hold
}

// endLocked ends a live or idle lease for the reason why. It does nothing if why is nil. The caller must unlock l.mu,
// and then call finish of the returned ending.
func (l *Lease) endLocked(why *reason) ending {
	if why == nil || l.state != live && l.state != idle {
		return ending{}
	}
	if l.state == idle {
		why = unused
	}
	l.state = ended
	l.m.timers.Remove(&l.renewal.entry)
	l.unaddressLocked()
	return ending{l, why, l.ownership.endHoldsLocked(why.err)}
}

// endContexts ends the contexts of the holds. If several leases end together, endContexts is called for all of them
// before the first finish.
func (e ending) endContexts() {
	for _, h := range e.holds {
		h.endContexts(e.why.err)
	}
}

// finish ends the contexts, sends the release, wakes the next local waiter and reports the end, as the reason requires.
// It returns the round of the release, or nil if no release was sent.
func (e ending) finish() (r *round.Round) {
	if e.why == nil {
		return nil
	}
	l := e.lease
	//mutant:contexts-before-release -> defer e.endContexts()
	e.endContexts()
	if e.why.joins {
		l.m.LocalQueue.Releasing(l)
	}
	if e.why.sends {
		r = l.release()
	}
	l.m.LocalQueue.Ended(l)
	switch {
	case e.why.lost:
		l.m.Events.Lost(l, e.why.err)
	case e.why.ended:
		l.m.Events.Released(e.holds[0], e.why.outcome)
	}
	return r
}

// expiredLocked returns why a live or idle lease has expired at now; nil if it has not.
func (l *Lease) expiredLocked(now clock.Instant) *reason {
	switch {
	case l.state == live && l.validity.left(now) <= 0:
		if f := l.renewal.failed; f != nil {
			return expired.because(f.Reasons())
		}
		switch {
		case !l.ownership.terms.Extend:
			return unextended
		case l.renewal.retry == 0: // Run sends an extension long before the end, unless it cannot run
			return paused
		}
		return expired
	case l.state == live && l.leftLocked(now) <= 0:
		return overdue
	case l.state == idle && l.linger.until <= now.Steady():
		return unused
	}
	return nil
}

// goneLocked returns forgotten if too many masters have lost a live or idle lease, else nil. Masters that have lost it
// vote for no other lease while this one may be valid, so it is kept as long as they are no majority. A durable master
// whose file is off is different: after a crash it votes at once, so the other masters on which the validity rests must
// be enough.
func (l *Lease) goneLocked() *reason {
	if l.state != live && l.state != idle {
		return nil
	}
	//mutant:lost-masters = false
	//mutant:durable-bare-majority 2= false
	if l.config.Rule.Lost(l.on.lost) ||
		breaking(l.m.View(), l.on.lost) != 0 && !l.config.Rule.Won(l.on.has&l.validity.by) {
		var addrs []string
		for i := range l.on.lost.All() {
			addrs = append(addrs, l.m.Sender.Pool.Addr(i))
		}
		lost := "lost on " + strings.Join(addrs, ", ")
		if by := l.forced; by != nil {
			lost = fmt.Sprintf("%q has released it by force; %s", *by, lost)
		}
		return forgotten.because(lost)
	}
	return nil
}

// because returns r with the details of its cause, which may be "", in the text of its error.
func (r *reason) because(details string) *reason {
	if details == "" {
		return r
	}
	detailed := *r
	detailed.err = fmt.Errorf("%w: %s", r.err, details)
	return &detailed
}

// endHoldsLocked ends all holds of the ownership, and returns them.
func (o *ownership) endHoldsLocked(cause error) []*Hold {
	holds := o.holds
	o.holds = nil
	for _, h := range holds {
		h.endLocked(cause)
	}
	return holds
}
