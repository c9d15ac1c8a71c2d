package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A setStep is the step of a change that the flags of one call of "redlock set" request.
type setStep struct{ raise, finish, abort, force bool }

// writes reports whether the step changes anything.
func (s *setStep) writes() bool { return s.raise || s.finish || s.abort }

func setCommand(a *app) *cobra.Command {
	var step setStep
	cmd := &cobra.Command{
		Use:   "set [--raise | --finish | --abort] FILE",
		Short: "take the deployment through a change of its masters",
		Long: `Shows the plan of a change of the masters: the steps that are done, the next one and what it waits for, and the
clients that have not followed yet. FILE is the configuration of the clients:
  {"epoch": 1, "masters": ["redis://old1", ...], "next": ["redis://next1", ...]}
It may also have the other fields of the file of --config. If names are sharded, the file is of one shard and says
which: {"shard": "2/3", "epoch": 1, ...}.

--raise writes its epoch, which refuses clients that use an earlier one. It waits within the timeout until every
connected client uses the file, and otherwise writes nothing; with --force it does not wait. --finish lets the next
masters act alone as soon as the old ones show that no lock depends on them alone; it waits for that within the timeout.
--abort cancels the change and lets the old masters act alone at the next epoch; it is refused once the next ones may
act alone. Without these flags nothing is written. Each of them shows its effects on the clients, and asks for
confirmation; in scripts, without a terminal, --yes is needed.

If a majority of the old or of the next masters is down, it says what to do if they are lost for good.`,
		Example: `  redlock set locks.json
  redlock set --raise locks.json
  redlock set --finish --timeout 2m locks.json
  redlock set --abort locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := setFile(args)
			if err == nil && step.abort && (step.raise || step.finish) {
				err = errors.New("redlock set: --abort excludes --raise and --finish")
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			a.deployment.override(cmd.Flags(), c)
			return a.observeConfig(cmd, c, a.bounded(func(ctx context.Context, l *client) error {
				return set(ctx, &a.console, &setCall{l, c.Configuration, args[0]}, step)
			}))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd, step.writes)
	cmd.Flags().BoolVar(&step.raise, "raise", false, "write the epoch on the masters: every client uses the file")
	cmd.Flags().BoolVar(&step.abort, "abort", false, "cancel the change: the old masters act alone again")
	cmd.Flags().BoolVar(&step.finish, "finish", false, "let the next masters act alone, once the change is complete")
	cmd.Flags().BoolVar(&step.force, "force", false, "raise although connected clients do not use the file")
	return cmd
}

// setFile reads the file of a change of the masters.
func setFile(args []string) (*configfile.Config, error) {
	if len(args) != 1 {
		return nil, errors.New("redlock set: give one file, the configuration of the clients")
	}
	c, err := configfile.Read(args[0])
	if err != nil {
		return nil, err
	}
	if len(c.Shards) > 0 {
		return nil, fmt.Errorf(`%s: the masters are changed shard by shard: the file has "shard": "2/3", and the masters `+
			"of that one", args[0])
	}
	if err := c.CheckConfiguration(); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	c.Change = true
	return c, nil
}

// A setCall is one call of "redlock set" for a configuration.
type setCall struct {
	*client
	redlock.Configuration
	file string
}

// set performs the requested step of a change, if one is requested, and shows the plan.
func set(ctx context.Context, con *console, s *setCall, step setStep) error {
	s.settled(ctx)
	if err := s.tools.WrongList(); err != nil {
		return &exit{exitNoQuorum, fmt.Errorf("redlock set: %s: nothing was changed: %w", s.file, err)}
	}
	failed := s.take(ctx, con, step)
	if failed == nil && step.abort {
		next := fmt.Sprintf("give the clients the file of epoch %d, with the old masters as the only ones; then redlock set "+
			"--raise with it, for masters that were down", s.Epoch+1)
		con.result(jsonAborted{s.Epoch + 1, next},
			fmt.Sprintf("epoch %d: the old masters act alone\nnext: %s\n", s.Epoch+1, next))
		return nil
	}
	ctx, cancel := s.within()
	defer cancel()
	c, err := s.tools.Change(ctx)
	if err != nil {
		return &exit{exitDanger, errors.Join(failed, err)}
	}
	switch lost := s.show(ctx, con, c); {
	case lost:
		return &exit{exitNoQuorum, failed}
	case failed != nil:
		return &exit{exitDanger, failed}
	}
	return nil
}

// take performs a step of a change.
func (s *setCall) take(ctx context.Context, con *console, step setStep) error {
	epoch := s.Epoch
	s.Configuration = s.Admin().Configuration()[0]
	switch {
	case s.Epoch != epoch:
		return fmt.Errorf("redlock set: %s has epoch %d, and the masters have gone on to epoch %d, which is shown here: "+
			"write it into the file", s.file, epoch, s.Epoch)
	case !step.writes():
		return nil
	case s.lost(s.Admin().Masters(), false) != nil:
		return errors.New("redlock set: nothing was changed: too many masters are down")
	}
	if err := approve(ctx, con, s.client, s.effects(ctx, step)); err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	if step.abort {
		return s.tools.AbortChange(ctx)
	}
	if step.raise && !step.force {
		if err := s.awaitClients(ctx, con); err != nil {
			return err
		}
	}
	if step.raise {
		if err := s.tools.RaiseEpoch(ctx); err != nil {
			return err
		}
	}
	if step.finish {
		return s.finish(ctx, con)
	}
	return nil
}

// effects returns what a step will do, and the question about it.
func (s *setCall) effects(ctx context.Context, step setStep) *change {
	ch := &change{command: "set", question: "Continue?", undone: "nothing was changed"}
	if step.raise {
		when := "when every connected client uses this file"
		if late, _ := s.late(ctx); step.force {
			when = "at once, though these do not use this file: " + cmp.Or(strings.Join(late, ", "), "none")
		}
		ch.effects = append(ch.effects, fmt.Sprintf("the masters get the epoch %d %s; clients that use an earlier one "+
			"acquire nothing from then on, and their locks end", s.Epoch, when))
	}
	if step.finish {
		ch.effects = append(ch.effects, "the next masters may act alone: there is no way back but another change")
	}
	if step.abort {
		ch.effects = append(ch.effects, fmt.Sprintf(
			"the old masters act alone, with the epoch %d; clients follow by themselves", s.Epoch+1))
	}
	return ch
}

// late returns the connected clients that use an earlier epoch than the file. known is false if no old master lists its
// clients.
func (s *setCall) late(ctx context.Context) (list []string, known bool) {
	for addr, clients := range connected(ctx, s.pools) {
		known = known || slices.Contains(s.Masters, addr)
		for _, c := range clients {
			if c.Epoch < s.Epoch {
				list = append(list, fmt.Sprintf("%s (epoch %d)", c.Label, c.Epoch))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), known
}

// awaitClients waits until every connected client uses the file. If ctx ends, the error names the clients that do not
// use it.
func (s *setCall) awaitClients(ctx context.Context, con *console) error {
	for shown := ""; ; {
		late, known := s.late(ctx)
		text := strings.Join(late, ", ")
		switch {
		case ctx.Err() != nil:
			text = shown
		case !known:
			return errors.New("redlock set: nothing was changed: no old master lists its clients (CLIENT LIST); if every " +
				"client uses this file: --force")
		//mutant:late-clients = true
		case text == "":
			return nil
		case text != shown:
			con.say(con.stdout, "waiting for clients that do not use this file yet: "+text)
		}
		shown = text
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redlock set: nothing was changed, because not every client uses this file yet: %s; give the "+
				"file to these clients or stop them, or use --force if they may lose their locks", text)
		}
	}
}

// finish waits until the change is complete, if that will be within the timeout, and makes the next masters act
// alone.
func (s *setCall) finish(ctx context.Context, con *console) error {
	c, err := s.tools.Change(ctx)
	if err != nil {
		return err
	}
	if end, _ := ctx.Deadline(); c.RaisedAll && !c.OpenAll && c.Left > 0 && time.Now().Add(c.Left).Before(end) {
		con.say(con.stdout, fmt.Sprintf("complete in %v, waiting", c.Left.Round(time.Second)))
		select {
		case <-time.After(c.Left + 10*time.Millisecond):
		case <-ctx.Done():
		}
	}
	return s.tools.FinishChange(ctx)
}

// A planStep is a step of the plan of a change.
type planStep struct {
	done bool
	text string
}

// show prints the masters and the plan of the change. If a majority of a set is down, it also prints what to do, and
// returns true.
func (s *setCall) show(ctx context.Context, con *console, c private.Change) (down bool) {
	masters := s.Admin().Masters()
	late, known := s.late(ctx)
	plan, lost := s.plan(c, masters, late, known), s.lost(masters, c.RaisedAll)
	if len(lost) > 0 {
		plan = nil
	}
	out := jsonChange{
		Epoch: s.Epoch, Raised: c.Raised, Open: c.Open, Complete: c.Complete, Left: millis(c.Left),
		Late: late, Lost: lost, Masters: jsonMasters(masters),
	}
	lines := []string{s.title()}
	next := slices.IndexFunc(plan, func(p planStep) bool { return !p.done })
	for i, p := range plan {
		state := "     "
		switch {
		case p.done:
			state = "done "
		case i == next:
			state, out.Next = "next ", p.text
		}
		lines = append(lines, "  "+state+" "+p.text)
	}
	con.result(out, mastersText(masters)+strings.Join(append(lines, lost...), "\n")+"\n")
	return len(lost) > 0
}

// title returns what the change does.
func (s *setCall) title() string {
	switch {
	case s.Epoch == 0:
		return fmt.Sprintf(`epoch 0: %d masters; to change them, write a file with "epoch": 1, these "masters", and "next"`,
			len(s.Masters))
	case len(s.Next) == 0:
		return fmt.Sprintf("epoch %d: %d masters", s.Epoch, len(s.Masters))
	}
	text := fmt.Sprintf("epoch %d: from %d masters to %d", s.Epoch, len(s.Masters), len(s.Next))
	without := func(list, other []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(m string) bool { return slices.Contains(other, m) })
	}
	if added := without(s.Next, s.Masters); len(added) > 0 {
		text += ", adding " + strings.Join(added, ", ")
	}
	if removed := without(s.Masters, s.Next); len(removed) > 0 {
		text += ", removing " + strings.Join(removed, ", ")
	}
	return text
}

// plan returns the steps of the change that the file describes.
func (s *setCall) plan(c private.Change, masters []redlockinfo.Master, late []string, known bool) []planStep {
	follow := planStep{c.RaisedAll || known && len(late) == 0, "every client uses this file"}
	switch {
	case len(late) > 0 && c.RaisedAll:
		follow.text += "; refused: " + strings.Join(late, ", ")
	case len(late) > 0:
		follow.text += "; not yet: " + strings.Join(late, ", ")
	case !known:
		follow.text += "; they cannot be listed (CLIENT LIST)"
	}
	raise := fmt.Sprintf("redlock set --raise %s: %d of %d masters refuse clients with an earlier epoch", s.file, c.Raised,
		len(s.Masters))
	again := ""
	if c.RaisedAll && c.Raised < len(s.Masters) {
		again = "; repeat it when the others are up, which do not vote until then"
	}
	switch {
	case s.Epoch == 0:
		return nil
	case len(s.Next) == 0:
		return []planStep{
			{c.OpenAll, fmt.Sprintf("redlock set --finish with the file of epoch %d: %d of %d masters may act alone", s.Epoch-1,
				c.Open, len(s.Masters))},
			follow,
			{c.Raised == len(s.Masters), raise + again},
			{false, "stop the masters that are not in the file, for good"},
		}
	}
	vote := fmt.Sprintf("the next masters vote: %d of %d", count(masters, s.Next, "voting"), len(s.Next))
	voted := c.OpenAll || count(masters, s.Next, "voting") > len(s.Next)/2
	if !voted {
		vote += "; wait for the end of their quarantine, or, if they are new, redlock admit"
	}
	finish := fmt.Sprintf("redlock set --finish %s: %d of %d next masters may act alone", s.file, c.Open, len(s.Next))
	if c.RaisedAll && c.Left > 0 {
		finish += fmt.Sprintf("; possible in %v", c.Left.Round(time.Second))
	}
	return []planStep{
		{voted, vote},
		follow,
		{c.RaisedAll, raise},
		{c.OpenAll, finish},
		{false, fmt.Sprintf(`write the file of epoch %d, with the next masters as its only ones, and continue with it`,
			s.Epoch+1)},
	}
}

// count returns the number of masters of a set that are in a state, or of all masters if set is nil.
func count(masters []redlockinfo.Master, set []string, state string) (n int) {
	for _, m := range masters {
		if m.State == state && (set == nil || slices.Contains(set, m.Addr)) {
			n++
		}
	}
	return n
}

// lost returns what to do if a majority of a set is down.
func (s *setCall) lost(masters []redlockinfo.Master, raised bool) (lines []string) {
	for k, set := range [][]string{s.Masters, s.Next} {
		down, needed := count(masters, set, "down"), len(set)/2+1
		if len(set) == 0 || len(set)-down >= needed {
			continue
		}
		title := fmt.Sprintf("%d of %d masters are down, and %d are needed: start them again; if they are lost for good:",
			down, len(set), needed)
		if k == 1 && !raised {
			return []string{title, fmt.Sprintf("  1. start the clients again with the file of epoch %d: no majority refuses it",
				s.Epoch-1)}
		}
		longest := private.DefaultMaxTTL
		for _, m := range masters {
			longest = max(longest, m.MaxTTL)
		}
		lines = []string{
			title, fmt.Sprintf("  1. stop all clients, and wait %v; never start the lost servers again", longest),
		}
		for _, m := range masters {
			if m.State != "down" {
				lines = append(lines, fmt.Sprintf("  2. redis-cli -u redis://%s DEL %s:admission", m.Addr, s.config.Prefix))
			}
		}
		return append(lines,
			fmt.Sprintf("  3. redlock admit --guard %v, with the URLs of all masters that are used from now on", longest),
			"  4. start the clients with these URLs (docs/operations.md, Disaster recovery)")
	}
	return nil
}
