package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// stopped returns the error of a call about the masters that ended early because of cause.
func (c *Client) stopped(op redlockinfo.Op, cause error) error {
	return failed(op, c.cfg.Prefix, &round.Failure{Cause: cause})
}

// withRecords reads all admission records again, and calls f with the resulting View. Close waits for f.
func (c *Client) withRecords(ctx context.Context, op redlockinfo.Op, f func(*admission.View) error) error {
	if !c.enter() {
		return lease.ErrClosed
	}
	defer c.leave()
	view, err := c.monitor.ReadRecords(ctx)
	if err != nil {
		return c.stopped(op, err)
	}
	return f(view)
}

// Admit implements Admit of package admin.
func (c *Client) Admit(ctx context.Context) error {
	if !c.enter() {
		return lease.ErrClosed
	}
	defer c.leave()
	if c.cfg.MaxTTL == 0 {
		return nil
	}
	view, err := c.monitor.ReadRecords(ctx)
	if err == nil {
		err = objection(view)
	}
	if err == nil {
		view, err = c.monitor.Admit(ctx, func(v *admission.View) bool { return v.Voting == v.Config.Rule.All() })
	}
	if err == nil {
		return nil
	}
	return c.notVoting(redlockinfo.OpAdmit, view, view.Config, err)
}

// objection returns an error if a master of the view belongs to another configuration.
func objection(view *admission.View) error {
	for _, i := range view.Config.Order {
		err := view.Masters[i].Err
		for _, other := range []error{
			admission.ErrShardLayout, admission.ErrMasterList, admission.ErrOldMasters, admission.ErrIncomplete,
		} {
			if errors.Is(err, other) {
				return other
			}
		}
	}
	return nil
}

// notVoting returns the error of a call that ended because of cause. The error lists the masters of want that do not
// vote.
func (c *Client) notVoting(op redlockinfo.Op, view *admission.View, want *quorum.Config, cause error) error {
	seen := &admission.View{Config: want, Masters: view.Masters}
	seen.Voting = want.Rule.All().Where(func(i int) bool { return view.Masters[i].Phase == admission.Voting })
	f := c.sender.NoQuorum(seen, cause)
	if f.Granted, f.Unsent = seen.Voting.Len(), false; want.Rule.Won(seen.Voting) {
		f.Decision = nil
	}
	return failed(op, c.cfg.Prefix, f)
}

// Quarantine implements Quarantine of package admin. It reports whether the client has a master of this name.
func (c *Client) Quarantine(ctx context.Context, addr string) (known bool, err error) {
	masters := c.monitor.View().Config.Order
	k := slices.IndexFunc(masters, func(i int) bool { return c.pool.Addr(i) == addr })
	switch {
	case k < 0:
		return false, nil
	case c.cfg.MaxTTL == 0:
		return true, errUnguarded
	}
	i := masters[k]
	return true, c.withRecords(ctx, redlockinfo.OpQuarantine, func(*admission.View) error {
		return c.monitor.Quarantine(ctx, i)
	})
}

var errUnguarded = Invalid("the restart guard is off in this Locker, so there are no admission records")

// RaiseMaxTTL implements RaiseMaxTTL of package admin.
func (c *Client) RaiseMaxTTL(ctx context.Context, d time.Duration) error {
	switch {
	case c.cfg.MaxTTL == 0:
		return errUnguarded
	case d < MinTTL || d > MaxTTL || d%time.Millisecond != 0:
		return Invalid("max TTL %v: must be from %v to %v, in whole milliseconds%s", d, MinTTL, MaxTTL, aboutUnit(d))
	}
	return c.withRecords(ctx, redlockinfo.OpRaiseMaxTTL, func(view *admission.View) error {
		for _, i := range view.Config.Order {
			if have := view.Masters[i].Record.MaxTTL; have > d {
				return Invalid("max TTL %v: %s has %v; it can be lowered only while no client runs: see docs/change.md, "+
					"Max TTL and admission", d, c.pool.Addr(i), have)
			}
			if err := admission.ShortBacklog(view.Masters[i].Backlog, d); err != nil {
				return Invalid("max TTL %v: %s would lose its vote: %w", d, c.pool.Addr(i), err)
			}
		}
		all := quorum.Rule{Old: view.Config.Rule.All()}
		if err := c.raiseQuarantines(ctx, all, d); err != nil {
			return err
		}
		longest := func(_ int, st *admission.State, r *scripts.Record) (bool, error) {
			r.MaxTTL = d
			return st.Record.Quarantine >= d && st.Record.MaxTTL >= d, disagrees(st)
		}
		return c.write(ctx, redlockinfo.OpRaiseMaxTTL, scripts.AdmitMaxTTL, all, true, longest)
	})
}

