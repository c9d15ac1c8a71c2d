package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// WithObserver has the Locker write no admission records: it starts and ends no quarantine. It is for commands that
// look at a fleet, and whose prefix may be mistyped.
func WithObserver() Option { return lockerOption(func(c *config) { c.observer = true }) }

// Masters tells the state of each master, in the order in which they were named. It sends nothing and does not block.
func (l *Locker) Masters() []MasterInfo { return l.mastersOf(l.voters.View()) }

func (l *Locker) mastersOf(v *admission.View) []MasterInfo {
	list := make([]MasterInfo, 0, v.Config.N())
	for _, i := range v.Config.Order {
		list = append(list, l.masterInfo(i, &v.Masters[i]))
	}
	return list
}

// masterInfo describes master i.
func (l *Locker) masterInfo(i int, st *admission.State) MasterInfo {
	info := MasterInfo{
		At: time.Now(), Addr: l.pool.Addr(i), Group: l.cfg.group.Number, State: st.Phase.String(), Guard: st.Longest, Epoch: st.Epoch,
		Err: st.Err, Owed: l.pool.Owed(i),
	}
	if st.Phase == admission.InQuarantine && st.Over > 0 {
		now := l.cfg.clock.Now()
		info.Left = max(0, ballot.Span(st.Over-min(l.ballots.Own(now, i), l.ballots.Median(now))))
	}
	return info
}

// Ready waits until each master has answered or is known to be down, and whether it votes has been looked up, or
// until ctx ends; then it tells the states as [Locker.Masters] does. A test calls it, so that its first lock is on all
// masters; a program that wants to fail early calls [Locker.WaitReady]. No program must: calls wait for what they need.
func (l *Locker) Ready(ctx context.Context) []MasterInfo {
	view, _ := l.voters.Await(ctx, (*admission.View).Settled) // an early end shows in the states
	return l.mastersOf(view)
}

// stopped is the error of a call about the masters that ended because of cause.
func (l *Locker) stopped(op string, cause error) error {
	return failed(op, l.cfg.prefix, &round.Failure{Cause: cause})
}

// withRecords is a call that does f with a View for which all records were read once more.
func (l *Locker) withRecords(ctx context.Context, op string, f func(*admission.View) error) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	view, err := l.voters.Look(ctx)
	if err != nil {
		return l.stopped(op, err)
	}
	return f(view)
}

// AdmitNow lets masters vote at once, without their quarantine. It is for people who know that no lock of this prefix
// is held anywhere: on new masters, in tests, in benchmarks. If somebody does hold one, two holders at a time are
// possible until its TTL is over.
//
// It returns when every master votes. A master that is down, or that cannot be admitted, is tried until ctx ends, so
// AdmitNow may be called while servers start. One that votes and loses its data meanwhile is not admitted again: it
// waits in quarantine. If a master that can be read belongs to another configuration than this Locker has, AdmitNow
// returns an error and has changed no master: see [ErrMasterList], [ErrOldMasters]. It needs the records of a majority,
// so that it sees that. If ctx ends first, the error lists the masters that do not vote; the others vote. Calling it
// again is harmless. With [WithoutGuard] there is nothing to do. Tests that have just started their servers find
// redlocktest.Admit shorter.
func (l *Locker) AdmitNow(ctx context.Context) error {
	if !l.enter() {
		return ErrClosed
	}
	defer l.leave()
	if l.cfg.guard == 0 {
		return nil
	}
	view, err := l.voters.Look(ctx)
	if refusal := objection(view); err == nil && refusal != nil {
		return l.notVoting("admit", view, view.Config, refusal)
	}
	if err == nil {
		view, err = l.voters.Admit(ctx, func(v *admission.View) bool { return v.Voting == v.Config.Rule.All() })
	}
	if err == nil {
		return nil
	}
	return l.notVoting("admit", view, view.Config, err)
}

// objection returns why the masters of a view belong to another configuration than that of the view; nil if none does.
func objection(view *admission.View) error {
	for _, i := range view.Config.Order {
		err := view.Masters[i].Err
		for _, other := range []error{ErrMasterList, ErrOldMasters, ErrIncomplete, ErrGroup} {
			if errors.Is(err, other) {
				return other
			}
		}
	}
	return nil
}

// notVoting is the error of a call that ended because of cause. It lists the masters of c that do not vote.
func (l *Locker) notVoting(op string, view *admission.View, c *quorum.Config, cause error) error {
	seen := &admission.View{Config: c, Masters: view.Masters}
	for _, i := range c.Order {
		if view.Masters[i].Phase == admission.Voting {
			seen.Voting |= quorum.One(i)
		}
	}
	f := l.sender.NoQuorum(seen, op, cause)
	if f.Granted, f.Open = seen.Voting.Len(), 0; c.Rule.Won(seen.Voting) {
		f.Decision = nil
	}
	return failed(op, l.cfg.prefix, f)
}

