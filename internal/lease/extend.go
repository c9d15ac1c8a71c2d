package lease

import (
	"context"
	"math"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Run implements due.Task. It ends the lease and its contexts if the lease has expired, and otherwise extends the lease
// if an extension is due. The returned function finishes the ending, or records the votes of masters to which no
// extension was sent.
func (l *Lease) Run(now clock.Instant) (after func()) {
	var e *extension
	l.mu.Lock()
	end := l.endLocked(l.expiredLocked(now))
	switch l.state {
	case live:
		if l.renewInLocked(now) <= 0 {
			e = l.renewLocked(now)
		}
		l.listenInTimeLocked(now)
		l.scheduleLocked(now)
	case idle:
		l.scheduleLocked(now)
	}
	l.mu.Unlock()
	//mutant:contexts-before-release drop
	end.endContexts()
	switch {
	case end.why != nil:
		return func() { end.finish() }
	case e != nil:
		return e.RecordSkipped
	}
	return nil
}

// renewLocked sends an extension, and sets when to repeat the extension if it is not confirmed. If the lease is not
// extended in the background, renewLocked sends only a check, because of a message about the lease.
func (l *Lease) renewLocked(now clock.Instant) *extension {
	l.renewal.soon = 0
	if !l.ownership.terms.Extend {
		return l.sendLocked("check", 0, "")
	}
	l.renewal.retry = now.Steady() + int64(l.validity.retryIn(now))
	return l.extendLocked("extend", 0)
}

const forever = time.Duration(math.MaxInt64)

// renewInLocked returns the time until the Manager must call renewLocked.
func (l *Lease) renewInLocked(now clock.Instant) time.Duration {
	wait := until(l.renewal.soon, now)
	if !l.ownership.terms.Extend {
		return wait
	}
	if l.renewal.retry == 0 {
		return min(wait, l.validity.extendIn(l.ownership.terms.TTL, now))
	}
	return min(wait, until(l.renewal.retry, now))
}

// until returns the time from now to at on the boot clock, or forever if at is 0.
func until(at int64, now clock.Instant) time.Duration {
	if at == 0 {
		return forever
	}
	return time.Duration(at - now.Steady())
}

// scheduleLocked sets when the Manager calls Run again.
func (l *Lease) scheduleLocked(now clock.Instant) {
	l.m.timers.Reschedule(&l.renewal.entry, l.nextRunLocked(now))
}

// nextRunLocked returns when the Manager must call Run again, on the boot clock.
func (l *Lease) nextRunLocked(now clock.Instant) int64 {
	wait := min(l.leftLocked(now), l.renewInLocked(now), l.listenInLocked(now))
	if l.state == idle {
		wait = time.Duration(l.linger.until - now.Steady())
	}
	return now.Steady() + int64(max(0, wait))
}

// ExtendSoon schedules an extension of the lease after a pause, so that masters that lack the lease get it. An
// extension under way is not enough, since it may have been sent before such a master was reachable. An idle lease is
// extended when a call takes it over.
func (l *Lease) ExtendSoon(after time.Duration) {
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extendSoonLocked(now, after)
}

func (l *Lease) extendSoonLocked(now clock.Instant, after time.Duration) {
	at, soon := now.Steady()+int64(after), l.renewal.soon
	if (l.state == idle || l.state == live && l.ownership.terms.Extend) &&
		(soon == 0 || at < soon) {
		l.renewal.soon = at
		l.scheduleLocked(now)
	}
}

// An extension is one round that prolongs or only checks a lease. The Manager, Extend, SetValue and re-entries send
// extensions.
type extension struct {
	round.Round
	lease    *Lease
	ttl      time.Duration // 0: the round prolongs nothing, and only shows which masters have the lease
	repaired quorum.Set    // masters to which this round has sent a repair; guarded by lease.mu
}

// extendLocked queues a round that prolongs the lease by the TTL of its terms, or by ttl if that is longer, and writes
// the depth and the value. See sendLocked.
func (l *Lease) extendLocked(op redlockinfo.Op, ttl time.Duration) *extension {
	ttl = max(ttl, l.ownership.terms.leaseTTL(l.heldLocked(l.m.Clock.Now())))
	return l.sendLocked(op, ttl, l.value)
}

// sendLocked queues a round that writes the depth and a value. l must be live. The caller must hold l.mu, and must call
// RecordSkipped after it has unlocked l.mu.
func (l *Lease) sendLocked(op redlockinfo.Op, ttl time.Duration, value scripts.Value) *extension {
	e := &extension{lease: l, ttl: ttl}
	e.Init(l.m.Sender, l.m.View(), op, l.keys.Lock(), e)
	e.Extends = ttl > 0
	term := l.m.Ballots.Term(e.Start, ttl)
	e.SendAll(e.View.Encoder.Extend(l.keys, l.ID, term, l.depthLocked(), value), ttl, round.NeedsConnection)
	return e
}

// OnVote implements round.VoteObserver.
func (e *extension) OnVote(r *round.Round, i int, v *round.Vote, decides, _ bool) {
	l := e.lease
	won := r.Verdict() == quorum.Won
	l.mu.Lock()
	l.recordVoteLocked(r, i, v.Outcome)
	if (l.state == live || l.state == idle) && decides && won && e.ttl > 0 {
		e.confirmedLocked(l.m.Clock.Now())
	}
	var err error
	if decides && !won && e.ttl > 0 {
		l.renewal.failed = r.Failure(round.ErrNoQuorum, nil)
		err = l.renewal.failed
	}
	end := l.endLocked(l.goneLocked())
	//mutant:stop-before-release = true
	if l.state == live && e.ttl > 0 {
		e.repairLocked()
	}
	l.mu.Unlock()
	end.finish()
	if !decides || end.why != nil || e.ttl == 0 {
		return
	}
	if !won {
		l.m.readClocks(r, l.m.Clock.Now())
	}
	l.m.Events.Extended(l, err)
}

// confirmedLocked records that a majority has confirmed the lease.
func (e *extension) confirmedLocked(now clock.Instant) {
	l := e.lease
	l.config = e.View.Config
	tally := e.Tally()
	v := validity{start: e.Start, ttl: e.ttl, by: tally.Of(quorum.Granted)}
	if v.left(now) > l.validity.left(now) {
		l.validity = v
	}
	l.renewal.retry, l.renewal.failed = 0, nil
	l.scheduleLocked(now)
}

// repairLocked sends one repair to each master that is repairable because of this round. It sends none if the validity
// has expired: after a freeze, the Manager may not have ended the lease yet.
func (e *extension) repairLocked() {
	missing := repairable(&e.Round) &^ e.repaired
	if missing == 0 || e.lease.validity.left(e.lease.m.Clock.Now()) <= 0 {
		return
	}
	for i := range missing.All() {
		e.repaired |= quorum.One(i)
		e.lease.repairLocked(&e.Round, i, e.ttl, e.lease.ownership.token)
	}
}

// Extend prolongs the lease to its full TTL from now, and waits for the decision. It returns nil only if validity is
// left.
func (h *Hold) Extend(ctx context.Context) error {
	e, err := h.prolong(ctx, "extend", 0, 0)
	if err != nil && e != nil && e.worthAnother(ctx) {
		_, err = h.prolong(ctx, "extend", 0, 0)
	}
	return err
}

// prolong sends an extension and waits for the decision. It prolongs the lease by the TTL of its terms, or by ttl if
// that is longer. more is the number of holds that are being added. The error is nil only if a majority has confirmed
// the lease and h is still held afterwards. The extension is nil if nothing was sent.
func (h *Hold) prolong(ctx context.Context, op redlockinfo.Op, ttl time.Duration, more int) (*extension, error) {
	if err := h.lockHeld(); err != nil {
		return nil, &round.Failure{Decision: err}
	}
	l := h.lease
	l.ownership.entering += int32(more)
	e := l.extendLocked(op, ttl)
	l.mu.Unlock()
	return e, h.decided(ctx, e)
}

// decided waits for the decision of a round of h. It returns nil only if the round is won and h is still held
// afterwards.
func (h *Hold) decided(ctx context.Context, e *extension) error {
	e.RecordSkipped()
	err := h.lease.m.awaitDecision(ctx, &e.Round)
	if f, ok := round.AsFailure(err); ok && f.Cause != nil {
		return err
	}
	if ended := h.Err(); ended != nil {
		return e.Failure(ended, nil)
	}
	return err
}

// SetValue sets the value of the lease, writes the value to the masters, and waits for the decision. Later extensions
// and repairs write the value to masters that this round did not reach, even if this round fails. text must be valid:
// see scripts.NewValue.
func (h *Hold) SetValue(ctx context.Context, text string) error {
	if err := h.lockHeld(); err != nil {
		return &round.Failure{Decision: err}
	}
	l := h.lease
	l.value, _ = l.value.Next(text)
	e := l.sendLocked("set value", 0, l.value)
	l.m.Enter() // Close waits for this call
	l.mu.Unlock()
	defer l.m.Leave()
	return h.decided(ctx, e)
}

// worthAnother reports whether another round may succeed: in a joint configuration, this round may have repaired
// masters that lacked the lease.
func (e *extension) worthAnother(ctx context.Context) bool {
	if !e.View.Config.Rule.Joint() || !e.Complete(ctx) {
		return false
	}
	e.lease.mu.Lock()
	defer e.lease.mu.Unlock()
	return e.repaired != 0
}

// leaveReentries makes a re-entry leave Manager.reentries when its round e is decided. The caller may have given up
// before, while messages of the round are still queued. e is nil if nothing was sent.
func (m *Manager) leaveReentries(e *extension, began time.Time) {
	if e == nil {
		m.reentries.leave(true)
		return
	}
	leave := func() { m.reentries.leave(time.Since(began) <= e.View.Config.Slowest/4) }
	select {
	case <-e.Done():
		leave()
	default:
		go func() {
			<-e.Done() // the pool answers each call
			leave()
		}()
	}
}

// Reenter makes inner another hold of the lease of h, extends the lease, and increases its depth by one. It succeeds
// only if the validity that terms require is left. A failure leaves the holds of the lease as they were.
//
// Reenter first waits while too many re-entries are under way, but no longer than patience; if patience is 0, only ctx
// bounds this wait.
func (h *Hold) Reenter(ctx context.Context, inner *Hold, terms *Terms, patience time.Duration) error {
	l := h.lease
	err := l.m.reentries.enter(ctx, l.m.Closing, patience)
	if err != nil {
		return overloaded(err)
	}
	began := time.Now()
	e, err := h.prolong(ctx, "re-enter", terms.TTL, 1)
	l.m.leaveReentries(e, began)
	if e == nil {
		return err
	}
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.ownership
	o.entering--
	if left := l.validity.left(now); err == nil && h.ended != nil { // the lease ended meanwhile
		err = e.Failure(h.ended, nil)
	} else if err == nil && left < terms.Least {
		err = e.Failure(tooSlow(left, terms), nil)
	}
	if err != nil {
		l.extendSoonLocked(now, 0) // masters may have stored the larger depth
		return err
	}
	inner.lease, inner.token = l, o.token
	o.depth++
	o.addLocked(inner)
	o.terms.TTL = max(o.terms.TTL, terms.TTL)
	return nil
}
