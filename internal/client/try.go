package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// try makes attempts until the votes decide, without waiting in the queues. If the request does not wait, it returns
// ErrOverloaded when the limit of concurrent attempts delays an attempt for turnTimeouts timeouts.
func (c *Client) try(ctx context.Context, r *Request, k *Lock) error {
	view, err := c.settled(ctx)
	if err != nil {
		return c.sender.NoQuorum(view, "lock", err)
	}
	s := r.Settings
	a := &lease.Attempt{Op: "lock", Name: r.Name, Keys: &k.keys, Terms: &s.Terms, Stats: r.Stats}
	a.Patience = c.patience(r.Wait)
	held := func() error { return nil }
	if k.keys.Role() == scripts.Plain {
		if c.queue.TakeOver(r.Name, &k.hold, &s.Terms) {
			return nil
		}
		held = func() error { return c.heldHere(r.Name) }
	}
	if err := held(); err != nil {
		return err
	}
	limit := cmp.Or(s.WaitLimit, waitqueue.DefaultUndecided)
	if s.once {
		limit = 0
	}
	return c.queue.Try(ctx, a, limit, held, func(g *lease.Lease) error { return c.begin(g, k, s) })
}

// patience returns how long an attempt may wait for the limit of concurrent attempts; 0 means until its context ends.
func (c *Client) patience(wait bool) time.Duration {
	if wait {
		return 0
	}
	return turnTimeouts * c.voters.View().Config.Slowest
}

// heldHere returns the failure of a call for a name that this client itself holds, or nil if it does not hold the name.
// Such a call sends nothing.
func (c *Client) heldHere(name string) error {
	g := c.queue.Holder(name)
	if g == nil {
		return nil
	}
	i, rule := g.Info(), c.voters.View().Config.Rule
	return &round.Failure{
		Decision: round.ErrHeld, Quorum: rule.Least(), N: rule.N(), Left: i.Left, Holder: g.ID, Token: i.Token,
	}
}

// settled returns the view once a quorum votes, or none can be expected. A new client first waits for masters that are
// still connecting, for at most one timeout: the votes of all masters decide more often than those of a bare quorum.
func (c *Client) settled(ctx context.Context) (*admission.View, error) {
	if left := time.Until(c.connectBy); left > 0 {
		connecting, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_, _ = c.voters.Await(connecting, (*admission.View).AllKnown)
	}
	return c.voters.Ready(ctx)
}
