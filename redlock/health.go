package redlock

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

const (
	// probeAge is how long a granted lock counts as evidence that a master grants locks.
	probeAge = 30 * time.Second
	// probeBound bounds a probe if masters do not answer.
	probeBound = 2 * time.Second
	// probeTTL is the TTL of a probe.
	probeTTL = time.Second
	// readyPause is the pause between two probes of WaitReady.
	readyPause = time.Second
	// recheckPause is the pause between two probes while a master is failing.
	recheckPause = 5 * time.Second
)

// Healthy returns nil if Lock can get a majority of the masters, and otherwise ErrNoQuorum with the reason of each
// master that grants nothing. Such a master is unreachable, in quarantine, has a wrong clock, or is failing: its last
// acquire ended in an error, for lack of memory or of rights.
//
// Healthy evaluates the replies to the last acquires. If a master has granted no lock for 30 s, Healthy locks and
// releases a probe name on all masters, which takes two round trips; otherwise it sends nothing. It does not wait for
// masters to come back; [Locker.WaitReady] does. Other errors are that of ctx, and ErrClosed.
func (l *Locker) Healthy(ctx context.Context) error {
	return l.each(func(_ int, s *shard) error { return s.healthy(ctx) })
}

func (l *shard) healthy(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	if f := l.unhealthy(ctx); f != nil {
		return failed("health check of", l.cfg.prefix, f)
	}
	return nil
}

// unhealthy returns why no majority of the masters can grant a lock, or nil if one can.
func (l *shard) unhealthy(ctx context.Context) *round.Failure {
	view := l.voters.View()
	if view.Config.Rule.Won(view.Voting) && l.sender.Health.Unknown(view.Voting, probeAge) != 0 {
		l.probe(ctx)
		view = l.voters.View()
	}
	if view.Config.Rule.Won(l.sender.Able(view)) {
		return nil
	}
	f := l.sender.NoQuorum(view, "vote", nil)
	if ctx.Err() != nil {
		f.Cause = contextError(ctx)
	}
	return f
}

// probe locks and releases a probe name of this Locker on all masters, unless another goroutine has just done so. The
// votes show which masters grant locks. They are not traced.
func (l *shard) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	select {
	case l.probing <- struct{}{}:
		defer func() { <-l.probing }()
	case <-ctx.Done():
		return
	}
	view := l.voters.View()
	if l.sender.Health.Unknown(view.Voting, probeAge) == 0 {
		return
	}
	name := "redlock-probe:" + l.leases.Owner
	keys := scripts.Prefix(l.cfg.prefix).Keys(name)
	silent := round.Sender{Pool: l.pool, Clock: l.cfg.clock, Doubt: l.voters.Doubt, Health: l.sender.Health}
	r := silent.New(view, "probe", nil)
	first, last, err := l.ballots.Propose(r.Start, name, 0, 0)
	if err != nil {
		return
	}
	ttl := probeTTL
	if l.cfg.guard > 0 {
		ttl = min(ttl, l.cfg.guard)
	}
	r.LeaseID = scripts.LeaseID(l.leases.Owner, uint64(first), l.cfg.label)
	sent, skipped := r.SendAll(view.Encoder.Acquire(&keys, r.LeaseID, ttl, first, last, nil), ttl, round.NeedsVote)
	r.RecordAll(skipped)
	r.Complete(ctx)
	l.leases.Post(sent, view.Encoder.Release(&keys, scripts.Ending{Leases: []string{r.LeaseID}, Ballot: last}))
}

// healthChanged reports that a master starts or stops failing.
func (l *shard) healthChanged(i int) {
	view := l.voters.View()
	if i < len(view.Masters) {
		m := l.masterInfo(i, &view.Masters[i])
		l.journal.health(&m)
		l.events.master(&m)
	}
	l.journal.watch()
	l.recheckLater()
}

// recheckLater probes after a pause, again and again while a master is failing: a client that acquires no locks learns
// so that the master has recovered.
func (l *shard) recheckLater() {
	if l.sender.Health.Failing() != 0 && l.rechecks.CompareAndSwap(false, true) {
		time.AfterFunc(recheckPause, l.recheck)
	}
}

func (l *shard) recheck() {
	if !l.enter() {
		return
	}
	defer l.leave()
	l.probe(context.Background())
	l.rechecks.Store(false)
	l.recheckLater()
}
