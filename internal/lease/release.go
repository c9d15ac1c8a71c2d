package lease

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A releasing is a release or a roll-back under way. If it cannot be delivered to a master, it becomes pending in the
// pool.
type releasing struct {
	round.Round
	lease *Lease
	keep  time.Duration // time for which the masters still keep the lease; 0: the lease ends immediately
}

// release sends the release of l to every master that may have it, and returns the round without waiting. l must have
// ended, or must never have been live.
func (l *Lease) release() *round.Round {
	return l.sendRelease("unlock", l.sent.to, scripts.Ending{Waiter: l.ticket})
}

// sendRelease sends a release to the masters of set. end says whether the waiter leaves the queues.
func (l *Lease) sendRelease(op redlockinfo.Op, set quorum.Set, end scripts.Ending) *round.Round {
	m := l.m
	view := m.View()
	r := &releasing{lease: l, keep: l.remainingMinHold()}
	r.Init(m.Sender, view, op, l.keys.Lock(), r)
	rule := l.endRule(view.Config)
	r.Judge(rule, set)
	m.Enter()
	end.Leases, end.Keep = l.ids(), m.Ballots.Term(r.Start, r.keep)
	plain := view.Encoder.Release(l.keys, end)
	for i := range r.Asked().All() {
		if !set.Has(i) {
			r.Skip(i, round.Vote{Vote: scripts.Vote{Outcome: quorum.Missing}})
			continue
		}
		err := fault.ErrSession
		if s := l.sent.session(i); s != 0 {
			// The acquire was sent over the same connection, and arrives first: the release needs no ballot.
			err = m.Sender.Pool.Send(i, plain, transport.Condition{Session: s}, r)
		}
		if errors.Is(err, fault.ErrSession) {
			end.Ballot = l.sent.last(i)
			err = m.Sender.Pool.Send(i, view.Encoder.Release(l.keys, end), transport.Condition{}, r)
		}
		if err != nil {
			r.Skip(i, round.Vote{Err: err})
		}
	}
	r.RecordSkipped()
	return &r.Round
}

// Removes reports whether the release of l removes this waiter from the queue of the master.
func (l *Lease) Removes(waiter string, master int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ticket.Is(waiter) && l.sent.to.Has(master)
}

// remainingMinHold returns how long the masters must still keep the name of a lease that ends now, because of its
// minimum hold.
func (l *Lease) remainingMinHold() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ownership.terms.MinHold == 0 {
		return 0
	}
	return l.ownership.terms.remainingMinHold(l.heldLocked(l.m.Clock.Now()))
}

// endRule returns the rule that decides whether the end of the lease is confirmed: the rule of the configuration in
// which the lease was last won or confirmed, or the current rule if its only set is one of the sets of that
// configuration.
func (l *Lease) endRule(now *quorum.Config) quorum.Rule {
	if l.config == nil || now.Within(l.config) {
		return now.Rule
	}
	return l.config.Rule
}

// OnVote implements round.VoteObserver. A release that was not delivered becomes pending, without the waiter: a late
// release could put back a waiter that has left, or remove a waiter that has tried again. If a minimum hold keeps the
// name, only the ballot becomes pending, so that the master refuses a late acquire. The master then keeps the name
// until the TTL of the lease expires.
func (r *releasing) OnVote(_ *round.Round, i int, v *round.Vote, _, last bool) {
	l := r.lease
	if v.Outcome == quorum.Failed && (!transport.Answered(v.Err) || transport.Transient(v.Err)) {
		keys, enc, ids := l.keys, r.View.Encoder, l.ids()
		if r.keep > 0 {
			ids = nil
		}
		l.m.Sender.Pool.AddPending(i, transport.PendingRelease{
			Name: keys.Lock(), Leases: ids, Ballot: l.sent.last(i),
			CallFunc: func(leases []string, ballot int64) *frame.Call {
				return enc.Release(keys, scripts.Ending{Leases: leases, Ballot: ballot})
			},
		})
	}
	if last {
		l.m.Leave()
	}
}

// grace is the time for which a caller whose context has ended still waits for a quorum to confirm a release.
const grace = 10 * time.Millisecond

var errUnconfirmed = errors.New("the masters did not confirm the release while the lock was valid")

// confirmed waits until a quorum has confirmed a release, but no longer than left, in which the lease ends, or for
// grace. When ctx ends, confirmed waits for at most grace more, so that a release with a cancelled context is usually
// confirmed. The error is a *round.Failure.
func (m *Manager) confirmed(ctx context.Context, r *round.Round, left time.Duration) error {
	left = max(left, grace) // the timeout of the pool does not include the time in a queue
	over, reused := m.stopped.Get().(*time.Timer)
	if reused {
		over.Reset(left)
	} else {
		over = time.NewTimer(left)
	}
	defer func() {
		over.Stop()
		m.stopped.Put(over)
	}()
	select {
	case <-r.Done():
	case <-over.C:
		return r.Failure(round.ErrNoQuorum, errUnconfirmed)
	case <-ctx.Done():
		select {
		case <-r.Done():
		case <-time.After(grace):
			return r.Failure(nil, fault.ContextError(ctx))
		}
	}
	t := r.Tally()
	switch {
	case r.Verdict() == quorum.Won:
		return nil
	case t.Rule.Lost(t.Of(quorum.Missing)):
		return r.Failure(ErrLost, nil)
	}
	return r.Failure(round.ErrNoQuorum, nil)
}

