package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// An Attempt holds the arguments of Manager.Acquire. Each round that Acquire sends is for a new lease, with a new id
// and a new token range.
type Attempt struct {
	Op     string // the call, for errors and events
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

// AcquireStats counts the rounds and votes of one call. Only the goroutine of the call uses it. A nil AcquireStats
// records nothing.
type AcquireStats struct {
	Rounds int // number of rounds sent
	// Granted is the number of masters, of N, that had granted the lease when the last round was decided or given up.
	Granted, N int
	// Place is the position at which the call first waited in a queue, from 1; 0: the call has not waited in a queue.
	Place int
}

// recordRound counts r and records its votes.
func (s *AcquireStats) recordRound(r *round.Round) {
	if s == nil {
		return
	}
	t := r.Tally()
	s.Rounds++
	s.Granted, s.N = t.Of(quorum.Granted).Len(), t.Rule.N()
	place := 0
	r.Each(func(_ int, v *round.Vote) {
		if v.Outcome == quorum.Held {
			place = max(place, v.Place+1)
		}
	})
	s.RecordPlace(place)
}

// Add adds the rounds of part, a call that was part of this call. Granted and N become those of part.
func (s *AcquireStats) Add(part *AcquireStats) {
	if s == nil || part.Rounds == 0 {
		return
	}
	s.Rounds += part.Rounds
	s.Granted, s.N = part.Granted, part.N
	s.RecordPlace(part.Place)
}

// RecordPlace records a position in a queue, unless a position is recorded already.
func (s *AcquireStats) RecordPlace(place int) {
	if s != nil && s.Place == 0 {
		s.Place = place
	}
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
	l := m.newLease(a.Name, a.Keys, a.Ticket)
	l.recorder.waiter = a.Waiter
	l.recorder.active.Store(true)
	r := m.Sender.New(view, a.Op, &l.recorder)
	r.Key, r.LeaseID, r.Waiter = a.Keys.Lock(), l.ID, a.Ticket != nil
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
	if took := now.Sub(r.Start); took > r.View.Config.Slowest {
		// Another client may have repaired a master that forgot its vote for l. Such a repair relies on this failure.
		return r.Failure(fmt.Errorf("%w: the replies took %v, longer than the timeout of %v", round.ErrTooSlow,
			took.Round(time.Millisecond), r.View.Config.Slowest), nil)
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

// readClocks refines the estimates of the masters' clocks with the times in the refusals of a round.
func (m *Manager) readClocks(r *round.Round, now clock.Instant) {
	within := now.Sub(r.Start) / 2
	r.Each(func(i int, v *round.Vote) {
		if v.Time > 0 {
			m.Ballots.Refine(i, v.Time, r.Start.Add(within), within)
		}
	})
}

// recordRefusals records what the next attempt needs from the refusals: fences and clocks.
func (m *Manager) recordRefusals(r *round.Round, name string) {
	now := m.Clock.Now()
	m.readClocks(r, now)
	t := r.Tally()
	floor := int64(0)
	for _, set := range t.Rule.Sets() {
		var fences []int64
		r.Each(func(i int, v *round.Vote) {
			if v.Time > 0 && set.Has(i) && !t.Unable().Has(i) { // other votes have no fence or cannot be grants
				fences = append(fences, v.Fence)
			}
		})
		ill := t.Unable() & set &^ r.View.Connecting // a master that is still connecting may work
		floor = max(floor, ballot.Floor(fences, set.Len(), ill.Len()))
	}
	m.Ballots.Saw(now, name, floor)
}

// A voteRecorder records the votes of a round that may create the lease.
type voteRecorder struct {
	lease  *Lease
	waiter Waiter      // nil if there is none
	active atomic.Bool // whether the round is counted in Manager.rounds
	late   quorum.Set  // masters that have not voted, and whose grants must be rolled back; guarded by Lease.mu
}

// OnVote implements round.VoteObserver.
func (a *voteRecorder) OnVote(r *round.Round, i int, v *round.Vote, decides, last bool) {
	if (decides || last) && a.active.Swap(false) { // not if the caller gives up: messages may be queued
		a.lease.m.rounds.leave(v.After <= r.View.Config.Slowest/4)
	}
	if last && a.waiter != nil {
		defer a.waiter.Voted()
	}
	l := a.lease
	l.mu.Lock()
	l.recordVoteLocked(r, i, v.Outcome)
	end := l.endLocked(l.goneLocked())
	won := l.config != nil // a round that was won too late, or after its call had ended, is rolled back
	late := a.late.Has(i)
	a.late &^= quorum.One(i)
	complete := late && a.late == 0
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
		place := scripts.Ending{}
		if l.ticket != nil && a.waiter.Waits() {
			place = l.keepingPlace()
		}
		l.sendRelease("roll back", quorum.One(i), place)
	}
	if complete {
		l.m.Leave()
	}
}

// mayHold reports whether the master of a vote has granted the acquire, or may still do so.
func mayHold(v *round.Vote) bool {
	//mutant:unknown-outcomes 2= false
	return v.Outcome == quorum.Granted || v.Unsure()
}

// undo rolls back the lease of a lost round on each master that has granted the lease or may still grant it. It does
// not wait. If refusals alone decided the round, the masters that have not answered yet are unlikely to grant the
// acquire. Each of them is sent a roll-back only after its answer, and only if the answer is not a refusal: see OnVote.
func (l *Lease) undo(r *round.Round) {
	var set, late quorum.Set
	l.mu.Lock()
	if t := r.Tally(); t.Of(quorum.Granted) == 0 && t.Rule.Lost(t.Of(quorum.Held)) {
		late = r.Asked() &^ t.In()
	}
	if l.recorder.late = late; late != 0 {
		l.m.Enter()
	}
	l.mu.Unlock()
	r.Each(func(i int, v *round.Vote) {
		if mayHold(v) {
			set |= quorum.One(i)
		}
	})
	l.rollBack(set &^ late)
}

// rollBack ends a lease that is not live, and releases the lease on those masters of set that may have it.
func (l *Lease) rollBack(set quorum.Set) {
	l.giveUp()
	if set &= l.sent.to; set != 0 {
		l.sendRelease("roll back", set, l.keepingPlace())
	}
}

// keepingPlace returns the Ending for a roll-back after which the waiter keeps its place in the queue.
func (l *Lease) keepingPlace() scripts.Ending {
	if l.ticket == nil {
		return scripts.Ending{}
	}
	return scripts.Ending{Waiter: l.ticket, Back: true, AskBallot: l.sent.ballot}
}

// newLease makes a lease with a new id.
func (m *Manager) newLease(name string, keys *scripts.Keys, t *scripts.Ticket) *Lease {
	l := &Lease{m: m, Name: name, keys: keys, ticket: t}
	//mutant:new-ids -> l.identify(uint64(len(name)))
	l.identify(m.nextNumber())
	l.recorder.lease = l
	return l
}

// nextNumber returns the number of the next lease. A running process can be copied, for example if one snapshot of its
// machine is started twice. The copies have the same owner and counter, so a random part distinguishes their leases.
// The number has at most 16 digits, so that Redis keeps a lock with a label of up to ten bytes in its compact form
// (hash-max-listpack-value, 64 bytes).
func (m *Manager) nextNumber() uint64 {
	//mutant:copied-client = uint64(jitter.Unique())*0 + m.number.Add(1)
	return uint64(jitter.Unique())<<20 + m.number.Add(1)
}

// leaveQueues removes the waiter of a call that has won from the queues of masters that have refused it, for any of the
// reasons for which a master queues a waiter.
func (l *Lease) leaveQueues(r *round.Round, refused quorum.Set) {
	if l.ticket != nil && refused != 0 {
		l.m.Post(refused, r.View.Encoder.Release(l.keys, scripts.Ending{Waiter: l.ticket}))
	}
}

// notifyLosers is called with each vote. If the round was won, it notifies the owners of the leases that refusing
// masters have reported: a majority of the masters has lost each of those leases.
func (l *Lease) notifyLosers(r *round.Round, i int, v *round.Vote, decides bool) {
	set := quorum.Set(0)
	switch {
	case decides:
		t := r.Tally()
		set = t.Of(quorum.Held)
	case v.Outcome == quorum.Held:
		set = quorum.One(i)
	}
	if set == 0 || r.Verdict() != quorum.Won {
		return
	}
	for i := range set.All() {
		if v := r.Vote(i); v.Holder != "" {
			l.m.Post(quorum.One(i), l.m.Prefix.Notify(l.keys, v.Holder, false))
		}
	}
}
