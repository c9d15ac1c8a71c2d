package lease

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An extension is one round that prolongs a lease: by the Manager, by Extend or by a re-entry.
type extension struct {
	round.Round
	lease    *Lease
	ttl      time.Duration
	retry    clock.Instant // of one by the Manager: when the next is due unless this one is confirmed
	check    bool          // it prolongs nothing: only the masters' answers count
	skipped  []round.Skipped
	repaired quorum.Set // masters that were sent a repair by this round; guarded by l.mu
}

// extendLocked queues a round that prolongs the lease, to ttl if that is longer than its terms say, and writes its
// depth and its value. l.mu is held and l is live. The caller records the skipped votes after it has released the lock.
func (l *Lease) extendLocked(op string, ttl time.Duration) *extension {
	view := l.m.View()
	e := &extension{lease: l}
	e.Init(l.m.Sender, view, op, e)
	ttl = max(ttl, l.ownership.terms.leaseTTL(l.heldLocked(e.Start), l.m.Drift))
	e.ttl = ttl
	call := view.Encoder.Extend(l.keys, l.ID, ttl, l.depthLocked(), l.valueLocked())
	_, e.skipped = e.SendAll(call, ttl, round.NeedsConnection)
	return e
}

// checkLocked queues a round that writes the depth and a value, and prolongs nothing. Its answers show whether the
// masters still have the lease.
func (l *Lease) checkLocked(op string, value scripts.Value) *extension {
	e := &extension{lease: l, check: true}
	e.Init(l.m.Sender, l.m.View(), op, e)
	_, e.skipped = e.SendAll(e.View.Encoder.Extend(l.keys, l.ID, 0, l.depthLocked(), value), 0, round.NeedsConnection)
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
	v := validity{start: e.Start, ttl: e.ttl, drift: l.m.Drift.Of(e.ttl)}
	if v.left(now) > l.validity.left(now) {
		l.validity = v
	}
	if l.renewal.retry == e.retry {
		l.renewal.retry = clock.Instant{}
	}
	l.scheduleLocked(now)
}

// repairLocked gives the lease back to the masters that lack it, as far as the round proves that they may have it.
// After a freeze the validity may be over before the end of the lease is noticed; then it repairs none.
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
// succeeds only with validity left at its return.
func (h *Hold) Extend(ctx context.Context) error {
	e, err := h.prolong(ctx, "extend", 0, 0)
	if err != nil && e != nil && e.worthAnother(ctx) {
		_, err = h.prolong(ctx, "extend", 0, 0)
	}
	return err
}

// prolong sends an extension, to ttl if that is longer than before, with as many holds more, and waits for the
// decision. It returns nil only if a majority confirmed the lease and h is held at this instant. The extension is
// nil if nothing was sent.
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
	e.RecordAll(e.skipped)
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
// repairs carry it, so masters that lack it get it then, also if this round fails. text is valid: see scripts.NewValue.
func (h *Hold) SetValue(ctx context.Context, text string) error {
	if err := h.lockHeld(); err != nil {
		return &round.Failure{Decision: err}
	}
	l := h.lease
	if l.value == nil {
		l.value = &value{}
	}
	l.value.version++
	l.value.text, _ = scripts.NewValue(l.value.version, text)
	e := l.checkLocked("set value", l.value.text)
	l.m.Enter() // Close waits for it
	l.mu.Unlock()
	defer l.m.Leave()
	return h.decided(ctx, e)
}

// worthAnother reports whether the round has given the lease to masters that had not got it yet, so that another
// round may be confirmed, in a joint configuration.
func (e *extension) worthAnother(ctx context.Context) bool {
	if !e.View.Config.Rule.Joint() || !e.Complete(ctx) {
		return false
	}
	e.lease.mu.Lock()
	defer e.lease.mu.Unlock()
	return e.repaired != 0
}

// Reenter makes inner one more hold of the lease of h: it is extended, and its depth is one more. A failure leaves
// the lease as it was. It succeeds only with the wanted validity left.
func (h *Hold) Reenter(ctx context.Context, inner *Hold, terms *Terms) error {
	e, err := h.prolong(ctx, "re-enter", terms.TTL, 1)
	if e == nil {
		return err
	}
	l := h.lease
	now := l.m.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &l.ownership
	o.entering--
	if left := l.validity.left(now); err == nil && h.ended != nil { // it ended meanwhile
		err = e.Failure(h.ended, nil)
	} else if err == nil && left < terms.Least {
		err = e.Failure(tooSlow(left, terms), nil)
	}
	if err != nil {
		l.extendSoonLocked(now, 0) // the masters have got another depth
		return err
	}
	inner.lease, inner.token = l, o.token
	o.depth++
	o.holds = append(o.holds, inner)
	o.terms.TTL = max(o.terms.TTL, terms.TTL)
	return nil
}
