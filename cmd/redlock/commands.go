package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func checkCommand(a *app) *cobra.Command {
	return a.onMasters(&cobra.Command{
		Use:   "check [URL...]",
		Short: "report problems of the masters, their risks, and what to do",
		Long: `Reports whether locks can be taken, and then the problems of the masters, their risks, and for each
the one next step that fixes it. It acquires and releases a lock of a name of its own, and writes nothing else.

Exit status: 0 if nothing endangers locks, 1 if something does, 2 if no lock can be taken.`,
		Example: `  redlock check redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
	}, func(ctx context.Context, c *client) error { return check(ctx, &a.console, c) })
}

func statusCommand(a *app) *cobra.Command {
	return a.onMasters(&cobra.Command{
		Use:   "status [URL...]",
		Short: "show the state of each master",
		Long: `Shows the state of each master, and whether a quorum of them can grant a lock. It acquires and
releases a lock of a name of its own, and writes nothing else.

Exit status: 0 if a quorum can grant a lock, else 2.`,
		Example: `  redlock status --config locks.json`,
	}, func(ctx context.Context, c *client) error {
		c.settled(ctx)
		_ = c.Healthy(ctx) // the states contain the reasons
		return showMasters(&a.console, c, c.Admin().Masters(), nil)
	})
}

func admitCommand(a *app) *cobra.Command {
	var force bool
	cmd := a.onMasters(&cobra.Command{
		Use:   "admit [URL...]",
		Short: "let all masters vote at once, if no lock is held on them",
		Long: `Lets all masters vote at once, without their quarantine. Use it only if no lock of this prefix
is held on them, as on new masters. If a client does hold one, two holders at a
time are possible until its TTL has expired. If some masters vote already, clients may hold locks
on them; use --force then. If a record names other masters, or a later epoch, nothing is written.

If masters have been used before, it shows the clients that are connected, and asks; --yes does it without asking.`,
		Example: `  redlock admit redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
	}, func(ctx context.Context, c *client) error { return admit(ctx, &a.console, c, force) })
	a.addYes(cmd, nil)
	cmd.Flags().BoolVar(&force, "force", false, "admit even if some of the masters vote already")
	return cmd
}

// admit lets all masters vote. It asks for confirmation if masters have been used before, unless all of them vote
// already.
func admit(ctx context.Context, con *console, c *client, force bool) error {
	list := c.settled(ctx)
	if err := inUse(c.setsOf(list)); err != nil && !force {
		return showMasters(con, c, list, err)
	}
	ch := &change{command: "admit", question: "Can no client hold a lock on them? Admit them?",
		undone: "none was admitted"}
	for _, m := range list {
		if m.State == "connecting" || m.State == "down" || m.State == "quarantine" {
			ch.effects = append(ch.effects, fmt.Sprintf("%s votes at once: it is in the state %s, and may have forgotten a "+
				"lock that a client still holds", m.Addr, m.State))
		}
	}
	used := slices.ContainsFunc(list, func(m redlockinfo.Master) bool { return m.MaxTTL > 0 })
	if !used || len(ch.effects) == 0 {
		ch = nil
	}
	return perform(ctx, con, c, ch, c.Admin().Admit)
}

// inUse returns an error if only some masters of a set vote, because clients may then hold locks.
func inUse(sets []masterSet) error {
	for _, set := range sets {
		if n := count(set.masters, nil, "voting"); n > 0 && n < len(set.masters) {
			return fmt.Errorf("redlock admit: %d of %d %s vote, so clients may hold locks, and the others may have "+
				"forgotten them; they vote by themselves after their quarantine. If no client can hold a lock: --force",
				n, len(set.masters), set.name)
		}
	}
	return nil
}

