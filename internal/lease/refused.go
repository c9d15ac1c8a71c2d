package lease

import (
	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
)

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
	if l.late = late; late != 0 {
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
