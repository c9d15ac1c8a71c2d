package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [URL...]",
		Short: "report problems of the masters, their risks, and what to do",
		Long: `Reports whether locks can be taken, and then the problems of the masters, their risks, and for each
the one next step that fixes it. It acquires and releases a lock of a name of its own, and writes nothing else.

Exit status: 0 if nothing endangers locks, 1 if something does, 2 if no lock can be taken.`,
		Example: `  redlock check redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, a.check)
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [URL...]",
		Short: "show the state of each master",
		Long: `Shows the state of each master, and whether a quorum of them can grant a lock. It acquires and
releases a lock of a name of its own, and writes nothing else.

Exit status: 0 if a quorum can grant a lock, else 2.`,
		Example: `  redlock status --config locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, func(ctx context.Context, l *redlock.Locker, _ *configfile.Config) int {
				settled(ctx, l)
				_ = l.Healthy(ctx) // the states have the reasons
				return a.report(l, l.Admin().Masters(), nil)
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	return cmd
}

func (a *app) admitCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "admit [URL...]",
		Short: "let all masters vote at once, if no lock is held on them",
		Long: `Lets all masters vote at once, without their quarantine. It is for those who know that no lock of
this prefix is held on them, as on new masters. If a client does hold one, two holders at a
time are possible until its TTL has expired. If some masters vote already, clients may hold locks
on them; use --force then. If a record names other masters, or a later epoch, nothing is written.

If masters have been used before, it shows the clients that are connected, and asks; --yes does it without asking.`,
		Example: `  redlock admit redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd, args, func(
				ctx context.Context, l *redlock.Locker, _ *configfile.Config, pools []*pool.Pool,
			) int {
				return a.admit(ctx, l, pools, force)
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "also where some of the masters vote already")
	return cmd
}

// admit lets all masters vote. It asks if masters have been used before, unless all of them vote already.
func (a *app) admit(ctx context.Context, l *redlock.Locker, pools []*pool.Pool, force bool) int {
	list := settled(ctx, l)
	err := inUse(list)
	if force {
		err = nil
	}
	used := func(m redlockinfo.Master) bool { return m.MaxTTL > 0 }
	stays := func(m redlockinfo.Master) bool {
		return m.State != "connecting" && m.State != "down" && m.State != "quarantine"
	}
	ended := slices.DeleteFunc(slices.Clone(list), stays)
	if err == nil && slices.ContainsFunc(list, used) && len(ended) > 0 {
		ch := &change{command: "admit", question: "Can no client hold a lock on them? Admit them?",
			undone: "none was admitted"}
		for _, m := range ended {
			ch.effects = append(ch.effects, fmt.Sprintf("%s votes at once: it is in the state %s, and may have forgotten a "+
				"lock that a client still holds", m.Addr, m.State))
		}
		err = a.approve(ctx, l, pools, ch)
	}
	if err == nil {
		ctx, cancel := a.within()
		defer cancel()
		err = l.Admin().Admit(ctx)
		list = settled(ctx, l)
	}
	return a.report(l, list, err)
}

// inUse returns the error for admitting the masters of a shard if only some of them vote.
func inUse(list []redlockinfo.Master) error {
	voting, all := map[int]int{}, map[int]int{}
	for _, m := range list {
		if all[m.Shard]++; m.State == "voting" {
			voting[m.Shard]++
		}
	}
	for shard, n := range voting {
		if n < all[shard] {
			return fmt.Errorf("redlock admit: %d of %d masters vote, so clients may hold locks, and the others may have "+
				"forgotten them; they vote by themselves after their quarantine. If no client can hold a lock: --force",
				n, all[shard])
		}
	}
	return nil
}

func (a *app) quarantineCommand() *cobra.Command {
	var master string
	cmd := &cobra.Command{
		Use:   "quarantine --master ADDR [URL...]",
		Short: "put one master into quarantine, to replace its admission record",
		Long: `Puts one master into quarantine, named as status names it. It replaces an admission record that cannot be
read, or that names other masters and that no client needs: look first. The URLs are those of all masters; if the
other records say that this list is wrong, nothing is written. It shows what will happen to which clients, and asks;
in scripts, without a terminal, --yes is needed.`,
		Example: `  redlock quarantine --master 10.0.0.2:6379 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.needsAnswer(cmd); err != nil {
				return err
			}
			return a.operate(cmd, args, func(
				ctx context.Context, l *redlock.Locker, _ *configfile.Config, pools []*pool.Pool,
			) int {
				return a.changed(ctx, l, pools, &change{
					command: "quarantine", target: master, effects: loses(master, settled(ctx, l)),
					question: "Put it into quarantine?", undone: "nothing was changed",
				}, func(ctx context.Context) error { return l.Admin().Quarantine(ctx, master) })
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd.Flags())
	cmd.Flags().StringVar(&master, "master", "", "address of the master, as status names it")
	_ = cmd.MarkFlagRequired("master") // fails only for an unknown flag
	return cmd
}

