package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func (l *shard) mastersOf(v *admission.View) []redlockinfo.Master {
	list := make([]redlockinfo.Master, 0, v.Config.N())
	for _, i := range v.Config.Order {
		list = append(list, l.masterInfo(i, &v.Masters[i]))
	}
	return list
}

// masterInfo returns the description of master i for monitoring.
func (l *shard) masterInfo(i int, st *admission.State) redlockinfo.Master {
	info := redlockinfo.Master{
		Addr: l.pool.Addr(i), Shard: l.cfg.layout.Number, State: st.Phase.String(),
		MaxTTL: st.Record.MaxTTL, Epoch: st.Record.Epoch,
		Err: st.Err, Pending: l.pool.Pending(i),
	}
	if st.Record.Masters != "" {
		info.List = st.Record.Configuration().Hash()
	}
	if err := l.sender.Trouble(i, st); err != nil && st.Phase == admission.Voting {
		info.State, info.Err = diagnose.Failing, err
	}
	info.Left = l.quarantineLeft(i, st)
	return info
}

// quarantineLeft returns how much is left of the quarantine of master i in the state st. It returns 0 if the master is
// not in quarantine, or if the time is not known.
func (l *shard) quarantineLeft(i int, st *admission.State) time.Duration {
	if st.Phase != admission.InQuarantine || st.Over == 0 {
		return 0
	}
	now := l.cfg.clock.Now()
	return max(0, ballot.Span(st.Over-min(l.ballots.Own(now, i), l.ballots.Median(now))))
}

// stopped returns the error of a call about the masters that ended early because of cause.
func (l *shard) stopped(op string, cause error) error {
	return failed(op, l.cfg.prefix, &round.Failure{Cause: cause})
}

// An operator implements the calls about the masters of one shard, and about the locks of all clients on these masters:
// see [Admin] and [Locker.Inspect].
type operator struct{ *shard }

// withRecords reads all admission records again, and calls f with the resulting View. Close waits for f.
func (l operator) withRecords(ctx context.Context, op string, f func(*admission.View) error) error {
	if !l.enter() {
		return errClosed
	}
	defer l.leave()
	view, err := l.voters.ReadRecords(ctx)
	if err != nil {
		return l.stopped(op, err)
	}
	return f(view)
}

// admit implements [Admin.Admit] for one shard.
func (l operator) admit(ctx context.Context) error {
	if !l.enter() {
		return errClosed
	}
	defer l.leave()
	if l.cfg.guard == 0 {
		return nil
	}
	view, err := l.voters.ReadRecords(ctx)
	if err == nil {
		err = objection(view)
	}
	if err == nil {
		view, err = l.voters.Admit(ctx, func(v *admission.View) bool { return v.Voting == v.Config.Rule.All() })
	}
	if err == nil {
		return nil
	}
	return l.notVoting("admit", view, view.Config, err)
}

// objection returns an error if a master of the view belongs to another configuration.
func objection(view *admission.View) error {
	for _, i := range view.Config.Order {
		err := view.Masters[i].Err
		for _, other := range []error{admission.ErrShardLayout, ErrMasterList, errOldMasters, errIncomplete} {
			if errors.Is(err, other) {
				return other
			}
		}
	}
	return nil
}

// notVoting returns the error of a call that ended because of cause. The error lists the masters of c that do not vote.
func (l operator) notVoting(op string, view *admission.View, c *quorum.Config, cause error) error {
	seen := &admission.View{Config: c, Masters: view.Masters}
	seen.Voting = c.Rule.All().Where(func(i int) bool { return view.Masters[i].Phase == admission.Voting })
	f := l.sender.NoQuorum(seen, op, cause)
	if f.Granted, f.Unsent = seen.Voting.Len(), false; c.Rule.Won(seen.Voting) {
		f.Decision = nil
	}
	return failed(op, l.cfg.prefix, f)
}

// quarantine implements [Admin.Quarantine] for master i of one shard.
func (l operator) quarantine(ctx context.Context, i int) error {
	if l.cfg.guard == 0 {
		return errUnguarded
	}
	return l.withRecords(ctx, "quarantine", func(*admission.View) error { return l.voters.Quarantine(ctx, i) })
}

var errUnguarded = invalid("the restart guard is off in this Locker, so there are no admission records")

