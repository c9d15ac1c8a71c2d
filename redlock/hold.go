package redlock

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
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
	seq  uint64 // its number in the Locker, the end of its id
	// How the masters know it, as id gives it; nil where it is held for long and nobody has asked of late: it is larger
	// than all else of a hold.
	words atomic.Pointer[scripts.Hold]

	mu    sync.Mutex
	cause error // nil while it is live or being tried
	token int64
	// The last token of the block that was reserved, and when the masters were asked for it. Between the two, it may be
	// handed on; next is what it became then.
	blockEnd int64
	since    clock.Instant
	next     *hold
	// Of the options of the call that acquired it: what still counts. ttl grows with re-entries.
	ttl, handOnTime, maxHold time.Duration
	maxEnd                   clock.Instant // end of the maximum hold; zero: none
	lease                    lease
	depth                    int           // Locks of it that are not unlocked; the hold ends with the last
	coming                   int           // re-entries under way, which are no Locks yet
	held                     *round        // the last that was won, while votes of it are to come
	has                      uint64        // masters that have it, together with those that grant held
	of                       *members      // what the round went by that it was won or extended with last
	retryAt                  clock.Instant // when failed > 0: the next extension
	failed                   int32         // extensions that failed in a row
	running                  bool          // an extension is under way
	extend                   bool          // it is extended in the background
	fresh                    bool          // the schedule has not looked at it so far
	several                  bool          // more than one ballot was sent
	handles                  []*Lock
	alone                    [1]*Lock // what handles is cut from while there is one
	first                    Lock     // the Lock that acquired it, kept here to save an allocation

	// What the masters may have seen of it.
	sent   uint64  // masters to which an acquire may have been written
	ballot int64   // the largest ballot sent
	sentTo []int64 // once several: the largest ballot sent to each master

	line *line // of the Locker's lines, guarded by their mutex

	// Owned by the schedule.
	index int   // place in its heap, -1 where it is in none
	due   int64 // when it is to be looked at, on the steady clock
}

// id is how the masters know the hold. It is the same whenever it is asked for.
func (h *hold) id() *scripts.Hold {
	w := h.words.Load()
	if w == nil {
		w = h.l.wordsOf(scripts.Prefix(h.l.cfg.prefix).Keys(h.name), h.seq, "")
		h.words.Store(w)
	}
	return w
}

// idText is the id alone, for those who tell of the hold and need nothing else of its words.
func (h *hold) idText() string {
	if w := h.words.Load(); w != nil {
		return w.ID
	}
	var room [64]byte
	return string(scripts.AppendID(room[:0], h.l.cfg.id, h.seq))
}

// forget drops what id makes anew. An import keeps it: the id that it replaces is nowhere else.
func (h *hold) forget() {
	if w := h.words.Load(); w != nil && w.Previous == "" {
		h.words.Store(nil)
	}
}

