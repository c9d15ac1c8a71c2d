package grant

import (
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// repairable returns the masters that may be given the grant by the confirmations of r: those that lack it, once a
// majority has confirmed it. In a joint configuration a majority of one set is enough for masters that vote, so that a
// grant of the old set alone is given to the next. A master in quarantine may have forgotten a vote for a client of the
// other set alone; it is repaired only after both sets have confirmed the grant.
//
// A lock with a TTL below the pool's timeout is given to no master in quarantine: the lock could expire on the masters
// that confirmed it before an ask that the repaired master has granted and forgotten is overdue there.
func repairable(r *round.Round, ttl time.Duration) quorum.Set {
	t := r.Tally()
	confirmed, missing := t.Of(scripts.Granted), t.Of(scripts.Missing)
	switch {
	case t.Rule.Won(confirmed) && ttl >= r.View.Config.Slowest:
		return missing
	case t.Rule.WonHalf(confirmed):
		return missing & r.View.Voting
	}
	return 0
}

// repairLocked gives the grant to master i, which is repairable by r, with a fresh ballot and the token that the other
// masters have. The repair follows the session and the admission record of r: a master that has restarted or lost its
// data since r began may have forgotten a vote for another client, and rejects it. A master on which another grant
// stands refuses the repair as well. The next extension tries again. g.mu is held, and g has not ended.
func (g *Grant) repairLocked(r *round.Round, i int, ttl time.Duration, token int64) {
	k, view := g.k, r.View
	ballot, err := k.Ballots.Repair(k.Clock.Now(), max(r.Vote(i).Fence, token, g.sent.last(i)))
	if err != nil {
		return
	}
	call := view.Encoder.Repair(g.keys, g.ID, g.replaces, ttl, ballot, token,
		max(1, g.tenure.depth+g.tenure.coming))
	g.sent.touchRepair(view, i, ballot)
	m := &view.Masters[i]
	// The next extension sees whether it worked.
	_ = k.Sender.Pool.Send(i, call, pool.Stamp{Session: m.Session, Text: m.Stamp}, &repairing{g, r})
}

// A repairing receives the reply to a repair that r justified.
type repairing struct {
	g *Grant
	r *round.Round
}

// Reply implements pool.Receiver.
func (p *repairing) Reply(i int, value any, err error) {
	if err != nil {
		return
	}
	v, err := scripts.DecodeVote(value)
	switch {
	case err != nil:
	case v.Kind == scripts.Abstained:
		p.g.k.Sender.Doubt(i, v.Record)
	case v.Kind == scripts.Granted:
		p.g.mu.Lock()
		p.g.gainLocked(p.r.View, i)
		p.g.mu.Unlock()
		p.g.k.Events.Repaired(p.g, i)
	}
}
