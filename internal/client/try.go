package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/waitqueue"
)

// try makes attempts until the votes decide, without waiting in the queues. If the request does not wait, it returns
// ErrOverloaded when the limit of concurrent attempts delays an attempt for turnTimeouts timeouts.
func (c *Client) try(ctx context.Context, r *Request, k *Lock) error {
	view, err := c.settled(ctx)
	if err != nil {
		return c.sender.NoQuorum(view, err)
	}
	s := r.Settings
	a := &lease.Attempt{Op: r.Op, Name: r.Name, Keys: &k.keys, Terms: &s.Terms, Stats: r.Stats}
	a.Patience = c.patience(r.Wait)
	limit := cmp.Or(s.WaitLimit, waitqueue.DefaultUndecided)
	if r.once {
		limit = 0
	}
	return c.queueOf(r.role).Try(ctx, a, &k.Hold, limit)
}

// patience returns how long an attempt may wait for the limit of concurrent attempts; 0 means until its context ends.
func (c *Client) patience(wait bool) time.Duration {
	if wait {
		return 0
	}
	return turnTimeouts * c.monitor.View().Config.Slowest
}

// settled returns the view once a quorum votes, or none can be expected. A new client first waits for masters that are
// still connecting, for at most one timeout: the votes of all masters decide more often than those of a bare quorum.
func (c *Client) settled(ctx context.Context) (*admission.View, error) {
	if left := time.Until(c.connectBy); left > 0 {
		connecting, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_, _ = c.monitor.Await(connecting, (*admission.View).AllKnown)
	}
	return c.monitor.Ready(ctx)
}
