package waitqueue

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

// ownHoldPause is the time for which a call that never gives up waits for a lease of its own Locker before OwnHold
// is called.
const ownHoldPause = time.Second

// Waiting counts the calls that wait.
type Waiting struct {
	Held     int            // number of calls that wait because another lock has the name or another client is first
	NoQuorum int            // number of calls that wait because no quorum of masters can grant the name
	Failure  *round.Failure // the failure of one of the calls in NoQuorum; nil if there is none
}

// Waiting returns how many calls wait now, and why. A call for a semaphore waits for each of its slots: it counts once,
// for the first slot.
func (q *Queue) Waiting() (w Waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	count := func(name string, f *round.Failure, n int) {
		if _, slot := scripts.CutSlot(name); n == 0 || slot.Number > 1 {
			return
		}
		if starved(f) {
			w.NoQuorum, w.Failure = w.NoQuorum+n, f
		} else {
			w.Held += n
		}
	}
	for c := range q.refused {
		count(c.Name, c.names.refusal, 1)
	}
	for name, nq := range q.names {
		count(name, nq.refusal, nq.waiting.len())
	}
	return w
}

// WaitedFor returns the names for which calls wait now.
func (q *Queue) WaitedFor() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var names []string
	for c := range q.refused {
		names = append(names, c.Name)
	}
	for name, nq := range q.names {
		if nq.waiting.len() > 0 {
			names = append(names, name)
		}
	}
	return names
}

// starved reports whether an attempt failed because the masters could not grant the name, rather than because of other
// clients.
func starved(f *round.Failure) bool {
	return f != nil && !errors.Is(f.Decision, round.ErrHeld) && !errors.Is(f.Decision, round.ErrUndecided) &&
		!errors.Is(f.Decision, round.ErrOverloaded)
}

// noticeOwnHold calls OwnHold if a lease of this Locker has been held for ownHoldPause while the call waits for it: in
// the local queue, or on the masters, whose refusal names the holder.
func (n *contention) noticeOwnHold() {
	q, c := n.q, n.c
	q.mu.Lock()
	l := c.names.holder
	if c.state != queued {
		l = nil
	}
	q.mu.Unlock()
	if l == nil && n.failure != nil {
		l = q.Manager.Own(n.failure.Holder)
	}
	if l != nil && l.AwaitedLong(ownHoldPause) {
		q.OwnHold(l)
	}
}
