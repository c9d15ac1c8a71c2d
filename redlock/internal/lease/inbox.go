package lease

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// Messages about a lease arrive in the inbox of its owner. Both kinds say that another client wants the name, or may
// have it already:
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
// A Locker is subscribed to its inbox while one of its leases has been live for listenAfter, may linger, or has a
// holder that has called ReleaseRequested. Messages that come before are lost.

const (
	// listenAfter is how long a lease is live before its Locker subscribes to the inbox, so that short locks cost no
	// subscription.
	listenAfter = time.Second
	// checkPause is the minimum time between two extensions that messages cause for one lease, and checkPace the minimum
	// for all leases of a Locker. They bound what a flood of messages costs the masters.
	checkPause = 100 * time.Millisecond
	checkPace  = time.Millisecond
)

// An inbox records whether messages about a lease can arrive, and the effects of those that have arrived.
type inbox struct {
	listens   bool  // the Locker is subscribed because of the lease
	requested bool  // another client has requested a release
	nextCheck int64 // a message causes no extension before, on the boot clock
}

// listenLocked subscribes the Locker to its inbox until the lease ends. The lease must be live.
func (l *Lease) listenLocked() {
	if !l.inbox.listens {
		l.inbox.listens = true
		l.m.Waiters.Listen(l)
	}
}

// listenInLocked returns the time until a live lease needs the inbox.
func (l *Lease) listenInLocked(now clock.Instant) time.Duration {
	if l.inbox.listens {
		return forever
	}
	return listenAfter - time.Duration(now.Steady()-l.tokens.won.Steady())
}

// Message handles a message about the lease: see above.
func (l *Lease) Message(release bool) {
	now := l.m.Clock.Now()
	l.mu.Lock()
	end := ending{}
	//mutant:recall-in-use drop
	l.linger.recalled = true
	first := release && !l.inbox.requested
	l.inbox.requested = l.inbox.requested || release
	switch {
	case l.state == idle:
		end = l.endLocked(unused)
	case l.state == live && release:
		if first && l.ownership.requested != nil {
			close(l.ownership.requested)
		}
	case l.state == live:
		l.checkSoonLocked(now)
	}
	l.mu.Unlock()
	end.finish()
}

// checkSoonLocked makes the Manager extend the lease as soon as the pauses allow, unless it will do so anyway.
func (l *Lease) checkSoonLocked(now clock.Instant) {
	soon := l.renewal.soon
	if soon != 0 && soon <= l.inbox.nextCheck {
		return
	}
	at := l.m.checks.next(now.Steady())
	//mutant:message-pause drop
	at = max(at, l.inbox.nextCheck)
	l.inbox.nextCheck = at + int64(checkPause)
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

// next returns when the next extension may be sent, now at the earliest.
func (p *pacer) next(now int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := max(now, p.free)
	//mutant:message-pace = at
	p.free = at + int64(checkPace)
	return at
}

// Addressee returns the lease with this id that messages may be about and that the local queue does not know; nil if
// there is none. These are the leases of an RWLock, and leases that may linger and are not live yet, since a message
// may arrive before the call knows that it has won the lease.
func (m *Manager) Addressee(id string) *Lease {
	found, _ := m.addressees.Load(id)
	l, _ := found.(*Lease)
	return l
}
