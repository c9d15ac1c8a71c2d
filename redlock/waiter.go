package redlock

import (
	"context"
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// How long a contender that hears the masters sleeps without a word. The first pause is firstPoll; it doubles up to
// idlePoll for one that is first in the queue, which only lost messages concern, and up to queuePoll for the others,
// who find out so if the first one hangs.
const (
	firstPoll = 250 * time.Millisecond
	queuePoll = time.Second
	idlePoll  = 5 * time.Second
	// pollTick divides the time of a Locker: longer pauses end where a part does.
	pollTick = 250 * time.Millisecond
)

// maxRejoins is how often in one wait a contender asks again soon, each time later, when its attempt was rolled back since
// a minority had granted it: it is to be in the queues of that minority, too.
const maxRejoins = 5

// leastLinger is how long a contender at least waits for the other masters' word after the first one's.
const leastLinger = 3 * time.Millisecond

// A waiter is a contender that has been refused: its place in the queues of the masters, and what they tell it.
type waiter struct {
	b        *inbox
	name     string
	keys     scripts.Keys
	called   clock.Instant
	priority int
	number   uint64
	ticket   *scripts.Ticket // nil until it is dated; written with the inbox's mutex held, before any round carries it
	wake     chan struct{}   // capacity 1

	// Of the goroutine that waits.
	poll    time.Duration
	rejoins int  // how often it has asked again soon after a roll-back
	inTurn  bool // the next attempt does not overtake
	queuing bool // the last attempt could join the queues

	mu     sync.Mutex
	over   bool          // it waits no more
	gone   bool          // it has left the queues, too
	open   *asked        // what messages may grant; nil: nothing
	won    *hold         // what it has won
	need   int           // as many masters must have told before it is worth trying
	most   uint64        // masters that have refused, and are expected to tell
	queued uint64        // masters on which it is, or may be, in the queue
	told   uint64        // masters that have told it since the last attempt
	bar    int64         // the largest bar that they have told
	first  time.Time     // when the first of them did
	linger time.Duration // from then to trying with fewer than need
	late   *time.Timer   // ends the linger
	nudge  time.Time     // when to look again since a subscription was made anew; zero: never
}

// An asked is the last round of a waiter, with what a message must say to be a vote in it: the hold, the ballot, and what
// the master was admitted as when it was asked. A hold that was asked for again by another ballot has been written in answer
// to an older round, whose start is another; one that some other master has written says nothing of this one.
type asked struct {
	round   *round
	hold    string
	ballot  int64
	masters []masterState
}

// grants reports whether a notice from this master is its vote.
func (o *asked) grants(master int, n scripts.Notice) bool {
	return o.round.asked&bit(master) != 0 && n.Hold == o.hold && n.Ballot == o.ballot && n.Marker == o.masters[master].stamp.Text
}

// asks opens a round to messages, in the place of the one before.
func (w *waiter) asks(o *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = o
}

// next is a ballot with which the round that is open may be asked for again: above its own, and above the bars that were told,
// but not by more than need be. Who asks by the present time has a larger ballot than all who wait behind, and no release
// can write their holds after it.
func (w *waiter) next(a *attempt) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(max(a.end, w.bar), scripts.MaxBallot) + 1
}

// forget closes the round to messages, and returns the masters on which it may be queued. That some have granted it is no
// word any more: they are told of the end.
func (w *waiter) forget() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open != nil {
		w.told &^= w.open.round.set(scripts.Granted)
	}
	w.open = nil
	return w.queued
}

// notice takes a master's word that it is our turn there, and reports whether it is of use: if not, what was given is to be
// given back. It is called by the goroutine of a connection.
func (w *waiter) notice(master int, n scripts.Notice) (of bool) {
	w.mu.Lock()
	signal := false
	var gains *hold
	switch {
	case n.Kind == scripts.Given && (w.open == nil || w.open.hold != n.Hold):
	case w.over && n.Kind != scripts.Given:
	default:
		of = true
		enough := w.enoughLocked()
		if n.Kind == scripts.Given && w.open.grants(master, n) {
			w.open.round.turn(master)
			gains = w.won
		}
		if !w.over {
			if n.Kind == scripts.Reserved {
				w.bar = max(w.bar, n.Ballot)
			}
			w.tellLocked(master)
			signal = !enough && w.enoughLocked()
		}
	}
	w.mu.Unlock()
	gains.gains(bit(master))
	if signal {
		w.signal()
	}
	return of
}

