package client

import (
	"context"
	"slices"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// RequestRelease implements RequestRelease of package admin.
func (c *Client) RequestRelease(ctx context.Context, name string) (heard int, err error) {
	names, err := c.namesOf(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, one := range names {
		n, err := c.requestReleaseOf(ctx, one)
		if heard += n; err != nil {
			return heard, err
		}
	}
	return heard, nil
}

// namesOf returns the names of the slots if name is a semaphore, and otherwise name.
func (c *Client) namesOf(ctx context.Context, name string) ([]string, error) {
	if err := c.CheckName(name); err != nil {
		return nil, err
	}
	_, size, err := c.inspectOne(ctx, name)
	if size == 0 {
		return []string{name}, err
	}
	return slotsOf(name, size), err
}

// requestReleaseOf implements RequestRelease for a name or a slot.
func (c *Client) requestReleaseOf(ctx context.Context, name string) (heard int, err error) {
	err = c.askAll(ctx, redlockinfo.OpRequestRelease, name, func(r *round.Round, hs holdings) error {
		holders := hs.inspection(r.View)
		ids := []string{holders.ID}
		for _, reader := range holders.Readers {
			ids = append(ids, reader.ID)
		}
		for _, one := range holders.Partial {
			ids = append(ids, one.ID)
		}
		prefix := scripts.Prefix(c.cfg.Prefix)
		keys := prefix.Keys(name)
		for _, id := range ids {
			if owner, _ := scripts.LeaseLabel(id); owner == "" {
				continue // no holder, or a foreign key
			}
			received := 0
			err := c.toAll(ctx, r.View, prefix.Notify(&keys, id, true), func(a answer) {
				if n, _ := a.value.(int64); n > 0 {
					received = 1
				}
			})
			if heard += received; err != nil {
				return failed(redlockinfo.OpRequestRelease, name, &round.Failure{Cause: err})
			}
		}
		return nil
	})
	return heard, err
}

// ForceRelease implements ForceRelease of package admin.
func (c *Client) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	if owner, _ := scripts.LeaseLabel(id); owner == "" {
		return 0, Invalid("invalid lease ID %.80q", id)
	}
	i, err := c.Inspect(ctx, name)
	if err != nil {
		return 0, err
	}
	for n, slot := range i.Slots {
		partly := slices.ContainsFunc(slot.Partial, func(one redlockinfo.Lease) bool { return one.ID == id })
		if slot.ID == id || partly {
			name = slotsOf(name, len(i.Slots))[n]
			break
		}
	}
	return c.forceReleaseOf(ctx, name, id)
}

// forceReleaseOf implements ForceRelease for a name or a slot.
func (c *Client) forceReleaseOf(ctx context.Context, name, id string) (released int, err error) {
	const op = redlockinfo.OpForceRelease
	err = c.askAll(ctx, op, name, func(seen *round.Round, hs holdings) error {
		view, rule := seen.View, seen.View.Config.Rule
		fences := make([]int64, 0, len(hs))
		for _, h := range hs {
			fences = append(fences, h.Fence)
		}
		floor := ballot.Floor(fences, rule.N(), rule.N()-len(hs))
		above, _, err := c.ballots.Propose(c.cfg.Clock.Now(), name, floor, 0)
		if err != nil {
			return failed(op, name, err)
		}
		role, _ := scripts.ShareOf(id)
		keys := scripts.Prefix(c.cfg.Prefix).KeysOf(name, role)
		call := view.Encoder.Release(&keys, scripts.Ending{Leases: []string{id}, Ballot: above})
		r := c.sender.New(view, op, keys.Lock(), nil)
		gone := false // whether a majority no longer has the lease
		cause := c.toAll(ctx, view, call, func(a answer) {
			r.Reply(a.master, a.value, a.err)
			t, before := r.Tally(), gone
			released = t.Of(quorum.Granted).Len()
			gone = rule.Won(t.Of(quorum.Granted) | t.Of(quorum.Missing))
			if gone && !before { // an earlier message would make the holder extend the lease elsewhere
				c.leases.Post(rule.All(), scripts.Prefix(c.cfg.Prefix).NotifyForced(&keys, id, c.cfg.Label))
			}
		})
		if gone {
			return nil
		}
		return failed(op, name, r.Failure(round.ErrNoQuorum, cause))
	})
	return released, err
}