// Quarantine puts the master of this name into quarantine. It replaces an admission record that names other masters, or
// that cannot be read; then no client may need that record. It changes nothing, and returns [ErrMasterList], unless a
// majority of the masters names the configuration of this Locker, or no other master names another one.
func (l *Locker) Quarantine(ctx context.Context, addr string) error {
	if l.cfg.guard == 0 {
		return errUnguarded
	}
	return l.withRecords(ctx, "quarantine", func(view *admission.View) error {
		for _, i := range view.Config.Order {
			if l.pool.Addr(i) == addr {
				return l.voters.Quarantine(ctx, i)
			}
		}
		return invalid("no master is named %q", addr)
	})
}

var errUnguarded = invalid("the restart guard is off in this Locker, so there are no admission records")

// RaiseGuardTime allows TTLs up to g in the fleet, while programs run and locks are held. It is what an operator does
// before programs use longer TTLs; then they get the new [WithGuardTime], one after the other, and after that the
// longer TTL.
//
// It writes in two steps. First every master is to have a quarantine of g, so that no master that loses its data
// votes earlier; only when all have it, each is to accept TTLs up to g. So all masters must be up. If it ends early,
// some have a longer quarantine and no lock is longer. Calling it again is harmless. Each program that runs reads the
// records anew: a Lock is a round trip later, a TryLock may fail once.
//
// The guard time is lowered by admitting the masters anew with nobody running: stop all programs, delete the
// admission records, and start programs with the smaller one.
//
// Errors: ErrInvalidOption for a guard time out of range, below what a master has, or above the repl-backlog-ttl of
// one, and if the guard is off; ErrNoQuorum with the reason of each master that does not have it; that of ctx;
// ErrClosed.
func (l *Locker) RaiseGuardTime(ctx context.Context, g time.Duration) error {
	switch {
	case l.cfg.guard == 0:
		return errUnguarded
	case g < MinTTL || g > MaxTTL || g%time.Millisecond != 0:
		return invalid("guard time %v: it is from %v to %v, in whole milliseconds", g, MinTTL, MaxTTL)
	}
	return l.withRecords(ctx, "guard", func(view *admission.View) error {
		for _, i := range view.Config.Order {
			if have := view.Masters[i].Longest; have > g {
				return invalid("guard time %v: %s has %v; it is lowered by admitting all masters anew with nobody running",
					g, l.pool.Addr(i), have)
			}
			if err := admission.ShortBacklog(view.Masters[i].Backlog, g); err != nil {
				return invalid("guard time %v: %s would lose its vote: %v", g, l.pool.Addr(i), err)
			}
		}
		all := quorum.Rule{Old: view.Config.Rule.All()}
		err := l.write(ctx, "guard", scripts.AdmitGuard, all, true, func(st *admission.State, r *scripts.Record) (bool, error) {
			r.Quarantine = max(r.Quarantine, g)
			return st.Quarantine >= g, disagrees(st)
		})
		if err != nil {
			return err
		}
		return l.write(ctx, "guard", scripts.AdmitGuard, all, true, func(st *admission.State, r *scripts.Record) (bool, error) {
			r.Longest = g
			return st.Quarantine >= g && st.Longest >= g, disagrees(st)
		})
	})
}

// disagrees returns an error if the record of a master is of another configuration than that of its view.
func disagrees(st *admission.State) error {
	if st.Agrees {
		return nil
	}
	return ErrMasterList
}

// write has the records of masters changed until has is true of a majority of each set of the rule; with every, of all
// masters. has reports whether a master needs no change, and otherwise changes r, its record.
func (l *Locker) write(
	ctx context.Context, op string, step scripts.AdmitStep, rule quorum.Rule, every bool,
	has change,
) error {
	err := l.each(ctx, op, rule, every, func(i int) error { // nothing is written if that cannot succeed
		_, _, err := wanted(&l.voters.View().Masters[i], has)
		return err
	})
	if err != nil {
		return err
	}
	return l.each(ctx, op, rule, every, func(i int) error { return l.writeOne(ctx, i, step, has) })
}

