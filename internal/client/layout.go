package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A placed is a master of a shard, and its state after its record was read.
type placed struct {
	*Client
	i  int
	st *admission.State
}

// Replaces gives the masters records of the layout of s in place of records of old, a Set of the same prefix
// with the previous layout: another number of shards, or of buckets of a cluster. First, all masters of both layouts
// get a record of no shard, with which they vote for no client. Clients with the old layout then acquire no lock, and
// extend none. Only when all masters have shown this record, those of s get a record of its layout. So their
// quarantine begins when the last lock with the old layout has been acquired, even if a client with the new layout has
// written a record before.
//
// If a master of either layout cannot be read, or if its record is of neither layout, Replaces writes nothing and
// returns an error. After any other error, for example that of ctx, masters may vote for no client: call Replaces
// again. If all masters have their records already, Replaces does nothing.
func (s *Set) Replaces(ctx context.Context, old *Set) error {
	before, after, err := s.layouts(ctx, old)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	// Two masters with the same record are the same server, because each write of a record has a new stamp.
	agreed, kept := map[string]bool{"": true}, map[string]bool{}
	for _, p := range slices.Concat(before, after) {
		agreed[p.st.Text] = agreed[p.st.Text] || p.st.Agrees || p.st.Record.Shard.Retired()
	}
	for _, p := range before { // a master that is given up
		kept[p.st.Text] = p.st.Record.Shard.Retired()
	}
	for _, p := range after {
		kept[p.st.Text] = p.st.Text != "" && p.st.Agrees
	}
	replaced := true
	for _, p := range slices.Concat(before, after) {
		if !agreed[p.st.Text] {
			return fmt.Errorf("nothing was changed: the record of %s is of neither layout: %w", p.pool.Addr(p.i), p.st.Err)
		}
		replaced = replaced && kept[p.st.Text]
	}
	if replaced {
		return nil
	}
	//mutant:layout-closed-first drop
	if after, err = s.closeLayout(ctx, old, slices.Concat(before, after)); err != nil {
		return err
	}
	for _, p := range after {
		if err := p.replace(ctx, p.cfg.Shard); err != nil {
			return err
		}
	}
	return nil
}

// layouts reads the records of all masters of old and of s.
func (s *Set) layouts(ctx context.Context, old *Set) (before, after []placed, err error) {
	if before, err = records(ctx, old); err == nil {
		after, err = records(ctx, s)
	}
	return before, after, err
}

// closeLayout gives these masters of both layouts a record of no shard, and reads all records again. It returns the
// masters of s.
func (s *Set) closeLayout(ctx context.Context, old *Set, list []placed) ([]placed, error) {
	closed := scripts.Retired(s.Clients[0].cfg.Shard.Of)
	for _, p := range list {
		if err := p.replace(ctx, closed); err != nil {
			return nil, err
		}
	}
	before, after, err := s.layouts(ctx, old)
	for _, p := range slices.Concat(before, after) {
		if err == nil && p.st.Record.Shard != closed { // the master has lost its record
			err = &transport.Error{Addr: p.pool.Addr(p.i), Op: string(redlockinfo.OpAdmit), Err: errChanging}
		}
	}
	return after, err
}

// records reads the records of all masters of l. It returns an error if a master cannot be read.
func records(ctx context.Context, l *Set) (list []placed, err error) {
	for _, c := range l.Clients {
		err := c.withRecords(ctx, redlockinfo.OpAdmit, func(view *admission.View) error {
			for _, i := range view.Config.Order {
				st := &view.Masters[i]
				if st.Phase == admission.Down || st.Phase == admission.Connecting && st.Err != nil {
					return fmt.Errorf("every master must be up: %w", st.Err)
				}
				list = append(list, placed{c, i, st})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// replace writes a record of this shard, in quarantine.
func (p *placed) replace(ctx context.Context, shard scripts.Shard) error {
	for range 10 { // a client may change the record at the same time
		if err := p.monitor.Replace(ctx, p.i, shard); err != nil {
			return p.stopped(redlockinfo.OpAdmit, err)
		}
		if st := &p.monitor.View().Masters[p.i]; st.Text != "" && st.Record.Shard == shard {
			return nil
		}
	}
	return &transport.Error{Addr: p.pool.Addr(p.i), Op: string(redlockinfo.OpAdmit), Err: errChanging}
}
