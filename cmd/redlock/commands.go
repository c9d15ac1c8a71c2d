package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [URL...]",
		Short: "tell what is wrong with the masters, what it endangers, and what to do",
		Long: `Tells what is not as it should be on each master, what that endangers, and what to do about it. Writes nothing.

Exit status: 0 if nothing endangers locks, 1 if something does, 2 if fewer than a quorum of the masters vote.`,
		Example: `  redlock check redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, a.check)
		},
	}
	a.fleet.addTimeout(cmd.Flags())
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [URL...]",
		Short: "tell the state of each master",
		Long: `Tells the state of each master, and whether a quorum of them votes. Writes nothing.

Exit status: 0 if a quorum votes, else 2.`,
		Example: `  redlock status --config locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, func(ctx context.Context, l locks, _ *fleetConfig) int {
				return a.report(l.Ready(ctx), nil)
			})
		},
	}
	a.fleet.addTimeout(cmd.Flags())
	return cmd
}

func (a *app) admitCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "admit [URL...]",
		Short: "let all masters vote at once, if no lock is held on them",
		Long: `Lets all masters vote at once, without their quarantine. It is for those who know that no lock of
this prefix is held on them, as on new masters. If somebody does hold one, two holders at a
time are possible until its TTL is over. If some masters vote already, clients may hold locks
on them; use --force then. If a record names other masters, or a later epoch, nothing is written.`,
		Example: `  redlock admit redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, func(ctx context.Context, l locks, _ *fleetConfig) int {
				list := l.Ready(ctx)
				err := inUse(list)
				if err == nil || force {
					err = l.AdmitNow(ctx)
					list = l.Ready(ctx)
				}
				return a.report(list, err)
			})
		},
	}
	a.fleet.addTimeout(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "also where some of the masters vote already")
	return cmd
}

// inUse is the error of admitting masters of a group of which some vote and some do not.
func inUse(list []redlock.MasterInfo) error {
	voting, all := map[int]int{}, map[int]int{}
	for _, m := range list {
		if all[m.Group]++; m.State == "voting" {
			voting[m.Group]++
		}
	}
	for group, n := range voting {
		if n < all[group] {
			return fmt.Errorf("redlock admit: %d of %d masters vote, so programs may hold locks, and the others may have "+
				"forgotten them; they vote by themselves after their quarantine. If nobody can hold a lock: --force",
				n, all[group])
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
other records say that this list is wrong, nothing is written.`,
		Example: `  redlock quarantine --master 10.0.0.2:6379 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, func(ctx context.Context, l locks, _ *fleetConfig) int {
				err := l.Quarantine(ctx, master)
				return a.report(l.Ready(ctx), err)
			})
		},
	}
	a.fleet.addTimeout(cmd.Flags())
	cmd.Flags().StringVar(&master, "master", "", "address of the master, as status names it")
	_ = cmd.MarkFlagRequired("master") // it fails for a flag that is not there
	return cmd
}

func (a *app) guardCommand() *cobra.Command {
	var set time.Duration
	cmd := &cobra.Command{
		Use:   "guard [--set DURATION] [URL...]",
		Short: "tell or raise the guard time of the fleet",
		Long: `Tells the guard time of each master, the longest TTL that a program may use. With --set it is raised in the
whole fleet while programs run, before any of them uses a longer TTL. For that all masters must be up.`,
		Example: `  redlock guard --set 60s --config locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.observe(cmd, args, func(ctx context.Context, l locks, _ *fleetConfig) int {
				err := error(nil)
				if set != 0 {
					err = l.RaiseGuardTime(ctx, set)
				}
				return a.report(l.Ready(ctx), err)
			})
		},
	}
	a.fleet.addTimeout(cmd.Flags())
	cmd.Flags().DurationVar(&set, "set", 0, "the new guard time")
	return cmd
}

func (a *app) check(ctx context.Context, l locks, c *fleetConfig) int {
	findings, err := l.Check(ctx)
	if err != nil {
		a.complain(err)
		return exitDanger
	}
	code := exitDone
	findings = slices.DeleteFunc(findings, func(f pool.Finding) bool { // of this command, which takes no locks
		return f.About == "guard time" && f.Severity == pool.Notice && !c.ownGuard
	})
	for _, f := range findings {
		switch {
		case f.About == "quorum":
			code = exitNoQuorum
		case f.Severity > pool.Notice:
			code = max(code, exitDanger)
		}
	}
	if a.json {
		a.encode(a.stdout, jsonFindings(findings, code))
		return code
	}
	for _, f := range findings {
		fmt.Fprintf(a.stdout, "%s: %v: %s\n    %s\n    endangers: %s\n    to do: %s\n",
			f.Master, f.Severity, f.About, f.What, f.Endangers, f.Do)
	}
	if len(findings) == 0 {
		fmt.Fprintln(a.stdout, "nothing found")
	}
	return code
}

// report tells the masters of a fleet, and whether a quorum of them votes, of each group. err is why something was not
// done to them.
func (a *app) report(list []redlock.MasterInfo, err error) int {
	status, code := jsonStatus{Masters: jsonMasters(list)}, exitDone
	for len(list) > 0 {
		group, n, voting := list[0].Group, 0, 0
		for ; n < len(list) && list[n].Group == group; n++ {
			if list[n].State == "voting" {
				voting++
			}
			if !a.json {
				a.line(list[n])
			}
		}
		needed := n/2 + 1
		if voting < needed {
			code = exitNoQuorum
		}
		if !a.json && group > 0 {
			fmt.Fprintf(a.stdout, "group %d: ", group)
		}
		if !a.json {
			fmt.Fprintf(a.stdout, "%d of %d vote, %d are needed\n", voting, n, needed)
		}
		status.Voting, status.Needed, list = status.Voting+voting, status.Needed+needed, list[n:]
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

// line tells one master.
func (a *app) line(m redlock.MasterInfo) {
	fmt.Fprintf(a.stdout, "%-28s %s", m.Addr, m.State)
	if m.Left > 0 {
		fmt.Fprintf(a.stdout, ", %v left", m.Left.Round(time.Second))
	}
	if m.Guard > 0 {
		fmt.Fprintf(a.stdout, ", guard time %v", m.Guard)
	}
	if m.Epoch > 0 {
		fmt.Fprintf(a.stdout, ", epoch %d", m.Epoch)
	}
	if m.Err != nil {
		fmt.Fprintf(a.stdout, ": %v", m.Err)
	}
	fmt.Fprintln(a.stdout)
}
