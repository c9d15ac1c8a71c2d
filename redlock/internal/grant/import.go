package grant

import (
	"context"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// NewImport makes the grant that takes over the one with the previous id.
func (k *Keeper) NewImport(name string, keys *scripts.Keys, previous string) *Grant {
	g := k.newGrant(name, keys, nil)
	g.replaces = previous
	return g
}

// Inherits says that the grant which g takes over was this Keeper's own, and was sent this ballot: whatever becomes of
// g, both are released with it.
func (g *Grant) Inherits(ballot int64) {
	all := g.k.View().Config.Rule.All()
	g.sent.to, g.sent.mixed, g.sent.ballot = all, all, ballot
}

// Import asks for the grant that another process has exported: under a new id, on the masters that still have the
// previous one, and vote: its round decides who has the name, as that of an acquire does. It is one grant for all
// rounds, since what an earlier round has taken over is ours in the next: Import sends one round, and is called again
// on the same Grant until it succeeds or the caller gives up and calls Abandon.
func (g *Grant) Import(ctx context.Context, op string, terms *Terms, above int64, c *Course) error {
	k := g.k
	view := k.View()
	r := k.Sender.New(view, op, &g.asking)
	first, last, err := k.Ballots.Propose(r.Start, g.Name, max(above, g.sent.ballot), terms.handOns())
	if err != nil {
		return err
	}
	g.sent.mixed |= r.Asked() // an ask of the exporter, over a connection of its own, may still arrive
	ttl := terms.keep(0, k.Drift)
	// Only masters that vote count. The specification is safe without this: a master that still has the exporter's
	// lease has not forgotten it. It keeps one rule for all rounds that acquire a lock.
	need := round.NeedsVote
	if g.Role() != scripts.Plain {
		need = round.NeedsRecord // a downgrade changes a grant that is live here, as an extension does
	}
	g.sendAsk(r, view.Encoder.Import(g.keys, g.ID, g.replaces, ttl, first, last), ttl, last, need)
	err = g.win(ctx, r, terms, first, last)
	switch f, ok := round.AsFailure(err); {
	case !ok:
		g.sent.to |= r.Asked() // a master that was not reached may still have what the exporter left
	case r.Verdict() == quorum.Lost:
		g.importFailed(ctx, r, f, terms, first)
	}
	c.took(r)
	k.Events.Asked(g, r, first, err)
	return err
}

// importFailed records in f what became of an import that was lost. If a majority of one of two sets has confirmed it,
// the masters that lack it are repaired as far as they may be, and the next round may win.
func (g *Grant) importFailed(ctx context.Context, r *round.Round, f *round.Failure, terms *Terms, first int64) {
	t := r.Tally()
	if t.Rule.Joint() && r.Complete(ctx) {
		t = r.Tally()
		if t.Rule.WonHalf(t.Of(scripts.Granted)) {
			ttl := terms.keep(0, g.k.Drift)
			g.mu.Lock()
			for i := range repairable(r, ttl).All() {
				g.repairLocked(r, i, ttl, first)
			}
			g.mu.Unlock()
			f.Decision = round.ErrNoQuorum
			return
		}
	}
	if !t.Rule.WonHalf(t.Rule.All() &^ t.Of(scripts.Missing) &^ t.Of(scripts.Held)) {
		f.Decision = ErrLost
	}
}

// Abandon releases what an import has taken over.
func (g *Grant) Abandon() { g.rollBack(g.sent.to) }