// touch takes note that an acquire with ballot goes to master i. Before the hold is live there is one owner and no
// lock; afterwards mu is held.
func (h *hold) touch(i int, ballot int64) {
	h.sent |= 1 << i
	if h.sentTo != nil {
		h.growSentTo(i)
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
	h.sentTo = make([]int64, h.l.set.Load().slots)
	for i := range h.sentTo {
		if h.sent&(1<<i) != 0 {
			h.sentTo[i] = h.ballot
		}
	}
}

// growSentTo makes room for master i, which may be younger than the hold.
func (h *hold) growSentTo(i int) {
	if n := i + 1 - len(h.sentTo); n > 0 {
		h.sentTo = append(h.sentTo, make([]int64, n)...)
	}
}

// lastTo is the largest ballot that was sent to master i.
func (h *hold) lastTo(i int) int64 {
	switch {
	case h.sentTo == nil:
		return h.ballot
	case i < len(h.sentTo):
		return h.sentTo[i]
	}
	return 0
}

// releaseCalls hands the release for each master of the set to send: one call for all where they have seen the same.
func (h *hold) releaseCalls(encode func(ballot int64) *scripts.Call, set uint64, send func(i int, c *scripts.Call)) {
	var call *scripts.Call
	last := int64(-1)
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		ballot := h.lastTo(i)
		if teeth.NoTombstone {
			ballot = 0
		}
		if call == nil || ballot != last {
			call, last = encode(ballot), ballot
		}
		send(i, call)
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
	h.l.lines.ended(h)
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
	r, on := h.held, h.has
	h.mu.Unlock()
	if r != nil {
		on |= r.set(scripts.Granted)
	}
	return bits.OnesCount64(on & h.l.set.Load().rule.all())
}

// holdBy makes r, which was won, what tells on which masters the hold is. h.mu is held, or h is not live so far. The
// caller calls r.keep once it does not hold the mutex.
func (h *hold) holdBy(r *round) { h.held, h.has, h.of = r, 0, r.of }

// settle keeps what is to be known of r, whose votes are all in, and lets go of r itself: of h, and of the holds that it
// has become by being handed on.
func (h *hold) settle(r *round) {
	set := r.set(scripts.Granted)
	for h != nil {
		h.mu.Lock()
		if h.held == r {
			h.held, h.has = nil, h.has|set
		}
		next := h.next
		h.mu.Unlock()
		h = next
	}
}

// gains takes note that these masters have it, too, by messages that came after it was won.
func (h *hold) gains(set uint64) {
	for h != nil {
		h.mu.Lock()
		h.has |= set
		next := h.next
		h.mu.Unlock()
		h = next
	}
}

// A releasing is a release or a rollback under way. What could not be delivered becomes a debt of the pool.
type releasing struct {
	round
	h *hold
}

// release sends the end of h to the masters of set and returns the round; nothing is waited for. The hold is ended, or
// was never live.
func (h *hold) release(op string, set uint64) *round { return h.sendRelease(op, set, scripts.Advance) }

// sendRelease is release that says what the first waiter gets.
func (h *hold) sendRelease(op string, set uint64, next scripts.Next) *round {
	fleet := h.l.guard.snap.Load().fleet
	return h.sendEnd(op, set, func(ballot int64) *scripts.Call { return fleet.ReleaseCall(*h.id(), ballot, h.several, next) })
}

// resign is release of a hold that was never live, by its waiter, which waits no more.
func (h *hold) resign(set uint64, waiter string) {
	fleet := h.l.guard.snap.Load().fleet
	h.sendEnd("leave", set, func(ballot int64) *scripts.Call { return fleet.ResignCall(*h.id(), ballot, waiter) })
}

// sendEnd sends releases as encode makes them.
func (h *hold) sendEnd(op string, set uint64, encode func(ballot int64) *scripts.Call) *round {
	l := h.l
	r := &releasing{h: h}
	now := l.set.Load()
	r.init(l, now, op, r)
	r.round.release = true
	r.tally.rule = h.endRule(now)
	r.asked = r.tally.rule.all() | set
	l.outstanding.Add(1)
	snap := l.guard.snap.Load()
	h.releaseCalls(encode, set, func(i int, c *scripts.Call) {
		if err := l.sendStamped(snap, i, c, &r.round); err != nil {
			r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: err})
		}
	})
	for rest := r.asked &^ set; rest != 0; {
		r.add(popFirst(&rest), vote{Vote: scripts.Vote{Kind: scripts.Missing}})
	}
	return &r.round
}

// sendStamped sends a release to master i, with the marker that its connection is known to have: by that it may write the
// hold of a waiter. Where none is known, or the connection is another by now, it goes without.
func (l *Locker) sendStamped(s *snapshot, i int, c *scripts.Call, to pool.Receiver) error {
	if i < len(s.masters) {
		if m := &s.masters[i]; m.phase == phaseAdmitted && m.stamp.Text != "" {
			if err := l.pool.Send(i, c, m.stamp, to); !errors.Is(err, pool.ErrSession) {
				return err
			}
		}
	}
	return l.pool.Send(i, c, pool.Stamp{}, to)
}

func (r *releasing) booked(_ *round, i int, v vote, _, last bool) {
	if v.Kind == scripts.Failed && passing(v.err) {
		h := r.h
		ballot := h.lastTo(i)
		if teeth.NoTombstone {
			ballot = 0
		}
		id := h.id()
		ids := []string{id.ID}
		if id.Previous != "" {
			ids = append(ids, id.Previous)
		}
		h.l.pool.Owe(i, pool.Debt{
			Name: scripts.Prefix(h.l.cfg.prefix).Lock(h.name), Fleet: h.l.guard.snap.Load().fleet, Keys: id.Keys, IDs: ids, Ballot: ballot,
		})
	}
	if last {
		r.h.l.settle()
	}
}
