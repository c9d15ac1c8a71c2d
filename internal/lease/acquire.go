package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An Attempt holds the arguments of Manager.Acquire. Each round that Acquire sends is for a new lease, with a new id
// and a new token range.
type Attempt struct {
	Op     redlockinfo.Op // for errors and events
	Name   string
	Keys   *scripts.Keys
	Terms  *Terms
	Ticket *scripts.Ticket // nil: the caller does not wait in the masters' queues
	Waiter Waiter          // nil: the caller has not waited yet, and has no ticket
	Stats  *AcquireStats   // nil: not recorded
	// Patience bounds the wait of the call while too many rounds are under way; 0: only the context bounds this wait.
	Patience time.Duration
}

// A Waiter is the waiter of a call. Its methods do not block.
type Waiter interface {
	Join()       // the ticket is about to be sent, after the wait that Patience bounds
	Waits() bool // reports whether the waiter may be in the masters' queues
	Voted()      // the last vote of a round has arrived
}

// roundsPerAttempt is the maximum number of rounds that Acquire sends for one attempt.
const roundsPerAttempt = 3

// Acquire makes one attempt: it sends an acquire for a new lease to the masters of the current view, and waits until
// the round is decided or ctx ends. If only the ballot was refused, Acquire immediately sends another round, for
// another lease with another token range. On success the lease is won, but not yet live: see Hold.Start. On failure
// Acquire has begun to roll back every lease that masters may have granted, and does not wait for the roll-backs; the
// waiter of the ticket keeps its place in the queues. The error is a *round.Failure, or an error of package ballot. The
// returned round is the last one; it is nil if the last try sent nothing.
func (m *Manager) Acquire(ctx context.Context, a *Attempt) (*Lease, *round.Round, error) {
	for try := 1; ; try++ {
		l, r, err := m.send(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		err = l.awaitQuorum(ctx, r, a.Terms)
		a.Stats.recordRound(r)
		m.Events.Attempted(l, r, l.tokens.next, err)
		if err == nil {
			return l, r, nil
		}
		l.undo(r)
		if t := r.Tally(); try == roundsPerAttempt || !round.Waitable(err) || !t.BallotOnly() {
			return nil, r, err
		}
	}
}

// send waits until another round may begin, and sends an acquire for a new lease. If it fails, it has sent nothing.
func (m *Manager) send(ctx context.Context, a *Attempt) (*Lease, *round.Round, error) {
	if err := m.rounds.enter(ctx, m.Closing, a.Patience); err != nil {
		return nil, nil, m.reportNotSent(a, overloaded(err))
	}
	view := m.View() // after the wait
	//mutant:configured-quorum = view.Voting == 0
	if !view.Config.Rule.Won(view.Voting) {
		time.AfterFunc(failurePace, func() { m.rounds.leave(false) })
		return nil, nil, m.reportNotSent(a, m.Sender.NoQuorum(view, nil))
	}
	l := &Lease{m: m, Name: a.Name, keys: a.Keys, ticket: a.Ticket, waiter: a.Waiter}
	//mutant:new-ids -> l.identify(uint64(len(a.Name)))
	l.identify(m.nextNumber())
	l.active.Store(true)
	r := m.Sender.New(view, a.Op, a.Keys.Lock(), l)
	r.LeaseID, r.Ticketed = l.ID, a.Ticket != nil
	first, last, err := m.Ballots.Propose(r.Start, a.Name, 0, a.Terms.spareTokens())
	if err != nil {
		m.rounds.leave(true)
		l.giveUp()
		return nil, nil, err
	}
	l.tokens = tokenRange{next: first, last: last, handoffs: a.Terms.Handoffs}
	l.announceLinger(a.Terms)
	if a.Ticket != nil {
		a.Waiter.Join()
	}
	ttl := a.Terms.leaseTTL(0)
	term := m.Ballots.Term(r.Start, ttl).Later(a.Terms.fromGrant(view.Config.Slowest))
	call := view.Encoder.Acquire(a.Keys, l.ID, term, first, last, l.depthLocked(), a.Ticket)
	sent := r.SendAll(call, ttl, round.NeedsVote)
	l.sent.touchAll(view, sent, last)
	r.RecordSkipped()
	return l, r, nil
}

// nextNumber returns the number of the next lease. A running process can be copied, for example if one snapshot of its
// machine is started twice. The copies have the same owner and counter, so a random part distinguishes their leases.
// The number has at most 16 digits, so that Redis keeps a lock with a label of up to ten bytes in its compact form
// (hash-max-listpack-value, 64 bytes).
func (m *Manager) nextNumber() uint64 {
	//mutant:copied-client = uint64(jitter.Unique())*0 + m.number.Add(1)
	return uint64(jitter.Unique())<<20 + m.number.Add(1)
}

// awaitDecision waits for the decision of a round, until ctx ends or the Manager closes. It returns nil if the round
// was won.
func (m *Manager) awaitDecision(ctx context.Context, r *round.Round) error {
	select {
	case <-r.Done():
	case <-ctx.Done():
		return r.Failure(nil, fault.ContextError(ctx))
	case <-m.Closing:
		return r.Failure(nil, ErrClosed)
	}
	if r.Verdict() == quorum.Won {
		return nil
	}
	if r.MayBeKind() {
		late, cancel := context.WithTimeout(ctx, lateKinds)
		defer cancel()
		r.Complete(late)
	}
	return r.Failure(r.Decision(), nil)
}

// lateKinds is how long a call whose round is lost waits for missing votes that may show that the name is another kind
// of lock. Without them, the call would wait for a quorum that it can never get.
const lateKinds = 50 * time.Millisecond

// awaitQuorum waits for the decision of an acquire round. It returns nil if a quorum has granted the lease in time.
func (l *Lease) awaitQuorum(ctx context.Context, r *round.Round, terms *Terms) error {
	if err := l.m.awaitDecision(ctx, r); err != nil {
		l.m.recordRefusals(r, l.Name)
		return err
	}
	now := l.m.Clock.Now()
	v := validity{start: r.Start, ttl: terms.leaseTTL(0)}
	//mutant:recheck = false
	if left := v.left(now); left < terms.Least {
		return r.Failure(tooSlow(left, terms), nil)
	}
	// Another client may have repaired a master that forgot its vote for l. Such a repair relies on the failure of an
	// attempt that takes longer than the window; a minimum hold, on that of one that takes longer than the timeout.
	if took, most := now.Sub(r.Start), min(r.View.Config.Slowest, skew.Window); took > most {
		return r.Failure(fmt.Errorf("%w: the replies took %v, longer than the limit of %v for an attempt",
			round.ErrTooSlow, took.Round(time.Millisecond), most), nil)
	}
	l.mu.Lock()
	tally := r.Tally()
	v.by = tally.Of(quorum.Granted)
	l.validity, l.config, l.tokens.won = v, r.View.Config, now
	l.mu.Unlock()
	l.leaveQueues(r, tally.Of(quorum.Held)|tally.Of(quorum.Stale)|tally.Of(quorum.Ahead))
	return nil
}

func tooSlow(left time.Duration, terms *Terms) error {
	return fmt.Errorf("%w: %v of validity left of %v, need at least %v",
		round.ErrTooSlow, left.Round(time.Microsecond), terms.TTL, terms.Least)
}

// OnVote implements round.VoteObserver, for the rounds that may create the lease.
func (l *Lease) OnVote(r *round.Round, i int, v *round.Vote, decides, last bool) {
	if (decides || last) && l.active.Swap(false) { // not if the caller gives up: messages may be queued
		l.m.rounds.leave(v.After <= r.View.Config.Slowest/4)
	}
	if last && l.waiter != nil {
		defer l.waiter.Voted()
	}
	l.mu.Lock()
	l.recordVoteLocked(r, i, v.Outcome)
	end := l.endLocked(l.goneLocked())
	won := l.config != nil // a round that was won too late, or after its call had ended, is rolled back
	late := l.late.Has(i)
	l.late &^= quorum.One(i)
	complete := late && l.late == 0
	l.mu.Unlock()
	end.finish()
	l.notifyLosers(r, i, v, decides)
	switch v.Outcome {
	case quorum.Held, quorum.Stale, quorum.Ahead:
		if won {
			l.leaveQueues(r, quorum.One(i))
		}
	}
	//mutant:late-grants = false
	if late && mayHold(v) {
		ending := scripts.Ending{}
		if l.ticket != nil && l.waiter.Waits() {
			ending = l.keepingPlace()
		}
		l.sendRelease("roll back", quorum.One(i), ending)
	}
	if complete {
		l.m.Leave()
	}
}

// Start makes h the first hold of a lease that was won, and makes the lease live. If the Manager has closed, or too
// many masters have lost the lease since it was won, Start releases the lease and returns a *round.Failure.
func (h *Hold) Start(l *Lease, terms *Terms) error {
	now := l.m.Clock.Now()
	l.mu.Lock()
	h.beginLocked(l, terms, now)
	l.listenInTimeLocked(now)
	open := l.m.timers.Add(&l.renewal.entry, l, l.nextRunLocked(now))
	view := l.m.View() // read after Add, because Manager.ViewChanged handles later changes
	l.on.lose(l.on.has &^ same(l.sent.view, view))
	lacks := newlyReachable(l.sent.view, view) &^ l.on.has
	why := l.goneLocked()
	if !open {
		why = closed
	}
	if why != nil {
		end := l.endLocked(&reason{err: why.err, sends: true}) // no event reports this end
		l.ownership.terms.MinHold = 0                          // the caller does not get the lease
		l.mu.Unlock()
		end.finish()
		return &round.Failure{Decision: why.err}
	}
	l.mu.Unlock()
	l.m.Events.Acquired(h)
	if lacks != 0 {
		l.ExtendSoon(0)
	}
	return nil
}

// beginLocked makes l live with a new ownership, of which h is the first hold.
func (h *Hold) beginLocked(l *Lease, terms *Terms, now clock.Instant) {
	h.lease, h.token = l, l.tokens.next
	//mutant:linger-token drop
	l.tokens.next++
	l.state = live
	l.ownership = ownership{token: h.token, depth: 1, terms: *terms, began: now}
	l.ownership.single[0] = h
	l.ownership.holds = l.ownership.single[:]
}