// Unlock ends h. The last Unlock of an ownership hands the lease off to a call of this Locker that waits for the name,
// makes the lease idle (see Terms.Linger), or releases it.
//
// Unlock sends the release even if ctx has ended. It then waits until a quorum has confirmed the release, ctx ends or
// the validity expires; with Terms.Async it does not wait. An error is a *round.Failure. It wraps ErrReleased in a
// second call. If h had already ended, it wraps the error of h; if the lease was lost, and its end sent no release, the
// last Unlock sends it. If the release was not confirmed, it wraps ErrNoQuorum, ErrLost or the error of ctx. In each
// case h is no longer held.
func (h *Hold) Unlock(ctx context.Context) error {
	l := h.lease
	now := l.m.Clock.Now()
	l.mu.Lock()
	if h.unlocked {
		l.mu.Unlock()
		return &round.Failure{Decision: ErrReleased}
	}
	h.unlocked = true
	end := l.endLocked(l.expiredLocked(now))
	l.ownership.depth--
	if err := h.ended; err != nil {
		last := l.ownership.depth == 0
		l.mu.Unlock()
		end.finish()
		if last && errors.Is(err, ErrLost) && !errors.Is(err, ErrMaxHold) { // released at its max hold
			l.release()
		}
		return &round.Failure{Decision: err}
	}
	left := l.leftLocked(now)
	if l.ownership.depth > 0 {
		return h.unlockInner(ctx, left)
	}
	h.lasted = now.Sub(l.ownership.began)
	if successor := h.successorLocked(now); successor != nil {
		h.handOff(successor, now)
		return nil
	}
	if l.lingerLocked(now) {
		l.mu.Unlock()
		h.endContexts(ErrReleased)
		l.m.Events.Released(h, nil)
		if !l.m.LocalQueue.KeepIdle(l) { // only now, so that the last holder's contexts end before the next hold begins
			l.EndIdle()
		}
		return nil
	}
	end, async := l.endLocked(released), l.ownership.terms.Async
	l.mu.Unlock()
	r := end.finish()
	if async {
		l.m.Events.Released(h, nil)
		return nil
	}
	err := l.m.confirmed(ctx, r, left)
	l.m.Events.Released(h, err)
	return err
}

// unlockInner removes h from a lease that has other holds, and sends the new depth to the masters. The caller must
// hold the mutex of the lease; unlockInner unlocks the mutex.
func (h *Hold) unlockInner(ctx context.Context, left time.Duration) error {
	l := h.lease
	l.ownership.removeLocked(h)
	h.endLocked(ErrReleased)
	view := l.m.View()
	r := l.m.Sender.New(view, "unlock", l.keys.Lock(), nil)
	r.Judge(l.endRule(view.Config), view.Config.Rule.All())
	r.SendAll(view.Encoder.Extend(l.keys, l.ID, scripts.Term{}, l.depthLocked(), ""), 0, round.NeedsConnection)
	async := l.ownership.terms.Async
	l.mu.Unlock()
	h.endContexts(ErrReleased)
	r.RecordSkipped()
	if async {
		return nil
	}
	return l.m.confirmed(ctx, r, left)
}

// A Successor is the waiting call to which the last Unlock hands the lease off.
type Successor struct {
	First *Hold // becomes the first hold of the new ownership
	Terms *Terms
	// OnHandoff is called after the successor has got the lease, with no lock held.
	OnHandoff func()
}

// successorLocked returns the call that gets the lease, or nil if the lease cannot be handed off: see "Handoffs" in the
// package documentation.
func (h *Hold) successorLocked(now clock.Instant) *Successor {
	l := h.lease
	o := &l.ownership
	switch {
	case l.inbox.requested, l.value != "":
		return nil
	case o.terms.Handoffs == 0, l.tokens.handoffs == 0, l.tokens.next > l.tokens.last, o.entering > 0,
		now.Sub(l.tokens.won) >= o.terms.HandoffTime:
		return nil
	}
	return l.m.LocalQueue.Successor(l.Name, l.validity.left(now), l.validity.ttl)
}

// handOff ends the ownership, of which h is the last hold, and begins that of the successor, with the next token. On
// the masters the lease stays the same. The caller must hold the lease's lock; handOff releases it.
func (h *Hold) handOff(successor *Successor, now clock.Instant) {
	l := h.lease
	l.ownership.endHoldsLocked(ErrReleased)
	successor.First.beginLocked(l, successor.Terms, now)
	l.tokens.handoffs--
	l.scheduleLocked(now)
	l.mu.Unlock()
	h.endContexts(ErrReleased)
	l.m.Events.Released(h, nil)
	l.m.Events.Acquired(successor.First)
	successor.OnHandoff()
}

// Export ends the lease here without releasing it. It returns what another process needs to import the lease: the id,
// and the largest ballot that was sent. The import uses larger ballots, so that a late repair is refused. A repair
// ballot that is ahead of the masters' time is ignored: the fence of a single master, which a client may have set too
// high, must not affect the other masters.
func (h *Hold) Export() (id string, ballot int64, err error) {
	return h.endWithoutRelease(exported)
}

// Downgrade ends the lease like Export, but with ErrReleased, because another lease of this Manager replaces it.
func (h *Hold) Downgrade() (id string, ballot int64, err error) {
	return h.endWithoutRelease(downgraded)
}

// endWithoutRelease ends the lease for a reason that sends no release.
func (h *Hold) endWithoutRelease(why *reason) (id string, ballot int64, err error) {
	if err := h.lockHeld(); err != nil {
		return "", 0, err
	}
	l := h.lease
	if l.ownership.depth+int(l.ownership.entering) > 1 {
		l.mu.Unlock()
		return "", 0, ErrNested
	}
	ballot = l.sent.ballot
	median := l.m.Ballots.Median(l.m.Clock.Now())
	for _, b := range l.sent.repair {
		if b <= median {
			ballot = max(ballot, b)
		}
	}
	end := l.endLocked(why)
	l.mu.Unlock()
	end.finish()
	return l.ID, ballot, nil
}