func (a *app) guardCommand() *cobra.Command {
	var set time.Duration
	cmd := &cobra.Command{
		Use:   "guard [--set DURATION] [URL...]",
		Short: "show or raise the max TTL of the deployment",
		Long: `Shows the max TTL of each master, the longest TTL that a client may use. With --set it is raised in the
whole deployment while clients run, before any of them uses a longer TTL. For that all masters must be up. It shows what
will happen, and asks; in scripts, without a terminal, --yes is needed.`,
		Example: `  redlock guard --set 60s --config locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if set == 0 {
				return a.observe(cmd, args, func(ctx context.Context, l *redlock.Locker, _ *configfile.Config) int {
					return a.report(l, settled(ctx, l), nil)
				})
			}
			if err := a.needsAnswer(cmd); err != nil {
				return err
			}
			return a.operate(cmd, args, func(
				ctx context.Context, l *redlock.Locker, _ *configfile.Config, pools []*pool.Pool,
			) int {
				return a.changed(ctx, l, pools, &change{
					command: "guard", question: "Raise it?", undone: "nothing was changed",
					effects: []string{fmt.Sprintf("every master accepts TTLs up to %v, and does not vote for %v after each restart; "+
						"it cannot be lowered while clients run", set, max(set, 30*time.Second))},
				}, func(ctx context.Context) error { return l.Admin().RaiseMaxTTL(ctx, set) })
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd.Flags())
	cmd.Flags().DurationVar(&set, "set", 0, "the new max TTL")
	return cmd
}

// changed makes a change if the user approves it, and reports the masters.
func (a *app) changed(
	ctx context.Context, l *redlock.Locker, pools []*pool.Pool, ch *change, do func(context.Context) error,
) int {
	if err := a.approve(ctx, l, pools, ch); err != nil {
		return a.report(l, l.Admin().Masters(), err)
	}
	ctx, cancel := a.within()
	defer cancel()
	err := do(ctx)
	return a.report(l, settled(ctx, l), err)
}

func (a *app) check(ctx context.Context, l *redlock.Locker, c *configfile.Config) int {
	findings, err := l.Admin().Check(ctx)
	if err != nil {
		a.complain(err)
		return exitDanger
	}
	code := exitDone
	findings = slices.DeleteFunc(findings, func(f pool.Finding) bool { // about this command, which takes no locks
		return f.About == "max TTL" && f.Severity == pool.Notice && c.Guard == ""
	})
	for _, f := range findings {
		if f.Severity > pool.Notice {
			code = exitDanger
		}
	}
	spare := private.Of(l).Spare()
	if spare < 0 {
		code = exitNoQuorum
	}
	verdict := canLock(spare)
	if a.json {
		a.encode(a.stdout, jsonFindings(verdict, findings, code))
		return code
	}
	fmt.Fprintf(a.stdout, "locks can be taken: %s\n", verdict)
	for len(findings) > 0 { // those that several masters share are printed once
		f, masters := findings[0], []string{}
		findings = slices.DeleteFunc(findings, func(g pool.Finding) bool {
			master := g.Master
			if g.Master = f.Master; g != f {
				return false
			}
			if !slices.Contains(masters, master) { // that of a cluster is in each shard
				masters = append(masters, master)
			}
			return true
		})
		fmt.Fprintf(a.stdout, "%s: %v: %s\n    %s\n    risk: %s\n    fix: %s\n",
			strings.Join(masters, ", "), f.Severity, f.About, f.What, f.Endangers, f.Do)
	}
	return code
}

// canLock returns the verdict on masters of which this many may still fail.
func canLock(spare int) string {
	switch spare {
	case -1:
		return "no"
	case 0:
		return "yes, no failure is survived"
	case 1:
		return "yes, one failure is survived"
	}
	return fmt.Sprintf("yes, %d failures are survived", spare)
}

// settled returns the states of the masters once they are known, or ctx has ended.
func settled(ctx context.Context, l *redlock.Locker) []redlockinfo.Master {
	private.Of(l).Settle(ctx)
	return l.Admin().Masters()
}

// report prints the masters of a deployment, and whether a quorum of them votes, of each shard, or of both sets while
// the masters are changed. err is why something was not done to them.
func (a *app) report(l *redlock.Locker, list []redlockinfo.Master, err error) int {
	status, code := jsonStatus{Masters: jsonMasters(list)}, exitDone
	for _, sets := range l.Admin().Configuration() {
		shard, n := list[0].Shard, 0
		for ; n < len(list) && list[n].Shard == shard; n++ {
			if !a.json {
				a.line(list[n])
			}
		}
		if !a.json && shard > 0 {
			fmt.Fprintf(a.stdout, "shard %d: ", shard)
		}
		for k, set := range [][]string{sets.Masters, sets.Next} {
			voting, needed := count(list[:n], set, "voting"), len(set)/2+1
			switch {
			case len(set) == 0:
				continue
			case voting < needed:
				code = exitNoQuorum
			}
			if !a.json && len(sets.Next) > 0 {
				fmt.Fprint(a.stdout, []string{"old masters: ", "next masters: "}[k])
			}
			if !a.json {
				fmt.Fprintf(a.stdout, "%d of %d vote, %d are needed\n", voting, len(set), needed)
			}
			status.Voting, status.Needed = status.Voting+voting, status.Needed+needed
		}
		list = list[n:]
	}
	if a.json {
		a.encode(a.stdout, status)
	}
	if err != nil {
		a.complain(err)
		code = max(code, exitDanger)
	}
	return code
}

// line prints one master.
func (a *app) line(m redlockinfo.Master) {
	fmt.Fprintf(a.stdout, "%-28s %s", m.Addr, m.State)
	if m.Left > 0 {
		fmt.Fprintf(a.stdout, ", %v left", m.Left.Round(time.Second))
	}
	if m.MaxTTL > 0 {
		fmt.Fprintf(a.stdout, ", max TTL %v", m.MaxTTL)
	}
	if m.Epoch > 0 {
		fmt.Fprintf(a.stdout, ", epoch %d", m.Epoch)
	}
	if m.Err != nil {
		fmt.Fprintf(a.stdout, ": %v", m.Err)
	}
	fmt.Fprintln(a.stdout)
}