// tellLocked takes note that it is our turn on a master.
func (w *waiter) tellLocked(master int) {
	if w.told == 0 {
		w.first = time.Now()
		if w.late == nil {
			w.late = time.AfterFunc(w.linger, w.lapse)
		} else {
			w.late.Reset(w.linger)
		}
	}
	w.told |= 1 << master
}

// turnsLocked is the set of masters on which it is our turn, or which have our hold.
func (w *waiter) turnsLocked() uint64 {
	if w.open == nil {
		return w.told
	}
	return w.told | w.open.round.set(scripts.Granted)
}

// enoughLocked reports whether it is worth asking, or whether there is nothing left to ask for.
func (w *waiter) enoughLocked() bool {
	turns := w.turnsLocked()
	if w.open == nil {
		return bits.OnesCount64(turns) >= w.need
	}
	return w.open.round.of.rule.has(turns)
}

// lapse is the end of a linger: to try with fewer, or to leave the queues that have not granted.
func (w *waiter) lapse() {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over {
		w.part()
		return
	}
	w.signal()
}

// gap says that messages may have been lost.
func (w *waiter) gap() {
	w.mu.Lock()
	if w.nudge.IsZero() {
		w.nudge = time.Now().Add(spread(gapSpread))
	}
	w.mu.Unlock()
	w.signal()
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// begin forgets what was told: an attempt is made with it.
func (w *waiter) begin() {
	w.mu.Lock()
	w.told, w.bar, w.nudge = 0, 0, time.Time{}
	w.stopLateLocked()
	w.mu.Unlock()
}

func (w *waiter) stopLateLocked() {
	if w.late != nil {
		w.late.Stop()
	}
}

// booked implements booker for the rounds of its attempts.
func (w *waiter) booked(r *round, i int, v vote, decides, _ bool) {
	bit := uint64(1) << i
	late := !decides && r.verdict() == lost
	w.mu.Lock()
	switch {
	case v.Kind == scripts.Granted:
		w.queued &^= bit
		if late && !w.over && w.open != nil && w.open.round == r { // too few have, so far
			w.tellLocked(i)
		}
	case v.Kind == scripts.Held && v.Place >= 0, v.unsure():
		w.queued |= bit
	}
	leave := w.gone && v.Kind != scripts.Granted && (w.queued|w.told)&bit != 0
	signal := late && !w.over && v.unsure()
	w.mu.Unlock()
	if leave {
		w.b.l.leaveQueue(i, w.keys, w.ticket.String())
	}
	if signal { // this attempt is to be rolled back
		w.signal()
	}
}

// leave ends the wait of one that gives up: it leaves the queues that it may be in, and gives back what is reserved for it.
// The hold of the attempt that is open is released on every master on which it may be, or may yet be written. Votes that are
// still to come are looked at when they do.
func (w *waiter) leave(a *attempt) {
	w.b.leave(w)
	w.mu.Lock()
	w.over, w.gone, w.open = true, true, nil
	w.stopLateLocked()
	left := w.queued | w.told
	w.mu.Unlock()
	if a != nil && !a.dead && a.w != nil {
		a.dead = true
		set := a.all()
		if a.offered {
			set |= left
		}
		if set &= a.h.sent; set != 0 {
			a.h.resign(set, w.ticket.String())
		}
		left &^= set
	}
	w.leaveQueues(left)
}

func (w *waiter) leaveQueues(set uint64) {
	for ; set != 0; set &= set - 1 {
		w.b.l.leaveQueue(bits.TrailingZeros64(set), w.keys, w.ticket.String())
	}
}

// win ends the wait of one whose last round has won. The masters that have not granted yet are about to, as a rule: it leaves
// their queues a moment later.
func (w *waiter) win(h *hold) {
	w.mu.Lock()
	w.over, w.won = true, h
	w.stopLateLocked()
	wait, has := w.leftLocked() != 0, uint64(0)
	if w.open != nil {
		has = w.open.round.set(scripts.Granted)
	}
	if wait {
		if w.late == nil {
			w.late = time.AfterFunc(w.linger, w.lapse)
		} else {
			w.late.Reset(w.linger)
		}
	}
	w.mu.Unlock()
	h.gains(has)
	if !wait {
		w.part()
	}
}

// leftLocked is the set of masters on which one that has won may be in the queue, or have a reservation.
func (w *waiter) leftLocked() uint64 {
	if w.open == nil {
		return w.queued | w.told
	}
	return (w.queued | w.told) &^ w.open.round.set(scripts.Granted)
}

// part takes one that has won out of the queues where it still is.
func (w *waiter) part() {
	w.mu.Lock()
	if w.gone {
		w.mu.Unlock()
		return
	}
	left := w.leftLocked()
	if w.open != nil {
		left &^= w.open.round.pending()
	}
	w.gone = true // and open stays: what comes late of a live hold is not given back
	w.mu.Unlock()
	w.b.leave(w)
	w.leaveQueues(left)
}

// plan says for how long a refused contender sleeps if nobody wakes it.
func (w *waiter) plan(a *attempt, failed *LockError, b Backoff) (time.Duration, bool) {
	coming, rule := a.last.pending(), a.l.set.Load().rule
	w.mu.Lock()
	w.need, w.most = max(rule.least()-failed.Granted, 1), w.queued|coming
	w.linger = max(leastLinger, 2*a.elapsed)
	reach := bits.OnesCount64(w.most)
	w.mu.Unlock()
	if a.split { // nobody has it: whoever is quick wins
		return 2*a.elapsed + spread(4*a.elapsed+time.Millisecond), true
	}
	if a.dead && w.rejoins < maxRejoins && a.last != nil && a.last.granted() > 0 && a.last.heldByMost() { // no queue of those has it now
		w.rejoins++
		return w.linger << w.rejoins, true
	}
	heard := w.queuing && errors.Is(failed.Decision, ErrHeld) && reach >= rule.least() && w.b.ready()
	pause := time.Duration(0)
	if heard && !a.cfg.delaysGiven {
		w.poll = min(max(2*w.poll, firstPoll), idlePoll)
		if a.place > 0 {
			w.poll = min(w.poll, queuePoll)
		}
		pause = w.poll/2 + spread(w.poll/2)
		if w.poll >= queuePoll {
			pause = w.b.together(min(pause+pollTick/2, w.poll))
		}
	} else {
		var again bool
		if pause, again = b.Next(); !again {
			return 0, false
		}
	}
	if left := min(failed.Left, time.Hour); left > 0 { // somebody may have given a key all the time there is
		pause = min(pause, left+time.Millisecond+spread(min(left/8, 20*time.Millisecond)))
	}
	return pause, true
}

// until is when to try again as far as what was told goes: zero for not at all.
func (w *waiter) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	turns := w.turnsLocked()
	if turns != 0 && w.told == 0 { // granted by those who were asked; the others may follow
		w.tellLocked(bits.TrailingZeros64(turns))
	}
	switch {
	case w.enoughLocked():
		return w.first
	case turns != 0 && !w.nudge.IsZero() && w.nudge.Before(w.first.Add(w.linger)):
		return w.nudge
	case turns != 0:
		return w.first.Add(w.linger)
	}
	return w.nudge
}

