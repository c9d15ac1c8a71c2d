package lease

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Messages about a lease arrive in the inbox of its owner. Each of the two kinds says that another client wants the
// name, or may have the name already:
//
//	check     a client was refused because of a lease that may linger; or has won the name although a master still
//	          shows this lease; or has taken the lease from its holder by force
//	release   a client requests that the lock is unlocked
//
// Either kind releases an idle lease, and prevents a lease that is held from becoming idle. A check also makes the
// Manager extend the lease immediately, which shows whether the masters still have it. Messages are not trusted: a
// false message costs a round, and a lost message costs the time until the next extension. A message about another
// lease, or about a lease that has ended, changes nothing.
//
// For these messages a Locker subscribes to its inbox when one of its leases has been held for listenAfter, when it
// wins a lease that may linger, or when a holder calls ReleaseRequested. Messages that are sent before are lost.

const (
	// listenAfter is the time since a lease was won after which its Locker subscribes to the inbox, so that short locks
	// cost no subscription.
	listenAfter = time.Second
	// checkPause is the minimum time between two extensions that messages cause for one lease, and checkPace the minimum
	// for all leases of a Locker. Both bound the load on the masters in a flood of messages.
	checkPause = 100 * time.Millisecond
	checkPace  = time.Millisecond
)

// An inbox records whether messages about a lease can arrive, and the effects of those that have arrived.
type inbox struct {
	addressed bool // whether Addressee finds the lease
	listens   bool // whether the Locker is subscribed because of the lease
	requested bool // whether another client has requested a release
}

// identify gives l the id with this number. The id of a share contains its role and the masters' time; messages find a
// share by the id, since the local queue does not know shares.
func (l *Lease) identify(number uint64) {
	m, role := l.m, l.Role()
	if role == scripts.Plain {
		l.ID = scripts.LeaseID(m.Owner, number, m.Label)
		return
	}
	l.ID = scripts.ShareID(m.Owner, number, role, m.Ballots.Median(m.Clock.Now()), m.Label)
	l.address()
}

// address makes Addressee find a new lease until it ends.
func (l *Lease) address() {
	l.inbox.addressed = true
	l.m.addressees.Store(l.ID, l)
}

func (l *Lease) unaddressLocked() {
	if l.inbox.addressed {
		l.m.addressees.Delete(l.ID)
	}
}

// listenLocked subscribes the Locker to its inbox until the lease ends. The lease must be live.
func (l *Lease) listenLocked() {
	if !l.inbox.listens {
		l.inbox.listens = true
		l.m.LocalQueue.Listen(l)
	}
}

// listenInTimeLocked is listenLocked if a live lease needs the inbox by now.
func (l *Lease) listenInTimeLocked(now clock.Instant) {
	if l.listenInLocked(now) <= 0 {
		l.listenLocked()
	}
}

// listenInLocked returns the time until a live lease needs the inbox, or forever if the Locker is subscribed already.
func (l *Lease) listenInLocked(now clock.Instant) time.Duration {
	switch {
	case l.inbox.listens:
		return forever
	case l.linger.allowed:
		return 0
	}
	return listenAfter - time.Duration(now.Steady()-l.tokens.won.Steady())
}

// Message handles a message about the lease. If another client says that it has taken the lease by force, its label is
// in the error of the lease, but only if a check shows that the masters have lost the lease.
func (l *Lease) Message(message scripts.WakeUp) {
	now := l.m.Clock.Now()
	l.mu.Lock()
	end := ending{}
	l.linger.recalled = true
	if by := message.Forced; by != "" {
		l.forced = &by
	}
	first := message.Release && !l.inbox.requested
	l.inbox.requested = l.inbox.requested || message.Release
	switch {
	case l.state == idle:
		end = l.endLocked(unused)
	case l.state == live && message.Release:
		if first && l.ownership.requested != nil {
			close(l.ownership.requested)
		}
	case l.state == live:
		l.checkSoonLocked(now)
	}
	l.mu.Unlock()
	end.finish()
}

// checkSoonLocked makes the Manager extend the lease as soon as checkPause and checkPace allow. It does nothing if an
// early extension is scheduled already.
func (l *Lease) checkSoonLocked(now clock.Instant) {
	soon := l.renewal.soon
	if soon != 0 && soon <= l.renewal.nextCheck {
		return
	}
	at := l.m.checks.next(now.Steady())
	at = max(at, l.renewal.nextCheck)
	l.renewal.nextCheck = at + int64(checkPause)
	if soon == 0 || at < soon {
		l.renewal.soon = at
		l.scheduleLocked(now)
	}
}

// A pacer limits the rate of extensions that messages cause, over all leases of a Locker.
type pacer struct {
	mu   sync.Mutex
	free int64 // when the next extension may be sent, on the boot clock
}

// next reserves and returns the earliest time from now on at which an extension may be sent.
func (p *pacer) next(now int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := max(now, p.free)
	p.free = at + int64(checkPace)
	return at
}

// Addressee returns the lease with this id if the local queue may not know the lease; else nil. The local queue does
// not know the leases of an RWLock, and leases that may linger but are not live yet: a message may arrive before the
// call knows that it has won the lease.
func (m *Manager) Addressee(id string) *Lease {
	found, _ := m.addressees.Load(id)
	l, _ := found.(*Lease)
	return l
}

// Own returns the live lease with this id that Addressee finds, or nil if there is none. The others are in the local
// queue. It is called for each refusal and each wake-up of a call, so it must not search among all leases.
func (m *Manager) Own(id string) *Lease {
	if l := m.Addressee(id); l != nil && l.isLive() {
		return l
	}
	return nil
}
