package client

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// ProbeName is the beginning of the names of probe locks.
const ProbeName = "redlock-probe:"

const (
	probeAge     = 30 * time.Second // maximum age of a granted lock that shows that a master grants locks
	probeBound   = 2 * time.Second  // bounds the time of a probe
	probeTTL     = time.Second
	readyPause   = time.Second     // between two probes of WaitReady
	recheckPause = 5 * time.Second // between two probes while a master is failing
)

// Healthy implements Healthy of package redlock.
func (c *Client) Healthy(ctx context.Context) error {
	if !c.enter() {
		return lease.ErrClosed
	}
	defer c.leave()
	c.monitor.Settle()
	if f := c.unhealthy(ctx); f != nil {
		return failed(redlockinfo.OpHealthy, c.cfg.Prefix, f)
	}
	return nil
}

// WaitReady implements WaitReady of package redlock.
func (c *Client) WaitReady(ctx context.Context) error {
	if !c.enter() {
		return lease.ErrClosed
	}
	defer c.leave()
	c.monitor.Settle()
	for {
		view, err := c.monitor.Await(ctx, func(v *admission.View) bool { return v.Config.Rule.Won(v.Voting) })
		if err != nil {
			return failed(redlockinfo.OpWaitReady, c.cfg.Prefix, c.sender.NoQuorum(view, err))
		}
		_, _ = c.monitor.Await(ctx, (*admission.View).AllKnown) // ignore the error: a quorum votes already
		f := c.unhealthy(ctx)
		if f == nil {
			return nil
		}
		if ended := c.Rest(ctx, readyPause); ended != nil {
			return failed(redlockinfo.OpWaitReady, c.cfg.Prefix, f.Ended(ended))
		}
	}
}

// unhealthy returns why no majority of the masters can grant a lock, or nil if one can.
func (c *Client) unhealthy(ctx context.Context) *round.Failure {
	c.probe(ctx, probeAge)
	view := c.monitor.View()
	if view.Config.Rule.Won(c.sender.Able(view)) {
		return nil
	}
	f := c.sender.NoQuorum(view, nil)
	if ctx.Err() != nil {
		f.Cause = fault.ContextError(ctx)
	}
	return f
}

// Probe makes each client send a probe lock, so that [Set.Verdict] says which masters grant locks now.
func (s *Set) Probe(ctx context.Context) {
	_ = s.each(func(_ int, c *Client) error {
		if c.enter() {
			defer c.leave()
			c.probe(ctx, 0)
		}
		return nil
	})
}

// probe locks, extends and releases a probe name of this client on all masters, unless each master that votes has
// granted a lock within age. The votes show which masters grant locks, and extend them. They are not traced.
func (c *Client) probe(ctx context.Context, age time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	select {
	case c.probing <- struct{}{}:
		defer func() { <-c.probing }()
	case <-ctx.Done():
		return
	}
	view := c.monitor.View()
	if c.sender.Health.Unknown(view.Voting, age) == 0 {
		return
	}
	name := ProbeName + c.leases.Owner
	keys := scripts.Prefix(c.cfg.Prefix).Keys(name)
	silent := *c.sender
	silent.OnVote = nil
	r := silent.New(view, "probe", keys.Lock(), nil)
	first, last, err := c.ballots.Propose(r.Start, name, 0, 0)
	if err != nil {
		return
	}
	ttl := min(probeTTL, cmp.Or(c.cfg.MaxTTL, MaxTTL))
	r.LeaseID = scripts.LeaseID(c.leases.Owner, uint64(first), c.cfg.Label)
	term, more := c.ballots.Term(r.Start, ttl), silent.New(view, "probe", keys.Lock(), nil)
	more.Extends = true
	sent := r.SendAll(view.Encoder.Acquire(&keys, r.LeaseID, term, first, last, 1, nil), ttl, round.NeedsVote)
	more.SendAll(view.Encoder.Extend(&keys, r.LeaseID, term, 1, ""), ttl, round.NeedsVote)
	r.RecordSkipped()
	more.RecordSkipped()
	r.Complete(ctx)
	more.Complete(ctx)
	c.leases.Post(sent, view.Encoder.Release(&keys, scripts.Ending{Leases: []string{r.LeaseID}, Ballot: last}))
}

// healthChanged logs and traces that master i has started or stopped failing, and schedules a probe while any master is
// failing.
func (c *Client) healthChanged(i int) {
	m := c.masterInfo(i, &c.monitor.View().Masters[i]) // in range, since the number of masters never shrinks
	c.journal.health(&m)
	c.events.master(&m)
	c.noteQuorum()
	c.journal.watch()
	c.recheckLater()
}

// recheckLater schedules a probe if a master is failing, and again after each probe. So even a client that acquires no
// locks learns that the master has recovered.
func (c *Client) recheckLater() {
	if c.sender.Health.Failing() != 0 && c.rechecks.CompareAndSwap(false, true) {
		time.AfterFunc(recheckPause, c.recheck)
	}
}

func (c *Client) recheck() {
	if !c.enter() {
		return
	}
	defer c.leave()
	c.probe(context.Background(), probeAge)
	c.rechecks.Store(false)
	c.recheckLater()
}
