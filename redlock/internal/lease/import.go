package lease

import (
	"context"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// NewImport makes the lease that takes over the one with the previous id.
func (m *Manager) NewImport(name string, keys *scripts.Keys, previous string) *Lease {
	l := m.newLease(name, keys, nil)
	l.replaces = previous
	return l
}

// Inherits records that the lease that l takes over was this Manager's own, and that ballot is the largest that was
// sent for it. So the release of l also releases that lease on all masters.
func (l *Lease) Inherits(ballot int64) {
	all := l.m.View().Config.Rule.All()
	l.sent.to, l.sent.mixed, l.sent.ballot = all, all, ballot
}

// Import acquires the lease that another process has exported: under a new id, on the voting masters that still have
// the previous id. As in an acquire, the round decides which client has the name. Import sends one round. The caller
// repeats it on the same lease, so that masters on which an earlier round has taken the lease over still count, until
// Import succeeds or the caller gives up and calls Abandon.
func (l *Lease) Import(ctx context.Context, op string, terms *Terms, above int64, s *AcquireStats) error {
	m := l.m
	view := m.View()
	r := m.Sender.New(view, op, &l.recorder)
	first, last, err := m.Ballots.Propose(r.Start, l.Name, max(above, l.sent.ballot), terms.maxHandoffs())
	if err != nil {
		return err
	}
	l.sent.mixed |= r.Asked() // an acquire of the exporter, over a connection of its own, may still arrive
	ttl := terms.leaseTTL(0)
	// Only masters that vote count. The specification is safe without this restriction, since a master that still has the
	// exporter's lease has not forgotten it. The restriction keeps one rule for all rounds that acquire a lock.
	//mutant:import-votes = round.NeedsRecord
	need := round.NeedsVote
	if l.Role() != scripts.Plain {
		need = round.NeedsRecord // a downgrade changes a lease that is live here, as an extension does
	}
	l.tokens = tokenRange{next: first, last: last, handoffs: terms.maxHandoffs()}
	sent := r.SendAll(view.Encoder.Import(l.keys, l.ID, l.replaces, ttl, first, last), ttl, need)
	l.sent.acquire(view, sent, last)
	r.RecordSkipped()
	err = l.awaitQuorum(ctx, r, terms)
	switch f, ok := round.AsFailure(err); {
	case !ok:
		l.sent.to |= r.Asked() // a master that was not reached may still have what the exporter left
	case r.Verdict() == quorum.Lost:
		l.importFailed(ctx, r, f, terms, first)
	}
	s.recordRound(r)
	m.Events.Attempted(l, r, first, err)
	return err
}

// importFailed records in f the error with which a failed import ends. If the masters are being changed and a majority
// of one set has confirmed the import, importFailed also sends repairs to the masters that do not have the lease and
// may be repaired, so that the next round may win.
func (l *Lease) importFailed(ctx context.Context, r *round.Round, f *round.Failure, terms *Terms, first int64) {
	t := r.Tally()
	if t.Rule.Joint() && r.Complete(ctx) {
		t = r.Tally()
		if t.Rule.WonHalf(t.Of(quorum.Granted)) {
			ttl := terms.leaseTTL(0)
			l.mu.Lock()
			for i := range repairable(r, ttl).All() {
				l.repairLocked(r, i, ttl, first)
			}
			l.mu.Unlock()
			f.Decision = round.ErrNoQuorum
			return
		}
	}
	if !t.Rule.WonHalf(t.Rule.All() &^ t.Of(quorum.Missing) &^ t.Of(quorum.Held)) {
		f.Decision = ErrLost
	}
}

// Abandon releases what an import has taken over.
func (l *Lease) Abandon() { l.rollBack(l.sent.to) }
