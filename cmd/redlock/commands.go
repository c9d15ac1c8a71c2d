package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

func checkCommand(a *app) *cobra.Command {
	return a.onMasters(&cobra.Command{
		Use:   "check [URL...]",
		Short: "report the problems of the masters, their risks, and the fixes",
		Long: `Reports whether locks can be acquired, and lists the problems of the masters. For each problem it shows the
risk and the next step of the fix. Clients that use another list of masters are a problem too. It may acquire and
release a probe lock, and writes nothing else.

Exit status: 0 if no problem endangers locks, 1 if one does, 2 if no lock can be acquired.`,
		Example: `  redlock check redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
	}, func(ctx context.Context, c *client) error {
		return check(ctx, &a.console, c, a.deployment.setArguments())
	})
}

func statusCommand(a *app) *cobra.Command {
	return a.onMasters(&cobra.Command{
		Use:   "status [URL...]",
		Short: "show the state of each master",
		Long: `Shows the state of each master, and whether a quorum of them can grant a lock. It may
acquire and release a probe lock, and writes nothing else.

Exit status: 0 if a quorum can grant a lock, 1 if it can but clients use another list of masters, else 2.`,
		Example: `  redlock status --config locks.json`,
	}, func(ctx context.Context, c *client) error {
		c.settled(ctx)
		_ = c.Healthy(ctx) // not needed: the states contain the reasons
		err := c.misfit(ctx, a.deployment.setArguments())
		if err != nil {
			err = fmt.Errorf("redlock status: %w", err)
		}
		return showMasters(&a.console, c.set.Verdict(), err)
	})
}

func admitCommand(a *app) *cobra.Command {
	var force bool
	var from string
	cmd := a.onSome(&cobra.Command{
		Use:   "admit [URL...]",
		Short: "make all masters vote immediately, if no lock is held on them",
		Long: `Makes all masters vote immediately, without a quarantine. Use it only if no lock with this prefix is held on
them, for example if they are new. If a client does hold a lock, a second client can acquire the same lock until the
TTL has expired. If some masters vote already, clients may hold locks that the others have forgotten: the command then
requires --force. If a record names other masters, or a later epoch, nothing is written.

With --from, the names are distributed anew, over another number of shards or of buckets of a cluster. --from takes the
URLs of the previous layout, and the arguments are those of the new one. The command refuses while any name is locked.
It replaces the records of all masters: clients with the previous layout can no longer acquire or extend locks, and
masters that only the previous layout has vote for no client any more. All masters of both layouts must be up; leave out
those whose data is lost for good.

If masters have been used before, have a lease of any lock, have other clients, or do not list their clients, the
command lists the leases and the clients, and asks for confirmation; --yes skips the question. A client that was paused
or cut off may hold a lock without being listed. The leases are found by scanning, as with ls, so a restricted user also
needs the right +scan, and +client|list for the clients.`,
		Example: `  redlock admit redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
  redlock admit --from "$SHARD1 / $SHARD2 / $SHARD3" $SHARD1 / $SHARD2`,
	}, func(ctx context.Context, c *client) error {
		a.warn(c.set.WarningsOfPart()) // a change of the masters begins with the admission of the added ones
		if from != "" {
			return a.admitFrom(ctx, c, from)
		}
		return admit(ctx, &a.console, c, force)
	})
	a.addYes(cmd, nil)
	cmd.Flags().StringVar(&from, "from", "", "URLs of the previous layout, to change the number of shards or buckets")
	cmd.Flags().BoolVar(&force, "force", false, "admit all masters even if some of them vote already")
	return cmd
}

// admit makes all masters vote. If a client may hold a lock on them, and not all of them vote, admit shows the leases
// that masters have, and asks for confirmation.
func admit(ctx context.Context, con *console, c *client, force bool) error {
	v := c.settled(ctx)
	list := v.Masters
	if err := inUse(c.setsOf(list)); err != nil && !force {
		return showMasters(con, v, err)
	}
	ch := &change{command: "admit", question: "Admit them, if no client can hold a lock?",
		undone: "no master was admitted"}
	for _, m := range list {
		if m.State == "connecting" || m.State == "down" || m.State == "quarantine" {
			ch.effects = append(ch.effects, fmt.Sprintf("%s would vote immediately: its state is %s, and it may have forgotten "+
				"a lock that a client still holds", m.Addr, m.State))
		}
	}
	if len(ch.effects) == 0 { // all masters vote, or a record prevents the command
		return perform(ctx, con, c, nil, admin.Of(c.Locker).Admit)
	}
	found, err := c.leases(ctx)
	if err != nil {
		ch.effects = append(ch.effects, fmt.Sprintf("not all leases could be listed: %v", err))
	}
	ch.effects = append(ch.effects, found...)
	used := slices.ContainsFunc(list, func(m redlockinfo.Master) bool { return m.MaxTTL > 0 })
	labels, unlisted := clientLabels(ctx, c.pools)
	if !used && len(found)+len(labels)+len(unlisted) == 0 {
		ch = nil
	}
	return perform(ctx, con, c, ch, admin.Of(c.Locker).Admit)
}

// mostLeases is the maximum number of names whose leases admit lists.
const mostLeases = 100

// leases returns a line for each lease that any master has. The error says why the list is incomplete.
func (c *client) leases(ctx context.Context) (lines []string, err error) {
	found := c.scan(ctx, "", mostLeases)
	for _, m := range found {
		if m.err != nil && err == nil {
			err = fmt.Errorf("%s: %w", m.addr, m.err)
		}
	}
	on := make(map[string][]string)
	for full, addrs := range namesOn(found) {
		name, _ := scripts.CutSlot(full)
		on[name] = addrs
	}
	names := slices.Sorted(maps.Keys(on))
	for _, name := range names[:min(len(names), mostLeases)] {
		switch w, failed := c.Inspect(ctx, name); {
		case failed != nil:
			lines = append(lines, fmt.Sprintf("%q: on %s", name, strings.Join(on[name], ", ")))
		case w.ID != "" || w.ReaderCount > 0 || len(w.Slots) > 0:
			lines = append(lines, strings.TrimSpace(whoText(name, w)))
		case len(w.Partial) > 0:
			lines = append(lines, fmt.Sprintf("%q: %s", name, doubt(&w)))
		}
	}
	if more := len(names) - mostLeases; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more names", more))
	}
	return lines, err
}

// admitFrom replaces the records of the layout in the text from by those of c's layout, and makes all masters vote.
func (a *app) admitFrom(ctx context.Context, c *client, from string) error {
	config := *c.config
	config.Name(splitURLs([]string{from}))
	return a.beside(&config, func(old *client) error {
		if err := unlocked(ctx, old, "nothing was changed"); err != nil {
			return err
		}
		old.settled(ctx)
		con := &a.console
		con.say(con.stderr, strings.Join([]string{
			fmt.Sprintf("the records of %d masters are replaced: clients that still use the previous layout acquire and "+
				"extend no locks", len(admin.Of(old.Locker).Masters())),
			affected(ctx, old.pools),
		}, "\n"))
		if err := con.confirm("admit", "Change the layout?", "nothing was changed"); err != nil {
			return &exit{exitDanger, err}
		}
		ctx, cancel := c.within()
		defer cancel()
		if err := c.set.Replaces(ctx, old.set); err != nil {
			return showMasters(con, c.settled(ctx), fmt.Errorf("redlock admit: %w", err))
		}
		err := unlocked(ctx, old, "the records were replaced, and the masters vote by themselves after their quarantine, "+
			"when these locks have ended")
		if err == nil {
			err = admin.Of(c.Locker).Admit(ctx)
		}
		return showMasters(con, c.settled(ctx), err)
	})
}

// unlocked returns an error if a master of c has a lock, or cannot be read. state says what the command has done.
func unlocked(ctx context.Context, c *client, state string) error {
	c.settled(ctx)
	names, failed := map[string]bool{}, error(nil)
	for _, m := range c.scan(ctx, "", 1000) {
		for full := range m.names {
			name, _ := scripts.CutSlot(full)
			names[name] = true
		}
		if m.err != nil {
			failed = fmt.Errorf("the locks of %s cannot be listed: %w", m.addr, m.err)
		}
	}
	if len(names) > 0 {
		failed = fmt.Errorf(
			"the previous layout has %s locked, such as %q: stop the clients that use it, and repeat the command when redlock "+
				"ls --all with it lists nothing",
			transport.Count(len(names), "name"), slices.Min(slices.Collect(maps.Keys(names))),
		)
	}
	if failed == nil {
		return nil
	}
	return &exit{exitDanger, fmt.Errorf("redlock admit: %s: %w", state, failed)}
}

// inUse returns an error if some, but not all, masters of a set vote, because clients may hold locks on them.
func inUse(sets []masterSet) error {
	for _, set := range sets {
		if n := count(set.masters, nil, "voting"); n > 0 && n < len(set.masters) {
			return fmt.Errorf("redlock admit: %d of %d %s vote, so clients may hold locks that the other masters "+
				"have forgotten: wait for their quarantine to end", n, len(set.masters), set.name)
		}
	}
	return nil
}

func quarantineCommand(a *app) *cobra.Command {
	var master string
	cmd := a.onMasters(&cobra.Command{
		Use:   "quarantine --master ADDR [URL...]",
		Short: "put one master into quarantine, to replace its admission record",
		Long: `Puts one master into quarantine; --master takes the address that status shows. This replaces an admission
record that cannot be read, or one that names other masters: first check that no client needs that record. The URLs
are those of all masters; if the records of the other masters show that this list is wrong, nothing is written. The
command shows the effects on the clients, and asks for confirmation; without a terminal, as in scripts, --yes is
required.`,
		Example: `  redlock quarantine --master 10.0.0.2:6379 redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3`,
	}, func(ctx context.Context, c *client) error {
		return perform(ctx, &a.console, c, &change{
			command: "quarantine", target: master, effects: loses(master, c.setsOf(c.settled(ctx).Masters)),
			question: "Put the master into quarantine?", undone: "nothing was changed",
		}, func(ctx context.Context) error { return admin.Of(c.Locker).Quarantine(ctx, master) })
	})
	a.addYes(cmd, func() bool { return true })
	cmd.Flags().StringVar(&master, "master", "", "address of the master, as shown by status")
	_ = cmd.MarkFlagRequired("master") // fails only for an unknown flag
	return cmd
}

func maxTTLCommand(a *app) *cobra.Command {
	var set time.Duration
	cmd := a.onMasters(&cobra.Command{
		Use:   "max-ttl [--set DURATION] [URL...]",
		Short: "show or raise the max TTL of the deployment",
		Long: `Shows the max TTL of each master, which is the longest TTL that a client may use. --set raises the max TTL of
the deployment while clients run; do so before any client uses a longer TTL. All masters must be up. The command shows
the effects, and asks for confirmation; without a terminal, as in scripts, --yes is required.`,
		Example: `  redlock max-ttl --set 60s --config locks.json`,
	}, func(ctx context.Context, c *client) error {
		if set == 0 {
			return showMasters(&a.console, c.settled(ctx), nil)
		}
		return perform(ctx, &a.console, c, &change{
			command: "max-ttl", question: "Raise the max TTL?", undone: "nothing was changed",
			effects: []string{fmt.Sprintf("every master accepts TTLs up to %v, and does not vote for %v after each restart; "+
				"the max TTL cannot be lowered while clients run", set, max(set, 30*time.Second))},
		}, func(ctx context.Context) error {
			err := admin.Of(c.Locker).RaiseMaxTTL(ctx, set)
			if errors.Is(err, redlock.ErrNoQuorum) {
				err = fmt.Errorf("redlock max-ttl: not every master accepts TTLs up to %v: repeat the command when all masters "+
					"are up and admitted, before a client uses such a TTL: %w", set, err)
			}
			return err
		})
	})
	a.addYes(cmd, func() bool { return set != 0 })
	cmd.Flags().DurationVar(&set, "set", 0, "new max TTL")
	return cmd
}

// perform calls do if the user approves ch, and prints the states of the masters. If ch is nil, perform does not ask.
func perform(ctx context.Context, con *console, c *client, ch *change, do func(context.Context) error) error {
	if ch != nil {
		if err := approve(ctx, con, c, ch); err != nil {
			return showMasters(con, c.set.Verdict(), err)
		}
	}
	ctx, cancel := c.within()
	defer cancel()
	end := con.progress(c.pending)
	err := do(ctx)
	end()
	return showMasters(con, c.settled(ctx), err)
}

// check prints whether locks can be acquired, and the problems of the masters. arguments are those that "redlock set"
// needs.
func check(ctx context.Context, con *console, c *client, arguments string) error {
	end := con.progress(c.pending)
	v, err := admin.Of(c.Locker).Check(ctx)
	end()
	if err != nil {
		return &exit{exitDanger, err}
	}
	v.Findings = append(c.misfits(ctx, arguments), v.Findings...)
	// The default max TTL of this command says nothing about the clients.
	v.Findings = slices.DeleteFunc(v.Findings, func(f redlockinfo.Finding) bool {
		return f.About == "max TTL" && f.Severity == redlockinfo.Notice && c.config.MaxTTL == ""
	})
	code := exitDone
	switch {
	case !v.CanLock:
		code = exitNoQuorum
	case v.Severity() > redlockinfo.Notice:
		code = exitDanger
	}
	con.result(jsonFindings(v, code),
		fmt.Sprintf("locks can be acquired: %v\n%s", v, findingsText(v.Findings)))
	return leave(code)
}

// adviceForNew returns the first step with new masters, or "" if the masters may have been used.
func adviceForNew(v redlockinfo.Verdict) string {
	for _, f := range v.Findings {
		if f.Fix == admission.StepNew {
			return f.Fix + "\n"
		}
	}
	return ""
}

// findingsText returns the text of the findings. Equal findings about different masters are listed once.
func findingsText(list []redlockinfo.Finding) (text string) {
	for list = slices.Clone(list); len(list) > 0; {
		f, masters := list[0], []string{}
		list = slices.DeleteFunc(list, func(g redlockinfo.Finding) bool {
			master := g.Master
			if g.Master = f.Master; g != f {
				return false
			}
			if !slices.Contains(masters, master) { // a cluster may be a master of each shard
				masters = append(masters, master)
			}
			return true
		})
		text += fmt.Sprintf("%s: %v: %s\n    %s\n    risk: %s\n    fix: %s\n",
			strings.Join(masters, ", "), f.Severity, f.About, f.What, f.Risk, f.Fix)
	}
	return text
}

// showMasters prints the masters of a deployment, and how many of each set can grant a lock. During a change of the
// masters, a quorum of the old masters and one of the next masters is needed. The exit status only says whether locks
// can be acquired: a master in quarantine may be what the operator wants. err is the error of the preceding operation,
// or nil.
func showMasters(con *console, v redlockinfo.Verdict, err error) error {
	code, text := exitDone, ""
	if !v.CanLock {
		code = exitNoQuorum
	}
	for _, shard := range shardsOf(v.Masters) {
		text += mastersText(shard)
		for _, q := range v.Quorums {
			if q.Shard != shard[0].Shard {
				continue
			}
			if q.Shard > 0 {
				text += fmt.Sprintf("shard %d: ", q.Shard)
			}
			text += q.String() + "\n"
		}
	}
	con.result(newJSONStatus(v), text+fmt.Sprintf("locks can be acquired: %v\n%s", v, adviceForNew(v)))
	if err != nil {
		return &exit{max(code, exitDanger), err}
	}
	return leave(code)
}

// mastersText returns one line for each master.
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
			text += fmt.Sprintf(", epoch %d, list %s", m.Epoch, m.List)
		}
		if why := diagnose.Why(&m); why != "" {
			text += ": " + why
		}
		text += "\n"
	}
	return text
}
