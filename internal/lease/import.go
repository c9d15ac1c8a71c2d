package lease

import (
	"context"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// NewImport makes a lease that is to replace the lease with the id previous.
func (m *Manager) NewImport(name string, keys *scripts.Keys, previous string) *Lease {
	l := &Lease{m: m, Name: name, keys: keys, replaces: previous}
	l.identify(m.nextNumber())
	return l
}

// Inherits records that the lease that l replaces belonged to this Manager, and that ballot is the largest ballot that
// was sent for that lease. The release of l is then sent to all masters, and also releases the replaced lease.
func (l *Lease) Inherits(ballot int64) {
	all := l.m.View().Config.Rule.All()
	l.sent.to, l.sent.mixed, l.sent.ballot = all, all, ballot
}

// Import sends one round that replaces an exported lease by l, on the voting masters that still have the exported
// lease. As in an acquire, a quorum decides which client gets the name. lastBallot is the largest ballot that the
// exporter has sent. After a failure the caller calls Import again for the same l, so that masters on which an earlier
// round has replaced the lease still count, or gives up and calls Abandon.
func (l *Lease) Import(ctx context.Context, op redlockinfo.Op, terms *Terms, lastBallot int64, s *AcquireStats) error {
	m := l.m
	view := m.View()
	r := m.Sender.New(view, op, l.keys.Lock(), l)
	first, last, err := m.Ballots.Propose(r.Start, l.Name, max(lastBallot, l.sent.ballot), terms.Handoffs)
	if err != nil {
		return err
	}
	l.sent.mixed |= r.Asked() // the exporter's acquire, sent over another connection, may still arrive
	ttl := terms.leaseTTL(0)
	// Only masters that vote count. The specification is safe without this restriction, since a master that still has the
	// exporter's lease has not forgotten it. The restriction keeps one rule for all rounds that acquire a lock.
	//mutant:import-votes = round.NeedsRecord
	need := round.NeedsVote
	if l.Role() != scripts.Plain {
		need = round.NeedsRecord // a downgrade changes a lease that is live here, as an extension does
	}
	l.tokens = tokenRange{next: first, last: last, handoffs: terms.Handoffs}
	term := m.Ballots.Term(r.Start, ttl).Later(terms.fromGrant(view.Config.Slowest))
	sent := r.SendAll(view.Encoder.Import(l.keys, l.ID, l.replaces, term, first, last), ttl, need)
	l.sent.touchAll(view, sent, last)
	r.RecordSkipped()
	err = l.awaitQuorum(ctx, r, terms)
	switch f, ok := round.AsFailure(err); {
	case !ok:
		l.sent.to |= r.Asked() // a master that was not reached may still have the exported lease
	case r.Verdict() == quorum.Lost:
		l.importFailed(ctx, r, f, terms, first)
	}
	s.recordRound(r)
	m.Events.Attempted(l, r, first, err)
	return err
}

// importFailed sets the decision of f, the failure of an import. If a majority of one set of a joint configuration has
// confirmed the import, importFailed also sends repairs to the repairable masters, so that the next round may win.
func (l *Lease) importFailed(ctx context.Context, r *round.Round, f *round.Failure, terms *Terms, first int64) {
	t := r.Tally()
	if t.Rule.Joint() && r.Complete(ctx) {
		t = r.Tally()
		if t.Rule.WonHalf(t.Of(quorum.Granted)) {
			ttl := terms.leaseTTL(0)
			l.mu.Lock()
			for i := range repairable(r).All() {
				l.repairLocked(r, i, ttl, first)
			}
			l.mu.Unlock()
			f.Decision = round.ErrNoQuorum
			return
		}
	}
	if !t.Rule.WonHalf(t.Rule.All() &^ t.Of(quorum.Missing) &^ t.Of(quorum.Held) &^ t.Of(quorum.OtherKind)) {
		f.Decision = ErrLost
	}
}

// Abandon releases a lease that Import could not win.
func (l *Lease) Abandon() { l.rollBack(l.sent.to) }