func quarantineCommand(a *app) *cobra.Command {
	var master string
	cmd := a.onMasters(&cobra.Command{
		Use:   "quarantine --master ADDR [URL...]",
		Short: "put one master into quarantine, to replace its admission record",
		Long: `Puts one master into quarantine, named as status names it. It replaces an admission record that cannot be
read, or that names other masters and that no client needs: check that first. The URLs are those of all masters; if the
other records say that this list is wrong, nothing is written. It shows its effects on the clients, and asks for
confirmation; in scripts, without a terminal, --yes is needed.`,
		Example: `  redlock quarantine --master 10.0.0.2:6379 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
	}, func(ctx context.Context, c *client) error {
		return perform(ctx, &a.console, c, &change{
			command: "quarantine", target: master, effects: loses(master, c.setsOf(c.settled(ctx))),
			question: "Put it into quarantine?", undone: "nothing was changed",
		}, func(ctx context.Context) error { return c.Admin().Quarantine(ctx, master) })
	})
	a.addYes(cmd, func() bool { return true })
	cmd.Flags().StringVar(&master, "master", "", "address of the master, as status names it")
	_ = cmd.MarkFlagRequired("master") // fails only for an unknown flag
	return cmd
}

func guardCommand(a *app) *cobra.Command {
	var set time.Duration
	cmd := a.onMasters(&cobra.Command{
		Use:   "guard [--set DURATION] [URL...]",
		Short: "show or raise the max TTL of the deployment",
		Long: `Shows the max TTL of each master, the longest TTL that a client may use. With --set it is raised in the
whole deployment while clients run, before any of them uses a longer TTL. For that all masters must be up. It shows the
effects, and asks for confirmation; in scripts, without a terminal, --yes is needed.`,
		Example: `  redlock guard --set 60s --config locks.json`,
	}, func(ctx context.Context, c *client) error {
		if set == 0 {
			return showMasters(&a.console, c, c.settled(ctx), nil)
		}
		return perform(ctx, &a.console, c, &change{
			command: "guard", question: "Raise it?", undone: "nothing was changed",
			effects: []string{fmt.Sprintf("every master accepts TTLs up to %v, and does not vote for %v after each restart; "+
				"it cannot be lowered while clients run", set, max(set, 30*time.Second))},
		}, func(ctx context.Context) error { return c.Admin().RaiseMaxTTL(ctx, set) })
	})
	a.addYes(cmd, func() bool { return set != 0 })
	cmd.Flags().DurationVar(&set, "set", 0, "the new max TTL")
	return cmd
}

// perform makes a change if the user approves it, and prints the states of the masters. If ch is nil, it does not
// ask.
func perform(ctx context.Context, con *console, c *client, ch *change, do func(context.Context) error) error {
	if ch != nil {
		if err := approve(ctx, con, c, ch); err != nil {
			return showMasters(con, c, c.Admin().Masters(), err)
		}
	}
	ctx, cancel := c.within()
	defer cancel()
	err := do(ctx)
	return showMasters(con, c, c.settled(ctx), err)
}

// check reports the problems of the masters.
func check(ctx context.Context, con *console, c *client) error {
	findings, err := c.Admin().Check(ctx)
	if err != nil {
		return &exit{exitDanger, err}
	}
	findings = slices.DeleteFunc(findings, func(f pool.Finding) bool { // about this command, which takes no locks
		return f.About == "max TTL" && f.Severity == pool.Notice && c.config.Guard == ""
	})
	code, spare := exitDone, c.tools.Spare()
	switch {
	case spare < 0:
		code = exitNoQuorum
	case slices.ContainsFunc(findings, func(f pool.Finding) bool { return f.Severity > pool.Notice }):
		code = exitDanger
	}
	verdict := canLock(spare)
	con.result(jsonFindings(verdict, findings, code), "locks can be taken: "+verdict+"\n"+findingsText(findings))
	return leave(code)
}

// findingsText returns the text of the findings. A finding that is the same for several masters is listed once.
func findingsText(list []pool.Finding) (text string) {
	for len(list) > 0 {
		f, masters := list[0], []string{}
		list = slices.DeleteFunc(list, func(g pool.Finding) bool {
			master := g.Master
			if g.Master = f.Master; g != f {
				return false
			}
			if !slices.Contains(masters, master) { // a cluster is a master of each shard
				masters = append(masters, master)
			}
			return true
		})
		text += fmt.Sprintf("%s: %v: %s\n    %s\n    risk: %s\n    fix: %s\n",
			strings.Join(masters, ", "), f.Severity, f.About, f.What, f.Endangers, f.Do)
	}
	return text
}

// canLock returns the verdict for a deployment in which spare more masters may fail.
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

// showMasters prints the masters of a deployment, and whether a quorum of each shard votes. During a change of the
// masters, a quorum of each set is needed. err is the error of the preceding operation, or nil.
func showMasters(con *console, c *client, list []redlockinfo.Master, err error) error {
	status, code, text := jsonStatus{Masters: jsonMasters(list)}, exitDone, ""
	configurations := c.Admin().Configuration()
	for i, shard := range shardsOf(list) {
		text += mastersText(shard)
		if shard[0].Shard > 0 {
			text += fmt.Sprintf("shard %d: ", shard[0].Shard)
		}
		masters, next := configurations[i].Masters, configurations[i].Next
		for k, set := range [][]string{masters, next} {
			voting, needed := count(shard, set, "voting"), len(set)/2+1
			switch {
			case len(set) == 0:
				continue
			case voting < needed:
				code = exitNoQuorum
			}
			if len(next) > 0 {
				text += []string{"old masters: ", "next masters: "}[k]
			}
			text += fmt.Sprintf("%d of %d vote, %d are needed\n", voting, len(set), needed)
			status.Voting, status.Needed = status.Voting+voting, status.Needed+needed
		}
	}
	con.result(status, text)
	if err != nil {
		return &exit{max(code, exitDanger), err}
	}
	return leave(code)
}

// mastersText returns a line about each master.
func mastersText(list []redlockinfo.Master) (text string) {
	for _, m := range list {
		text += fmt.Sprintf("%-28s %s", m.Addr, m.State)
		if m.Left > 0 {
			text += fmt.Sprintf(", %v left", m.Left.Round(time.Second))
		}
		if m.MaxTTL > 0 {
			text += fmt.Sprintf(", max TTL %v", m.MaxTTL)
		}
		if m.Epoch > 0 {
			text += fmt.Sprintf(", epoch %d", m.Epoch)
		}
		if m.Err != nil {
			text += fmt.Sprintf(": %v", m.Err)
		}
		text += "\n"
	}
	return text
}
