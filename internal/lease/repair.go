package lease

import (
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
)

// repairable returns the masters that lack the lease and may be repaired because a majority has confirmed the lease in
// r. In a joint configuration, a majority of one set is enough to repair masters that vote, so that a lease of the old
// set is also given to the next set. A master in quarantine may have forgotten a vote for a client that uses only the
// other set. Such a master is repaired only after a majority of each set has confirmed the lease. See "Exclusion" in
// docs/protocol.md.
func repairable(r *round.Round) quorum.Set {
	t := r.Tally()
	confirmed, missing := t.Of(quorum.Granted), t.Of(quorum.Missing)
	switch {
	case t.Rule.Won(confirmed):
		return missing
	case t.Rule.WonHalf(confirmed):
		//mutant:one-set-repairs-voters = missing
		return missing & r.View.Voting
	}
	//mutant:repair-majority = missing
	return 0
}

// repairLocked sends the lease to master i, which must be repairable because of r, with a fresh ballot and the token
// that the other masters have. The repair carries the session and the admission record of r: a master that has
// restarted or lost data since r began may have forgotten a vote for another client, but then has another session or
// record, and rejects the repair. A master that has another lease refuses the repair, and the next extension tries
// again. The caller must hold l.mu, and l must not have ended.
func (l *Lease) repairLocked(r *round.Round, i int, ttl time.Duration, token int64) {
	//mutant:repair-session = l.m, l.m.View()
	m, view := l.m, r.View
	ballot, err := m.Ballots.Repair(m.Clock.Now(), max(r.Vote(i).Fence, token, l.sent.last(i)))
	if err != nil {
		return
	}
	value := l.value
	term := m.Ballots.Term(m.Clock.Now(), ttl)
	call := view.Encoder.Repair(l.keys, l.ID, l.replaces, term, ballot, token, l.depthLocked(), value)
	l.sent.touchRepair(view, i, ballot)
	master := &view.Masters[i]
	// The next extension shows whether the repair succeeded.
	_ = m.Sender.Pool.Send(i, call, transport.Condition{Session: master.Session, Stamp: master.Stamp}, &repairing{l, r})
}

// A repairing receives the reply to a repair that r justified.
type repairing struct {
	lease *Lease
	r     *round.Round
}

// Reply implements transport.Receiver.
func (p *repairing) Reply(i int, value any, err error) {
	if err != nil {
		return
	}
	v, err := scripts.DecodeVote(value)
	switch {
	case err != nil:
	case v.Outcome == quorum.Abstained:
		p.lease.m.Sender.Doubt(i, v.Record)
	case v.Outcome == quorum.Granted:
		p.lease.mu.Lock()
		p.lease.markHeldLocked(p.r.View, i)
		p.lease.mu.Unlock()
		p.lease.m.Events.Repaired(p.lease, i)
	}
}