// raiseQuarantines writes a quarantine of d to all masters, and returns when all of them have it at the same time. To
// verify that, it reads all records again after the last write: none may have changed in the meantime. A record that
// has changed may show that its master lost its data, and is in a shorter quarantine again.
func (c *Client) raiseQuarantines(ctx context.Context, all quorum.Rule, d time.Duration) error {
	for range 10 {
		longer := func(_ int, st *admission.State, r *scripts.Record) (has bool, err error) {
			r.Quarantine = max(r.Quarantine, d)
			return st.Record.Quarantine >= d, disagrees(st)
		}
		if err := c.write(ctx, redlockinfo.OpRaiseMaxTTL, scripts.AdmitMaxTTL, all, true, longer); err != nil {
			return err
		}
		before := c.monitor.View()
		after, err := c.monitor.ReadRecords(ctx)
		if err != nil {
			return c.stopped(redlockinfo.OpRaiseMaxTTL, err)
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
	return admission.ErrMasterList
}

// write changes the records of masters until has returns true for all masters, or if every is false, for a majority of
// each set of the rule.
func (c *Client) write(
	ctx context.Context, op redlockinfo.Op, step scripts.AdmitStep, rule quorum.Rule, every bool,
	has change,
) error {
	err := c.onEach(ctx, op, rule, every, func(i int) error { // first check whether the change can succeed
		_, _, err := wanted(i, &c.monitor.View().Masters[i], has)
		return err
	})
	if err != nil {
		return err
	}
	return c.onEach(ctx, op, rule, every, func(i int) error { return c.writeOne(ctx, i, step, has) })
}

// onEach calls do for the masters of a rule. It fails unless do succeeds for all masters, or if every is false, for a
// majority of each set.
func (c *Client) onEach(
	ctx context.Context, op redlockinfo.Op, rule quorum.Rule, every bool, do func(i int) error,
) error {
	var have quorum.Set
	f := &round.Failure{Decision: round.ErrNoQuorum, Quorum: rule.Least(), N: rule.N()}
	for i := range rule.All().All() {
		err := do(i)
		var named *transport.Error
		switch {
		case err == nil:
			have |= quorum.One(i)
			continue
		case errors.Is(err, lease.ErrClosed):
			return err
		case ctx.Err() != nil:
			return c.stopped(op, fault.ContextError(ctx))
		case !errors.As(err, &named):
			err = &transport.Error{Addr: c.pool.Addr(i), Op: string(op), Err: err}
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
	return failed(op, c.cfg.Prefix, f)
}

// A change reports whether master i already has the intended record. If not, it changes r, a copy of the record, to the
// intended one. It returns an error if the master must not get that record.
type change func(i int, st *admission.State, r *scripts.Record) (has bool, err error)

// wanted returns the record that f intends for master i, and whether the master already has it.
func wanted(i int, st *admission.State, f change) (r scripts.Record, has bool, err error) {
	if r = st.Record; st.Text == "" {
		return r, false, cmp.Or(st.Err, errors.New("no admission record that this client may change"))
	}
	if has, err = f(i, st, &r); err != nil {
		err = cmp.Or(st.Err, err)
	}
	return r, has, err
}

// writeOne implements write for one master.
func (c *Client) writeOne(
	ctx context.Context, i int, step scripts.AdmitStep, has change,
) error {
	for range 10 { // other clients may change the record at the same time
		st := &c.monitor.View().Masters[i]
		record, done, err := wanted(i, st, has)
		if done || err != nil {
			return err
		}
		record.Stamp = "" // each write gets a new stamp
		err = c.monitor.Step(ctx, i, scripts.AdmitRequest{
			Step: step, Identity: record.Identity, Seen: st.Text, Record: record,
			Median: c.ballots.LatestCorrect(c.cfg.Clock.Now()),
		})
		if err != nil {
			return err
		}
	}
	return errChanging
}

var errChanging = errors.New("other clients keep changing the admission record")

// Check implements Check of package admin.
func (c *Client) Check(ctx context.Context) (redlockinfo.Verdict, error) {
	if !c.enter() {
		return redlockinfo.Verdict{}, lease.ErrClosed
	}
	defer c.leave()
	half, cancel := halved(ctx)
	view, _ := c.monitor.ReadRecords(half) // ignore the error: the states show which masters were not read
	cancel()
	opts := diagnose.Options{
		Prefix: c.cfg.Prefix, Unguarded: c.cfg.MaxTTL == 0, Admitted: view.Voting != 0,
	}
	for _, i := range view.Config.Order {
		if addr := c.pool.Addr(i); c.cfg.remembers(addr) {
			opts.Durable = append(opts.Durable, addr)
		}
	}
	report, err := diagnose.Masters(ctx, c.pool, opts)
	if err != nil {
		return redlockinfo.Verdict{}, err
	}
	for _, i := range view.Config.Order { // a contradiction is decided by a vote
		if slices.ContainsFunc(report, func(f redlockinfo.Finding) bool { return f.NoVote && f.Master == c.pool.Addr(i) }) {
			c.sender.Health.Doubt(i)
		}
	}
	_ = c.unhealthy(ctx)
	return c.present().Judge(report), nil
}

// halved returns a context that ends after half of the time that ctx leaves.
func halved(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
