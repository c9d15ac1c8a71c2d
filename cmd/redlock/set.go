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
	"github.com/spf13/pflag"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A setStep is the step of a change that the flags of one call of "redlock set" request.
type setStep struct{ raise, finish, abort, force bool }

func (a *app) setCommand() *cobra.Command {
	var step setStep
	cmd := &cobra.Command{
		Use:   "set [--raise | --finish | --abort] FILE",
		Short: "take the deployment through a change of its masters",
		Long: `Shows the plan of a change of the masters: the steps that are done, the next one and what it waits for, and the
clients that have not followed yet. FILE is the configuration of the clients:
  {"epoch": 1, "masters": ["redis://old1", ...], "next": ["redis://next1", ...]}
It may say what the file of --config says. If names are sharded, the file is of one shard and says
which: {"shard": "2/3", "epoch": 1, ...}.

--raise writes its epoch, which refuses clients that use an earlier one. It waits within the timeout until every client
that is connected uses the file, and else writes nothing; with --force it does not wait. --finish lets the next masters
act alone as soon as the old ones show that nothing is held by them alone; it waits for that within the timeout.
--abort gives the change up and lets the old masters act alone at the next epoch; it is refused once the next ones may
act alone. Without any of them nothing is written. Each of them shows what will happen to which clients, and asks; in
scripts, without a terminal, --yes is needed.

If a majority of the old or of the next masters is down, it says what to do if they are lost for good.`,
		Example: `  redlock set locks.json
  redlock set --raise locks.json
  redlock set --finish --timeout 2m locks.json
  redlock set --abort locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.setFile(cmd.Flags(), args)
			if err == nil && step.abort && (step.raise || step.finish) {
				err = fmt.Errorf("redlock set: --abort excludes --raise and --finish")
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			if step.raise || step.finish || step.abort {
				if err := a.needsAnswer(cmd); err != nil {
					return err
				}
			}
			return a.observeDeployment(cmd, c, func(
				ctx context.Context, l *redlock.Locker, _ *configfile.Config, pools []*pool.Pool,
			) int {
				return a.set(ctx, &setCall{l, c.Configuration, pools, args[0], c.Prefix}, step)
			})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd.Flags())
	cmd.Flags().BoolVar(&step.raise, "raise", false, "write the epoch on the masters: every client uses the file")
	cmd.Flags().BoolVar(&step.abort, "abort", false, "give up the change: the old masters act alone again")
	cmd.Flags().BoolVar(&step.finish, "finish", false, "let the next masters act alone, once the change is complete")
	cmd.Flags().BoolVar(&step.force, "force", false, "raise although connected clients do not use the file")
	return cmd
}

// setFile reads the file of a change of the masters.
func (a *app) setFile(flags *pflag.FlagSet, args []string) (*configfile.Config, error) {
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
	a.deployment.override(flags, c)
	c.Change = true
	return c, nil
}

// A setCall is one call of "redlock set" for a configuration.
type setCall struct {
	*redlock.Locker
	redlock.Configuration
	pools        []*pool.Pool
	file, prefix string
}

// set performs a step of a change, if there is one, and shows the plan.
func (a *app) set(ctx context.Context, s *setCall, step setStep) int {
	settled(ctx, s.Locker)
	if err := private.Of(s.Locker).WrongList(); err != nil {
		a.complain(fmt.Errorf("redlock set: %s: nothing was changed: %w", s.file, err))
		return exitNoQuorum
	}
	failed, epoch := error(nil), s.Epoch
	if s.Configuration = s.Admin().Configuration()[0]; s.Epoch != epoch {
		failed = fmt.Errorf("redlock set: %s has epoch %d, and the masters have gone on to epoch %d, which is shown here: "+
			"write it into the file", s.file, epoch, s.Epoch)
	} else if writes := step.raise || step.finish || step.abort; writes && s.lost(s.Admin().Masters(), false) != nil {
		failed = errors.New("redlock set: nothing was changed: too many masters are down")
	} else if writes {
		failed = a.approve(ctx, s.Locker, s.pools, s.effects(ctx, step))
		var cancel context.CancelFunc
		ctx, cancel = a.within()
		defer cancel()
	}
	if failed == nil && step.abort {
		return a.abortChange(ctx, s)
	}
	if failed == nil && step.raise && !step.force {
		failed = a.awaitClients(ctx, s)
	}
	tools := private.Of(s.Locker)
	if failed == nil && step.raise {
		failed = tools.RaiseEpoch(ctx)
	}
	if failed == nil && step.finish {
		failed = a.finish(ctx, s.Locker)
	}
	if failed != nil {
		a.complain(failed)
		var cancel context.CancelFunc
		ctx, cancel = a.within()
		defer cancel()
	}
	c, err := tools.Change(ctx)
	if err != nil {
		a.complain(err)
		return exitDanger
	}
	lost := a.tellChange(ctx, s, c)
	switch {
	case lost:
		return exitNoQuorum
	case failed != nil:
		return exitDanger
	}
	return exitDone
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

// awaitClients waits until every connected client uses the file. The error says which ones do not when ctx ends.
func (a *app) awaitClients(ctx context.Context, s *setCall) error {
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
		case text != shown && !a.json:
			fmt.Fprintln(a.stdout, "waiting for clients that do not use this file yet:", text)
		}
		shown = text
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redlock set: nothing was changed: not every client uses this file yet: %s; give it to them or "+
				"stop them, or, if their locks may end: --force", text)
		}
	}
}

// abortChange cancels a change, and prints the next step.
func (a *app) abortChange(ctx context.Context, s *setCall) int {
	if err := private.Of(s.Locker).AbortChange(ctx); err != nil {
		a.complain(err)
		return exitDanger
	}
	next := fmt.Sprintf("give the clients the file of epoch %d, with the old masters as the only ones; then redlock set "+
		"--raise with it, for masters that were down", s.Epoch+1)
	if a.json {
		a.encode(a.stdout, struct {
			Epoch int64  `json:"epoch"`
			Next  string `json:"next"`
		}{s.Epoch + 1, next})
		return exitDone
	}
	fmt.Fprintf(a.stdout, "epoch %d: the old masters act alone\nnext: %s\n", s.Epoch+1, next)
	return exitDone
}

// finish waits until the change is complete, if that happens within the timeout, and makes the next masters act alone.
func (a *app) finish(ctx context.Context, l *redlock.Locker) error {
	c, err := private.Of(l).Change(ctx)
	if err != nil {
		return err
	}
	if end, _ := ctx.Deadline(); c.RaisedAll && !c.OpenAll && c.Left > 0 && time.Now().Add(c.Left).Before(end) {
		if !a.json {
			fmt.Fprintf(a.stdout, "complete in %v, waiting\n", c.Left.Round(time.Second))
		}
		timer := time.NewTimer(c.Left + 10*time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return private.Of(l).FinishChange(ctx)
}

// A planStep is a step of the plan of a change.
type planStep struct {
	done bool
	text string
}

// tellChange prints the masters, the plan of the change, and what to do if a majority of a set is down, which it
// reports.
func (a *app) tellChange(ctx context.Context, s *setCall, c private.Change) bool {
	masters := s.Admin().Masters()
	late, known := s.late(ctx)
	plan, lost := s.plan(c, masters, late, known), s.lost(masters, c.RaisedAll)
	if len(lost) > 0 {
		plan = nil
	}
	next := slices.IndexFunc(plan, func(p planStep) bool { return !p.done })
	if a.json {
		out := jsonChange{
			Epoch: s.Epoch, Raised: c.Raised, Open: c.Open, Complete: c.Complete, Left: millis(c.Left),
			Late: late, Lost: lost, Masters: jsonMasters(masters),
		}
		if next >= 0 {
			out.Next = plan[next].text
		}
		a.encode(a.stdout, out)
		return len(lost) > 0
	}
	for _, m := range masters {
		a.line(m)
	}
	fmt.Fprintln(a.stdout, s.title())
	for i, p := range plan {
		state := "     "
		switch {
		case p.done:
			state = "done "
		case i == next:
			state = "next "
		}
		fmt.Fprintln(a.stdout, " ", state, p.text)
	}
	for _, line := range lost {
		fmt.Fprintln(a.stdout, line)
	}
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

// count returns the number of masters of a set that are in a state.
func count(masters []redlockinfo.Master, set []string, state string) (n int) {
	for _, m := range masters {
		if m.State == state && slices.Contains(set, m.Addr) {
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
				lines = append(lines, fmt.Sprintf("  2. redis-cli -u redis://%s DEL %s:admission", m.Addr, s.prefix))
			}
		}
		return append(lines,
			fmt.Sprintf("  3. redlock admit --guard %v, with the URLs of all masters that are used from now on", longest),
			"  4. start the clients with these URLs (docs/operations.md, Disaster recovery)")
	}
	return nil
}