// each calls do for the masters of a rule, and fails unless it succeeds for a majority of each set; with every, for all.
func (l *Locker) each(ctx context.Context, op string, rule quorum.Rule, every bool, do func(i int) error) error {
	var have quorum.Set
	f := &round.Failure{Decision: ErrNoQuorum, Quorum: rule.Least(), N: rule.N()}
	for i := range rule.All().All() {
		err := do(i)
		var named *pool.Error
		switch {
		case err == nil:
			have |= quorum.One(i)
			continue
		case errors.Is(err, ErrClosed):
			return err
		case ctx.Err() != nil:
			return l.stopped(op, contextError(ctx))
		case !errors.As(err, &named):
			err = &pool.Error{Addr: l.pool.Addr(i), Op: op, Err: err}
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

// A change reports whether a master has what is to be written, and otherwise changes r, its record. It returns an error
// if the master must not have it.
type change func(st *admission.State, r *scripts.Record) (has bool, err error)

// wanted returns the record that a master is to have, and whether it has it.
func wanted(st *admission.State, f change) (r scripts.Record, has bool, err error) {
	if r, err = scripts.ParseRecord(st.Record); err != nil {
		return r, false, cmp.Or(st.Err, errors.New("it has no admission record that this client may change"))
	}
	if has, err = f(st, &r); err != nil {
		err = cmp.Or(st.Err, err)
	}
	return r, has, err
}

// writeOne is write of one master.
func (l *Locker) writeOne(
	ctx context.Context, i int, step scripts.AdmitStep, has change,
) error {
	for range 10 { // others may change it at the same time
		st := &l.voters.View().Masters[i]
		record, done, err := wanted(st, has)
		if done || err != nil {
			return err
		}
		record.Stamp = "" // this write gets its own
		err = l.voters.Step(ctx, i, scripts.AdmitRequest{
			Step: step, Identity: record.Identity, Seen: st.Record, Record: record,
		})
		if err != nil {
			return err
		}
	}
	return errors.New("its admission record could not be changed; others have changed it meanwhile")
}

// Check tells what is not as it should be on the masters: what [pool.Pool.Check] finds with the prefix and the
// durable masters of this Locker, and what stands in the way of their votes. That no quorum votes is a finding of its
// own, and a failure. The findings are sorted by master, and by severity, the gravest first. Nothing is the good
// answer.
//
// It asks over connections of its own, and returns within two dial timeouts, or when ctx ends.
func (l *Locker) Check(ctx context.Context) ([]pool.Finding, error) {
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	view, _ := l.voters.Look(ctx) // an early end shows in the states
	opts := pool.CheckOptions{Prefix: l.cfg.prefix, Unguarded: l.cfg.guard == 0}
	order := make(map[string]int, view.Config.N())
	for k, i := range view.Config.Order {
		addr := l.pool.Addr(i)
		if order[addr] = k + 1; l.cfg.remembers(addr) {
			opts.Durable = append(opts.Durable, addr)
		}
	}
	list, err := l.pool.Check(ctx, opts)
	if err != nil {
		return nil, err
	}
	states := l.mastersOf(view)
	longest := slices.MaxFunc(states, func(a, b MasterInfo) int { return cmp.Compare(a.Guard, b.Guard) }).Guard
	for _, m := range states {
		list = append(list, m.findings(l.cfg.guard, longest, view.Config.Rule.Won(view.Voting))...)
	}
	if r := view.Config.Rule; !r.Won(view.Voting) {
		list = append(list, pool.Finding{
			Master: l.fleet(), Severity: pool.Failure, About: "quorum",
			What:      fmt.Sprintf("%d of %d masters vote, %d are needed", view.Voting.Len(), r.N(), r.Least()),
			Endangers: "no lock can be taken",
			Do: fmt.Sprintf("see to the masters below; if all are new, look whether the prefix %q is right",
				l.cfg.prefix),
		})
	}
	slices.SortStableFunc(list, func(a, b pool.Finding) int {
		return cmp.Or(cmp.Compare(order[a.Master], order[b.Master]), cmp.Compare(b.Severity, a.Severity))
	})
	return list, nil
}

// fleet is what findings call all masters together.
func (l *Locker) fleet() string {
	if l.member == nil {
		return "fleet"
	}
	return fmt.Sprintf("group %d of %d", l.cfg.group.Number, l.cfg.group.Of)
}

// findings are about the admission of one master, for a program with this guard time in a fleet with this longest TTL,
// of which a quorum votes or not. That it is down is not told again.
func (m MasterInfo) findings(guard, longest time.Duration, quorum bool) (list []pool.Finding) {
	find := func(s pool.Severity, about, what, endangers, do string) {
		list = append(list, pool.Finding{
			Master: m.Addr, Severity: s, About: about, What: what, Endangers: endangers, Do: do,
		})
	}
	const noVote = "until then it has no vote, and one failure less is survived"
	switch m.State {
	case admission.InQuarantine.String():
		what, do := plain(m.Err), "it votes by itself when a program that takes locks has waited for the end of it"
		if m.Left > 0 {
			what += fmt.Sprintf(", %v from now", m.Left.Round(time.Second))
		}
		if !quorum {
			do += "; " + mayAdmit
		}
		find(pool.Warning, "quarantine", what, noVote, do)
	case admission.Blocked.String():
		find(pool.Failure, "quarantine", fmt.Sprintf("it cannot be admitted: %v", m.Err), noVote, "mend what it says")
	case admission.Connecting.String():
		find(pool.Warning, "quarantine", "whether it votes is not known yet", noVote, "ask again in a moment")
	}
	switch {
	case m.Guard == 0:
	case m.Guard < longest:
		find(pool.Warning, "guard time",
			fmt.Sprintf("it accepts TTLs up to %v, another master up to %v", m.Guard, longest),
			"it has no vote on longer ones", fmt.Sprintf("raise it once more: redlock guard -set %v", longest))
	case guard > m.Guard:
		find(pool.Notice, "guard time",
			fmt.Sprintf("the fleet accepts TTLs up to %v, the guard time of this program is %v", m.Guard, guard),
			"longer TTLs are refused",
			fmt.Sprintf("raise it in the fleet (redlock guard -set %v), or lower WithGuardTime", guard))
	}
	return list
}
