package redlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/internal/admission"
)

// A placed is a master of a shard, and its state after its record was read.
type placed struct {
	operator
	i  int
	st *admission.State
}

// Replaces gives the masters records of this Locker's layout in place of records of old, a *Locker of the same prefix
// with the previous layout: another number of shards, or of buckets of a cluster. Masters that only old has keep a
// record of no shard, with which they vote for no client. Clients with the old layout then acquire no lock. Their held
// locks cannot be extended, and end before the quarantine of the other masters, which Replaces begins.
//
// If a master of either layout cannot be read, or if its record is of neither layout, Replaces writes nothing and
// returns an error. After any other error, for example that of ctx, call Replaces again: meanwhile the masters that it
// has reached vote for no client.
func (t tools) Replaces(ctx context.Context, old any) error {
	both := []*Locker{old.(*Locker), t.Locker}
	list, err := records(ctx, both...)
	if err != nil {
		return err
	}
	// Two masters with the same record are the same server, because each write of a record has a new stamp.
	agreed := map[string]bool{"": true}
	for _, p := range list {
		agreed[p.st.Text] = agreed[p.st.Text] || p.st.Agrees || p.st.Record.Shard.Retired()
	}
	for _, p := range list {
		if !agreed[p.st.Text] {
			return fmt.Errorf("nothing was changed: the record of %s is of neither layout: %w", p.pool.Addr(p.i), p.st.Err)
		}
	}
	// First all masters of both layouts end their votes, also those without a record: a client that has the new layout
	// already could be first on them. Only when all are seen to have ended their votes does a quarantine for the new
	// layout begin, so it outlasts each lock of the old one. See verify/spec/sharding.pml.
	for retired := false; !retired; {
		for _, p := range list {
			if !p.st.Record.Shard.Retired() {
				if err := p.replace(ctx, scripts.Retired(t.shards[0].cfg.layout.Of)); err != nil {
					return err
				}
			}
		}
		if list, err = records(ctx, both...); err != nil {
			return err
		}
		retired = !slices.ContainsFunc(list, func(p placed) bool { return !p.st.Record.Shard.Retired() })
	}
	if list, err = records(ctx, t.Locker); err != nil {
		return err
	}
	for _, p := range list {
		if err := p.replace(ctx, p.cfg.layout); err != nil {
			return err
		}
	}
	return nil
}

// records reads the records of all masters of some Lockers. It returns an error if a master cannot be read.
func records(ctx context.Context, lockers ...*Locker) (list []placed, err error) {
	var shards []*shard
	for _, l := range lockers {
		shards = append(shards, l.shards...)
	}
	for _, s := range shards {
		err := operator{s}.withRecords(ctx, "admit", func(view *admission.View) error {
			for _, i := range view.Config.Order {
				st := &view.Masters[i]
				if st.Phase == admission.Down || st.Phase == admission.Connecting && st.Err != nil {
					return fmt.Errorf("nothing was changed: every master must be up: %w", st.Err)
				}
				list = append(list, placed{operator{s}, i, st})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// replace writes a record of shard g, in quarantine.
func (p *placed) replace(ctx context.Context, g scripts.Shard) error {
	for range 10 { // a client may change the record at the same time
		if err := p.voters.Replace(ctx, p.i, g); err != nil {
			return p.stopped("admit", err)
		}
		if st := &p.voters.View().Masters[p.i]; st.Text != "" && st.Record.Shard == g {
			return nil
		}
	}
	return &transport.Error{Addr: p.pool.Addr(p.i), Op: "admit", Err: errChanging}
}
