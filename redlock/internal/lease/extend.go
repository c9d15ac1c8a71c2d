package lease

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An extension is one round that prolongs a lease. The Manager, Extend and re-entries send extensions.
type extension struct {
	round.Round
	lease    *Lease
	ttl      time.Duration
	check    bool       // it prolongs nothing, and only shows whether the masters have the lease
	repaired quorum.Set // masters that were sent a repair by this round; guarded by l.mu
}

// extendLocked queues a round that prolongs the lease, to ttl if that is longer than the TTL of its terms, and writes
// its depth and its value. See sendLocked.
func (l *Lease) extendLocked(op string, ttl time.Duration) *extension {
	ttl = max(ttl, l.ownership.terms.leaseTTL(l.heldLocked(l.m.Clock.Now())))
	return l.sendLocked(op, ttl, l.value.text)
}

// sendLocked queues a round that writes the depth and a value. If ttl is 0, the round does not prolong the lease, and
// its answers show whether the masters still have the lease. The caller must hold l.mu, and l must be live. When the
// caller has released l.mu, it must call RecordSkipped.
func (l *Lease) sendLocked(op string, ttl time.Duration, value scripts.Value) *extension {
	e := &extension{lease: l, ttl: ttl, check: ttl == 0}
	e.Init(l.m.Sender, l.m.View(), op, e)
	e.SendAll(e.View.Encoder.Extend(l.keys, l.ID, ttl, l.depthLocked(), value), ttl, round.NeedsConnection)
	return e
}

// OnVote implements round.VoteObserver.
func (e *extension) OnVote(r *round.Round, i int, v *round.Vote, decides, _ bool) {
	l := e.lease
	won := r.Verdict() == quorum.Won
	l.mu.Lock()
	l.recordVoteLocked(r, i, v.Outcome)
	if (l.state == live || l.state == idle) && decides && won && !e.check {
		e.confirmedLocked(l.m.Clock.Now())
	}
	end := l.endLocked(l.goneLocked())
	//mutant:stop-before-release = true
	if l.state == live && !e.check {
		e.repairLocked()
	}
	l.mu.Unlock()
	end.finish()
	if !decides || end.why != nil || e.check {
		return
	}
	var err error
	if !won {
		l.m.readClocks(r, l.m.Clock.Now())
		err = r.Failure(round.ErrNoQuorum, nil)
	}
	l.m.Events.Extended(l, err)
}

// confirmedLocked records that a majority has confirmed the lease.
func (e *extension) confirmedLocked(now clock.Instant) {
	l := e.lease
	l.config = e.View.Config
	v := validity{start: e.Start, ttl: e.ttl}
	if v.left(now) > l.validity.left(now) {
		l.validity = v
	}
	l.renewal.retry = 0
	l.scheduleLocked(now)
}

// repairLocked sends a repair to each master that lacks the lease and may get it because of this round: see
// repairable. It sends none if the validity has expired, which the Manager may notice late after a freeze.
func (e *extension) repairLocked() {
	missing := repairable(&e.Round, e.ttl) &^ e.repaired
	if missing == 0 || e.lease.validity.left(e.lease.m.Clock.Now()) <= 0 {
		return
	}
	for i := range missing.All() {
		e.repaired |= quorum.One(i)
		e.lease.repairLocked(&e.Round, i, e.ttl, e.lease.ownership.token)
	}
}

// Extend prolongs the lease by its TTL from now and waits for the decision. On failure nothing has changed. It
// succeeds only if validity is left when it returns.
func (h *Hold) Extend(ctx context.Context) error {
	e, err := h.prolong(ctx, "extend", 0, 0)
	if err != nil && e != nil && e.worthAnother(ctx) {
		_, err = h.prolong(ctx, "extend", 0, 0)
	}
	return err
}

// prolong sends an extension and waits for the decision. ttl is the new TTL if it is longer than that of the lease;
// more is the number of holds that are being added. It returns nil only if a majority confirmed the lease and h is
// held at this instant. The extension is nil if nothing was sent.
func (h *Hold) prolong(ctx context.Context, op string, ttl time.Duration, more int) (*extension, error) {
	if err := h.lockHeld(); err != nil {
		return nil, &round.Failure{Decision: err}
	}
	l := h.lease
	l.ownership.entering += int32(more)
	e := l.extendLocked(op, ttl)
	l.mu.Unlock()
	return e, h.decided(ctx, e)
}

// decided waits for the decision of a round of h. It returns nil only if the round is won and h is held at this
// instant.
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

// SetValue sets the value of the lease, writes it to the masters and waits for the decision. Later extensions and
// repairs carry the value, so masters that this round does not reach get it then, even if the round fails. text must
// be valid: see scripts.NewValue.
func (h *Hold) SetValue(ctx context.Context, text string) error {
	if err := h.lockHeld(); err != nil {
		return &round.Failure{Decision: err}
	}
	l := h.lease
	l.value.version++
	l.value.text, _ = scripts.NewValue(l.value.version, text)
	e := l.sendLocked("set value", 0, l.value.text)
	l.m.Enter() // Close waits for it
	l.mu.Unlock()
	defer l.m.Leave()
	return h.decided(ctx, e)
}

// worthAnother reports whether another round may be confirmed, because this round, in a joint configuration, has
// repaired masters that lacked the lease.
func (e *extension) worthAnother(ctx context.Context) bool {
	if !e.View.Config.Rule.Joint() || !e.Complete(ctx) {
		return false
	}
	e.lease.mu.Lock()
	defer e.lease.mu.Unlock()
	return e.repaired != 0
}

// leaveReentries ends the turn of a re-entry when its round is decided: if its caller has given up, the messages are
// still queued. e is nil if nothing was sent.
func (m *services) leaveReentries(e *extension, began time.Time) {
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
// only if the validity that terms require is left. A failure leaves the lease as it was.
//
// While too many re-entries are under way, Reenter first waits: for patience, or until ctx ends if patience is 0.
func (h *Hold) Reenter(ctx context.Context, inner *Hold, terms *Terms, patience time.Duration) error {
	l := h.lease
	//mutant:bounded-reentries = error(nil)
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
