package redlock

import (
	"math/bits"
	"sync"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// A hold is one acquisition, shared by the Locks that re-enter it.
//
//	trying -> live -> ended (released, lost, handed on)
//	   \----------------^ rolled back
//
// Every message of a live hold is queued with mu held and with the state checked under the same mu. The change to ended
// takes mu too, and the release is queued after it; so no byte of an extension, a re-entry or a heal follows the
// release of its hold. Queuing never blocks, so neither does mu.
type hold struct {
	l    *Locker
	name string
	id   scripts.Hold

	mu      sync.Mutex
	cause   error // nil while it is live or being tried
	token   int64
	cfg     lockConfig
	maxEnd  clock.Instant // end of the maximum hold; zero: none
	lease   lease
	depth   int // Locks of it that are not unlocked; the hold ends with the last
	coming  int // re-entries under way, which are no Locks yet
	held    *round
	healed  uint64        // masters healed since held
	running bool          // an extension is under way
	failed  int           // extensions that failed in a row
	retryAt clock.Instant // when failed > 0: the next
	handles []*Lock
	first   Lock // the Lock that acquired it, kept here to save an allocation

	// What the masters may have seen of it.
	sent    uint64  // masters to which an acquire may have been written
	ballot  int64   // the largest ballot sent
	several bool    // more than one ballot was sent
	sentTo  []int64 // once several: the largest ballot sent to each master

	// Owned by the schedule.
	index int   // place in its heap, -1 where it is in none
	due   int64 // when it is to be looked at, on the steady clock
}

// touch takes note that an acquire with ballot goes to master i. Before the hold is live there is one owner and no
// lock; afterwards mu is held.
func (h *hold) touch(i int, ballot int64) {
	h.sent |= 1 << i
	if h.sentTo != nil {
		h.sentTo[i] = max(h.sentTo[i], ballot)
	}
	h.ballot = max(h.ballot, ballot)
}

// another takes note that a further ballot will be sent.
func (h *hold) another() {
	h.several = true
	if h.sentTo != nil {
		return
	}
	h.sentTo = make([]int64, h.l.n)
	for i := range h.sentTo {
		if h.sent&(1<<i) != 0 {
			h.sentTo[i] = h.ballot
		}
	}
}

// releaseCalls hands the release for each master of the set to send: one call for all where they have seen the same.
func (h *hold) releaseCalls(fleet scripts.Fleet, set uint64, send func(i int, ballot int64, c *scripts.Call)) {
	var call *scripts.Call
	last := int64(-1)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		ballot := h.ballot
		if h.sentTo != nil {
			ballot = h.sentTo[i]
		}
		if unsafeNoTombstone {
			ballot = 0
		}
		if call == nil || ballot != last {
			call, last = fleet.ReleaseCall(h.id, ballot, h.several), ballot
		}
		send(i, ballot, call)
	}
}

// end makes the hold ended for the given reason, cancels the contexts made from it, and reports whether it was live.
// Nothing has been sent when it returns: the holder hears of it first.
func (h *hold) end(cause error) bool {
	h.mu.Lock()
	if h.cause != nil {
		h.mu.Unlock()
		return false
	}
	handles := h.endLocked(cause)
	h.mu.Unlock()
	h.ended(handles, cause)
	return true
}

// endLocked is the first half of end, for those who have decided it under h.mu, which they hold: the hold is live. They
// call ended with what it returns once they do not hold the mutex.
func (h *hold) endLocked(cause error) (handles []*Lock) {
	h.cause = cause
	handles, h.handles = h.handles, nil
	for _, k := range handles {
		k.endLocked(cause)
	}
	return handles
}

// ended is the second half of end.
func (h *hold) ended(handles []*Lock, cause error) {
	for _, k := range handles {
		k.cancelAll(cause)
	}
	h.l.schedule.remove(h)
}

// on is the number of masters that are known to have the hold.
func (h *hold) on() int {
	h.mu.Lock()
	r, healed := h.held, h.healed
	h.mu.Unlock()
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.votes {
		if r.votes[i].Kind == scripts.Granted || healed&(1<<i) != 0 {
			n++
		}
	}
	return n
}

// A releasing is a release or a rollback under way. What could not be delivered becomes a debt of the pool.
type releasing struct {
	round
	h *hold
}

// release sends the end of h to the masters of set and returns the round; nothing is waited for. The hold is ended, or
// was never live.
func (h *hold) release(op string, set uint64) *round {
	l := h.l
	r := &releasing{h: h}
	r.round = round{l: l, op: op, release: true, booker: r, done: make(chan struct{}), tally: tally{n: l.n}, votes: make([]vote, l.n)}
	l.outstanding.Add(1)
	fleet := l.guard.snap.Load().fleet
	h.releaseCalls(fleet, set, func(i int, _ int64, c *scripts.Call) {
		if err := l.pool.Send(i, c, pool.Stamp{}, &r.round); err != nil {
			r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: err})
		}
	})
	for i := range l.n {
		if set&(1<<i) == 0 {
			r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Missing}})
		}
	}
	return &r.round
}

func (r *releasing) booked(_ *round, i int, v vote, _, last bool) {
	if v.Kind == scripts.Failed && passing(v.err) {
		h := r.h
		ballot := h.ballot
		if h.sentTo != nil {
			ballot = h.sentTo[i]
		}
		if unsafeNoTombstone {
			ballot = 0
		}
		ids := []string{h.id.ID}
		if h.id.Previous != "" {
			ids = append(ids, h.id.Previous)
		}
		h.l.pool.Owe(i, pool.Debt{
			Name: scripts.Prefix(h.l.cfg.prefix).Lock(h.name), Fleet: h.l.guard.snap.Load().fleet, Keys: h.id.Keys, IDs: ids, Ballot: ballot,
		})
	}
	if last {
		r.h.l.settle()
	}
}
