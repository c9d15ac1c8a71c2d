package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A contention records the attempts of one call while the call is the contender.
type contention struct {
	q       *Queue
	c       *Call
	terms   *lease.Terms   // of the next attempt
	watch   time.Duration  // pause before the next noticeOwnHold, while the call is in the local queue
	wakeUps int            // number of consecutive lost attempts that wake-ups have caused
	round   *round.Round   // the last round; nil: the last attempt sent nothing, since too few masters vote
	ticket  bool           // whether the last attempt carried the ticket
	decided time.Time      // when the last attempt was decided; a suspension only delays the next attempt
	failure *round.Failure // how the last attempt failed
	before  *round.Failure // why the call waited before it became the contender; nil if it did not wait
	held    *round.Failure // how the last attempt failed that got ErrHeld; nil: no attempt got ErrHeld
	lost    int            // number of attempts that have failed since held
	refused int            // number of attempts that have failed
	pause   time.Duration  // time until the next attempt, if no wake-ups can arrive
}

// Lock waits for the name until the lease of c.Hold is live, or until ctx ends. An error is a *round.Failure, or an
// error of package ballot. After an error nothing is held, and leases that masters may have granted are being rolled
// back.
func (q *Queue) Lock(ctx context.Context, c *Call) error {
	q.join(c)
	if q.takeOver(c) { // a lease that lingers
		return nil
	}
	return q.contend(ctx, c)
}

// join makes c the contender, or puts it into the local queue.
func (q *Queue) join(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	c.seq, c.state = q.calls, queued // also if c was the contender before: see takeOver
	nq := q.names[c.Name]
	if nq == nil {
		nq = &c.own
		nq.refusal = heldLocally
		q.names[c.Name] = nq
	}
	c.names = nq
	if nq.holder == nil && nq.contender == nil {
		nq.contender, c.state = c, acquiring
		return
	}
	c.wake = make(chan struct{}, 1)
	place := 1 + nq.waiting.insert(c)
	if nq.contender != nil {
		place++
	}
	c.Stats.RecordPlace(place)
	if c.Fair {
		q.subscribeLocked(c) // c must be subscribed when the lease is released; see Releasing
	}
	if nq.contender != nil && c.Priority > nq.contender.Priority {
		nq.contender.signal()
	}
}

// signal makes the call check its state again.
func (c *Call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sleep waits until c must check its state again, because it was signalled, the view has changed, or pause has ended.
// It returns why the call must end, or nil if the call continues.
func (q *Queue) sleep(ctx context.Context, c *Call, changed <-chan struct{}, pause <-chan time.Time) error {
	select {
	case <-c.wake:
	case <-changed:
	case <-pause:
	case <-ctx.Done():
		return fault.ContextError(ctx)
	case <-q.Manager.Closing:
		return lease.ErrClosed
	}
	return nil
}

// contend is the one loop of a call that has joined; at its end the call leaves. The loop does what the state of the
// call requires: a queued call sleeps until it is signalled; the contender makes an attempt, or sleeps until the next
// is due.
func (q *Queue) contend(ctx context.Context, c *Call) error {
	defer q.leave(c)
	n := &contention{q: q, c: c, terms: c.Terms}
	for {
		changed := q.Changed()
		state, pause := n.next()
		var timer <-chan time.Time
		switch {
		case state == holding:
			return nil
		case state == queued && c.Endless: // the call may wait forever for a lock of its own caller
			changed = nil
			n.watch = min(max(2*n.watch, ownHoldPause), time.Minute)
			timer = time.After(n.watch)
		case state != acquiring: // only the contender reacts to a changed view
			changed = nil
		case pause <= 0:
			var l *lease.Lease
			a, err := n.prepare(ctx)
			if err == nil {
				l, n.round, err = q.Manager.Acquire(ctx, a)
				n.decided = time.Now()
			}
			if err == nil {
				return q.startHold(c, l)
			}
			if !round.Waitable(err) {
				return n.ended(err)
			}
			n.recordRefusal(err)
			continue
		default:
			timer = time.After(pause)
		}
		if cause := q.sleep(ctx, c, changed, timer); cause != nil {
			return n.abandon(ctx, cause)
		}
		if c.Endless {
			n.noticeOwnHold()
		}
	}
}

// next returns the state of the call and, for the contender, how long to wait before its next attempt. The contender
// goes back to the local queue if a call with a higher priority waits there.
func (n *contention) next() (waiterState, time.Duration) {
	q, c := n.q, n.c
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case c.state == queued, c.state == handoff:
		n.before = c.names.refusal
		return c.state, 0
	case c.state == holding, n.failure == nil:
		return c.state, 0
	}
	if c.wake == nil { // earlier signals are covered by the checks below
		c.wake = make(chan struct{}, 1)
	}
	if q.yieldLocked(c) {
		*n = contention{q: q, c: c, terms: c.Terms, before: c.names.refusal}
		return c.state, 0
	}
	q.subscribeLocked(c)
	return acquiring, n.untilAttemptLocked()
}