// raiseMaxTTL implements [Admin.RaiseMaxTTL] for one shard.
func (l operator) raiseMaxTTL(ctx context.Context, g time.Duration) error {
	switch {
	case l.cfg.guard == 0:
		return errUnguarded
	case g < minTTL || g > maxTTL || g%time.Millisecond != 0:
		return invalid("max TTL %v: must be from %v to %v, in whole milliseconds", g, minTTL, maxTTL)
	}
	return l.withRecords(ctx, "max-ttl", func(view *admission.View) error {
		for _, i := range view.Config.Order {
			if have := view.Masters[i].Record.MaxTTL; have > g {
				return invalid("max TTL %v: %s has %v; it can be lowered only while no client runs: see docs/change.md, "+
					"Max TTL and admission", g, l.pool.Addr(i), have)
			}
			if err := admission.ShortBacklog(view.Masters[i].Backlog, g); err != nil {
				return invalid("max TTL %v: %s would lose its vote: %w", g, l.pool.Addr(i), err)
			}
		}
		all := quorum.Rule{Old: view.Config.Rule.All()}
		if err := l.raiseQuarantines(ctx, all, g); err != nil {
			return err
		}
		longest := func(st *admission.State, r *scripts.Record) (bool, error) {
			r.MaxTTL = g
			return st.Record.Quarantine >= g && st.Record.MaxTTL >= g, disagrees(st)
		}
		return l.write(ctx, "max-ttl", scripts.AdmitMaxTTL, all, true, longest)
	})
}

// raiseQuarantines writes a quarantine of g to all masters, and returns when all of them have it at the same time. To
// verify that, it reads all records again after the last write: none may have changed in the meantime. A record that
// has changed may show that its master lost its data, and is in a shorter quarantine again.
func (l operator) raiseQuarantines(ctx context.Context, all quorum.Rule, g time.Duration) error {
	for range 10 {
		longer := func(st *admission.State, r *scripts.Record) (has bool, err error) {
			r.Quarantine = max(r.Quarantine, g)
			return st.Record.Quarantine >= g, disagrees(st)
		}
		if err := l.write(ctx, "max-ttl", scripts.AdmitMaxTTL, all, true, longer); err != nil {
			return err
		}
		before := l.voters.View()
		after, err := l.voters.ReadRecords(ctx)
		if err != nil {
			return l.stopped("max-ttl", err)
		}
		same := func(i int) bool { return before.Masters[i].Text == after.Masters[i].Text }
		if all.All().Where(same) == all.All() {
			return nil
		}
	}
	return errors.New("the admission records keep changing: try again when no master restarts")
}

// disagrees returns an error if the record of a master contains a configuration other than that of this client.
func disagrees(st *admission.State) error {
	if st.Agrees {
		return nil
	}
	return ErrMasterList
}

// write changes the records of masters until has returns true for all masters, or if every is false, for a majority of
// each set of the rule.
func (l operator) write(
	ctx context.Context, op string, step scripts.AdmitStep, rule quorum.Rule, every bool,
	has change,
) error {
	err := l.each(ctx, op, rule, every, func(i int) error { // first check whether the change can succeed
		_, _, err := wanted(&l.voters.View().Masters[i], has)
		return err
	})
	if err != nil {
		return err
	}
	return l.each(ctx, op, rule, every, func(i int) error { return l.writeOne(ctx, i, step, has) })
}

// each calls do for the masters of a rule. It fails unless do succeeds for all masters, or if every is false, for a
// majority of each set.
func (l operator) each(ctx context.Context, op string, rule quorum.Rule, every bool, do func(i int) error) error {
	var have quorum.Set
	f := &round.Failure{Decision: ErrNoQuorum, Quorum: rule.Least(), N: rule.N()}
	for i := range rule.All().All() {
		err := do(i)
		var named *transport.Error
		switch {
		case err == nil:
			have |= quorum.One(i)
			continue
		case errors.Is(err, errClosed):
			return err
		case ctx.Err() != nil:
			return l.stopped(op, contextError(ctx))
		case !errors.As(err, &named):
			err = &transport.Error{Addr: l.pool.Addr(i), Op: op, Err: err}
		}
		f.Masters = append(f.Masters, err)
	}
	if every {
		f.Quorum = f.N
	}
	if have == rule.All() || !every && rule.Won(have) {
		return nil
	}
	f.Granted = have.Len()
	return failed(op, l.cfg.prefix, f)
}

// A change reports whether a master already has the intended record. If not, it changes r, a copy of the record, to the
// intended one. It returns an error if the master must not get that record.
type change func(st *admission.State, r *scripts.Record) (has bool, err error)

// wanted returns the record that f intends for a master, and whether the master already has it.
func wanted(st *admission.State, f change) (r scripts.Record, has bool, err error) {
	if r = st.Record; st.Text == "" {
		return r, false, cmp.Or(st.Err, errors.New("no admission record that this client may change"))
	}
	if has, err = f(st, &r); err != nil {
		err = cmp.Or(st.Err, err)
	}
	return r, has, err
}