// gather lets the goroutines of the other connections run that have word for us too: a master that is asked before it
// has read the release refuses. It does not wait.
func (w *waiter) gather() {
	for range 4 {
		w.mu.Lock()
		all := w.most&^w.told == 0
		w.mu.Unlock()
		if all {
			return
		}
		runtime.Gosched()
	}
}

// pause waits until the attempt has won, which it reports, or until it is worth trying again.
func (w *waiter) pause(ctx context.Context, a *attempt, failed *LockError, b Backoff, sent bool) (won bool, err error) {
	delay, again := w.plan(a, failed, b)
	if !again {
		return false, failed
	}
	var moved <-chan struct{}
	if !sent {
		moved = w.b.l.guard.changes()
	}
	deadline := time.Now().Add(delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		if takes, late := a.takes(w.b.l.now()); takes || late {
			return takes, nil
		}
		if !w.queuing && w.b.ready() && w.b.date(w) { // it stands: look again, since a message may have been missed before
			return false, nil
		}
		if !a.dead && a.clouded() {
			return false, nil
		}
		if at := w.until(); !at.IsZero() && at.Before(deadline) {
			deadline = at
			timer.Reset(max(0, time.Until(deadline)))
		}
		if !time.Now().Before(deadline) {
			w.gather()
			takes, _ := a.takes(w.b.l.now())
			return takes, nil
		}
		select {
		case <-timer.C:
		case <-w.wake:
		case <-moved:
			return false, nil
		case <-ctx.Done():
			return false, withCause(failed, contextError(ctx))
		case <-w.b.l.closing:
			return false, withCause(failed, ErrClosed)
		}
	}
}