// prepare returns the next attempt, with the ticket if wake-ups can arrive and a quorum can vote. The first attempt of
// a Locker that is not subscribed carries no ticket. The Locker subscribes only after a refusal, so a free name costs
// no subscription.
func (n *contention) prepare(ctx context.Context) (*lease.Attempt, error) {
	q, c := n.q, n.c
	view, err := q.Ready(ctx)
	if err != nil {
		return nil, q.Manager.Sender.NoQuorum(view, err)
	}
	a := &lease.Attempt{Op: c.Op, Name: c.Name, Keys: c.Keys, Terms: n.terms, Stats: c.Stats}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n.wakeUps++; c.woken == 0 {
		n.wakeUps = 0
	}
	c.woken = 0
	if n.ticket = q.receivingLocked() && !q.noQuorum && view.Config.Rule.Won(view.Voting); n.ticket {
		a.Ticket = q.ticketLocked(c)
	}
	if q.subscribers[c.seq] != nil {
		a.Waiter = place{q, c}
	}
	return a, nil
}

// startHold makes the won lease of c live.
func (q *Queue) startHold(c *Call, l *lease.Lease) error {
	q.mu.Lock()
	c.names.contender, c.state = nil, holding
	delete(q.refused, c)
	c.names.holder, c.names.refusal = l, heldLocally
	q.mu.Unlock()
	return c.Hold.Start(l, c.Terms)
}

// leave removes c from the local queue and from the queues of the masters, and promotes the next waiter. It returns the
// state of c: abandoned, or handoff or holding if c gets the lease.
func (q *Queue) leave(c *Call) waiterState {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.state == queued || c.state == acquiring {
		q.leaveMastersLocked(c)
		nq := c.names
		if c.state == acquiring {
			nq.contender = nil
		} else {
			nq.waiting.remove(c)
		}
		q.promoteLocked(c.Name, nq)
		c.state = abandoned
	}
	delete(q.refused, c)
	q.unsubscribeLocked(c)
	return c.state
}

// recordRefusal records how an attempt failed.
func (n *contention) recordRefusal(err error) {
	n.failure, _ = round.AsFailure(err)
	if n.lost++; errors.Is(n.failure.Decision, round.ErrHeld) {
		n.held, n.lost = n.failure, 0
	}
	n.terms = n.c.Terms.WithoutLinger() // other waiters may not try again before the release
	n.q.recordFailure(n.c, n.failure)
	n.refused++
	n.pause = n.c.Poll(n.refused) // computed once for each failure, since the pause may be random
}

// abandon ends the wait of a call because of cause, and returns the failure of the call. If a lease is being handed off
// to the call, abandon waits until the call has the lease, and unlocks it.
func (n *contention) abandon(ctx context.Context, cause error) error {
	q, c := n.q, n.c
	var f *round.Failure
	if n.failure != nil {
		f = n.abandonedBy(cause)
	} else {
		q.mu.Lock()
		f = c.names.refusal.Waited(cause)
		q.mu.Unlock()
	}
	state := q.leave(c)
	for state == handoff {
		<-c.wake // a short wait: the holder that hands the lease off does not block
		state = q.leave(c)
	}
	if state == holding {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = c.Hold.Unlock(ended) // sends the release without waiting
	}
	return f
}

// ended returns the error of a call whose last attempt failed with err. If err only says why the call stopped waiting,
// ended adds the failure of the attempt before.
func (n *contention) ended(err error) error {
	switch {
	case n.failure != nil:
		err = WithLastFailure(n.failure, err)
	case n.before != nil:
		err = WithLastFailure(n.before, err)
	}
	if f, ok := round.AsFailure(err); ok {
		return n.orHeld(f)
	}
	return err
}

// orHeld returns f, or n.held with the cause of f, since n.held names the holder. It returns n.held if f has a cause
// and reports no quorum, and at most one attempt has failed since n.held, or a quorum of masters can grant a lock now.
// With a cause, split votes count as held: see [round.Failure.Waited].
func (n *contention) orHeld(f *round.Failure) *round.Failure {
	if f.Cause == nil {
		return f
	}
	if n.held == nil || !errors.Is(f.Decision, round.ErrNoQuorum) {
		return f.Waited(f.Cause)
	}
	if view := n.q.Manager.View(); n.lost > 1 && !view.Config.Rule.Won(n.q.Manager.Sender.Able(view)) {
		return f.Waited(f.Cause)
	}
	held := n.held.Ended(f.Cause)
	held.Masters = f.Masters
	return held
}

// abandonedBy returns the failure of a call that ended for cause, with all votes that have arrived by now.
func (n *contention) abandonedBy(cause error) *round.Failure {
	f := n.failure
	if n.round != nil {
		decision := f.Decision
		if errors.Is(decision, round.ErrUndecided) { // more votes may have arrived since
			decision = n.round.Decision()
		}
		f = n.round.Failure(decision, cause)
	}
	return n.orHeld(f.Ended(cause))
}