// writeOne implements write for one master.
func (l operator) writeOne(
	ctx context.Context, i int, step scripts.AdmitStep, has change,
) error {
	for range 10 { // other clients may change the record at the same time
		st := &l.voters.View().Masters[i]
		record, done, err := wanted(st, has)
		if done || err != nil {
			return err
		}
		record.Stamp = "" // each write gets a new stamp
		err = l.voters.Step(ctx, i, scripts.AdmitRequest{
			Step: step, Identity: record.Identity, Seen: st.Text, Record: record,
		})
		if err != nil {
			return err
		}
	}
	return errChanging
}

var errChanging = errors.New("other clients keep changing the admission record")

// check implements [Admin.Check] for one shard.
func (l operator) check(ctx context.Context) (redlockinfo.Verdict, error) {
	if !l.enter() {
		return redlockinfo.Verdict{}, errClosed
	}
	defer l.leave()
	view, _ := l.voters.ReadRecords(ctx) // ignore the error: the states show which masters were not read
	opts := diagnose.Options{
		Prefix: l.cfg.prefix, Unguarded: l.cfg.guard == 0, Admitted: view.Config.Rule.Won(view.Voting),
	}
	for _, i := range view.Config.Order {
		if addr := l.pool.Addr(i); l.cfg.remembers(addr) {
			opts.Durable = append(opts.Durable, addr)
		}
	}
	report, err := diagnose.Masters(ctx, l.pool, opts)
	if err != nil {
		return redlockinfo.Verdict{}, err
	}
	for _, i := range view.Config.Order { // a contradiction is decided by a vote
		if slices.ContainsFunc(report, func(f redlockinfo.Finding) bool { return f.NoVote && f.Master == l.pool.Addr(i) }) {
			l.sender.Health.Doubt(i)
		}
	}
	_ = l.unhealthy(ctx)
	return l.present().Judge(report), nil
}

// present returns what is known at this moment. It sends nothing.
func (l *shard) present() *diagnose.Client {
	view := l.voters.View()
	return &diagnose.Client{
		Prefix: l.cfg.prefix, Guard: l.cfg.guard, Shard: l.cfg.layout.Number, Name: l.deployment(), View: view,
		Able: l.sender.Able(view), Masters: l.mastersOf(view),
	}
}

// deployment returns the name of the shard in findings and errors.
func (l *shard) deployment() string {
	if l.cfg.layout.Of == 0 {
		return "deployment"
	}
	return fmt.Sprintf("shard %d of %d", l.cfg.layout.Number, l.cfg.layout.Of)
}

const (
	// probeAge is the maximum age of a granted lock that counts as evidence that a master grants locks.
	probeAge = 30 * time.Second
	// probeBound limits the time of a probe.
	probeBound = 2 * time.Second
	// probeTTL is the TTL of a probe.
	probeTTL = time.Second
	// readyPause is the pause between two probes of WaitReady.
	readyPause = time.Second
	// recheckPause is the pause between two probes while a master is failing.
	recheckPause = 5 * time.Second
)

// Healthy returns nil if a majority of the masters can grant a lock. Otherwise it returns ErrNoQuorum with the reason
// of each master that cannot: the master is unreachable, in quarantine, has a wrong clock, or is failing, which means
// that its last acquire ended in an error, for lack of memory or permissions.
//
// Healthy uses the replies to the last acquires. If a master has granted no lock for 30 s, Healthy locks and releases a
// probe name on all masters, which takes two round trips; otherwise it sends nothing. It does not wait for masters to
// recover; [Locker.WaitReady] does. Other errors are the error of ctx, and ErrClosed.
func (l *Locker) Healthy(ctx context.Context) error {
	return l.each(func(_ int, s *shard) error { return s.healthy(ctx) })
}

func (l *shard) healthy(ctx context.Context) error {
	if !l.enter() {
		return errClosed
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
	ttl := min(probeTTL, cmp.Or(l.cfg.guard, maxTTL))
	r.LeaseID = scripts.LeaseID(l.leases.Owner, uint64(first), l.cfg.label)
	acquire := view.Encoder.Acquire(&keys, r.LeaseID, l.ballots.Term(r.Start, ttl), first, last, 1, nil)
	sent := r.SendAll(acquire, ttl, round.NeedsVote)
	r.RecordSkipped()
	r.Complete(ctx)
	l.leases.Post(sent, view.Encoder.Release(&keys, scripts.Ending{Leases: []string{r.LeaseID}, Ballot: last}))
}

// healthChanged logs and traces that master i has started or stopped failing, and schedules a probe while any master is
// failing.
func (l *shard) healthChanged(i int) {
	m := l.masterInfo(i, &l.voters.View().Masters[i]) // in range, since the number of masters never shrinks
	l.journal.health(&m)
	l.events.master(&m)
	l.noteQuorum()
	l.journal.watch()
	l.recheckLater()
}

// recheckLater schedules a probe if a master is failing, and again after each probe. So even a client that acquires no
// locks learns that the master has recovered.
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
