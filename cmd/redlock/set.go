package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A setStep holds the flags of "redlock set" that request steps of a change.
type setStep struct{ raise, finish, abort, force bool }

// writes reports whether a step that writes is requested.
func (s *setStep) writes() bool { return s.raise || s.finish || s.abort }

func setCommand(a *app) *cobra.Command {
	var step setStep
	cmd := &cobra.Command{
		Use:   "set [--raise | --finish | --abort] FILE",
		Short: "change the masters of the deployment, step by step",
		Long: `Shows the plan of a change of the masters: the completed steps, the next step and what it waits for, and the
clients that do not use FILE yet. FILE is the configuration file of the clients:
  {"epoch": 1, "masters": ["redis://old1", ...], "next": ["redis://next1", ...]}
It may also have the other fields of the file of --config. If names are sharded, the file describes one shard, and
identifies it: {"shard": "2/3", "epoch": 1, ...}.

--raise writes the epoch and the masters of FILE to the masters, which then refuse clients that do not use FILE.
First it waits, within the timeout, until every connected client uses FILE; otherwise it writes nothing. With --force
it does not wait, and the locks of other clients end. --finish lets the next masters act without the old ones, once no
lock depends on the old masters alone; it waits for this within the timeout. --abort cancels the change: the old
masters act without the next ones again, at the next epoch. It is refused once the next masters may act without the
old ones. Without these flags nothing is written. Each of these flags shows its effects on the clients, and asks for
confirmation; without a terminal, as in scripts, --yes is required.

If a majority of the old or of the next masters is down, the command prints what to do if these masters are lost for
good.`,
		Example: `  redlock set locks.json
  redlock set --raise locks.json
  redlock set --finish --timeout 2m locks.json
  redlock set --abort locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := setFile(args)
			if err == nil && (step.abort && step.raise || step.abort && step.finish || step.raise && step.finish) {
				err = errors.New("redlock set: only one of --raise, --finish and --abort may be given")
			}
			if err == nil && step.force && !step.raise {
				err = errors.New("redlock set: --force needs --raise")
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			a.deployment.override(cmd.Flags(), c)
			return a.observeConfig(cmd, c, a.bounded(func(ctx context.Context, l *client) error {
				a.warn(l.set.Warnings())
				return set(ctx, &a.console, &setCall{l, c.Configuration, args[0], a.deployment.given}, step)
			}))
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd, step.writes)
	cmd.Flags().BoolVar(&step.raise, "raise", false, "write the epoch of FILE, so that earlier epochs are refused")
	cmd.Flags().BoolVar(&step.abort, "abort", false, "cancel the change: the old masters act without the next ones")
	cmd.Flags().BoolVar(&step.finish, "finish", false, "let the next masters act without the old ones")
	cmd.Flags().BoolVar(&step.force, "force", false, "with --raise, do not wait until every connected client uses FILE")
	return cmd
}

// setFile reads the file of a change of the masters.
func setFile(args []string) (*configfile.Config, error) {
	if len(args) != 1 {
		return nil, errors.New("redlock set: give one file: the configuration file of the clients")
	}
	c, err := configfile.Read(args[0])
	if err != nil {
		return nil, err
	}
	if len(c.Shards) > 0 {
		return nil, fmt.Errorf(`%s: masters are changed shard by shard: give a file with "shard": "2/3", and the `+
			"masters of that shard", args[0])
	}
	if err := c.CheckConfiguration(); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	c.Change = true
	return c, nil
}

// A setCall is one call of "redlock set" with the configuration in a file.
type setCall struct {
	*client
	redlock.Configuration
	file  string
	flags string // that select the deployment, for a shell; each begins with a space
}

// set performs the requested step of a change, if one is requested, and shows the plan.
func set(ctx context.Context, con *console, s *setCall, step setStep) error {
	s.settled(ctx)
	if err := s.set.WrongList(); err != nil {
		return &exit{exitNoQuorum, fmt.Errorf("redlock set: %s: nothing was changed: %w", s.file, err)}
	}
	failed := s.take(ctx, con, step)
	if failed == nil && step.abort {
		next := fmt.Sprintf(
			"%s: the file of epoch %d, for all clients; then %s, for masters that were down",
			s.rewrite("del(.next)"), s.Epoch+1, s.command("--raise"))
		con.result(jsonAborted{s.Epoch + 1, next},
			fmt.Sprintf("epoch %d: the old masters act without the next ones\nnext: %s\n", s.Epoch+1, next))
		return nil
	}
	ctx, cancel := s.within()
	defer cancel()
	c, err := s.set.Change(ctx)
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

// take performs the requested step of a change.
func (s *setCall) take(ctx context.Context, con *console, step setStep) error {
	epoch := s.Epoch
	s.Configuration = admin.Of(s.Locker).Configuration()[0]
	switch {
	case s.Epoch != epoch:
		return fmt.Errorf("redlock set: %s has epoch %d, but the masters have epoch %d: write the masters of that epoch, "+
			"which are shown here, into the file", s.file, epoch, s.Epoch)
	case !step.writes():
		return nil
	case s.lost(admin.Of(s.Locker).Masters(), false) != nil:
		return errors.New("redlock set: nothing was changed: too many masters cannot be used: follow the steps that are " +
			"shown")
	}
	if err := approve(ctx, con, s.client, s.effects(ctx, step)); err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	if step.abort {
		return s.set.AbortChange(ctx)
	}
	if step.finish {
		return s.finish(ctx, con)
	}
	if !step.force {
		if err := s.awaitClients(ctx, con); err != nil {
			return err
		}
	}
	return s.set.RaiseEpoch(ctx)
}

// effects returns the effects of a step, and the question that asks for confirmation.
func (s *setCall) effects(ctx context.Context, step setStep) *change {
	ch := &change{command: "set", question: "Continue?", undone: "nothing was changed"}
	if step.raise {
		when := "when every connected client uses this file"
		if step.force {
			o := s.others(ctx)
			when = "immediately; clients that do not use this file: " + cmp.Or(strings.Join(o.all(), ", "), "none")
			if !o.known {
				when += ", and those that are not known, because too few masters list their clients"
			}
		}
		ch.effects = append(ch.effects, fmt.Sprintf("the masters get epoch %d and the list of this file %s", s.Epoch, when),
			"a client that does not use this file can then acquire no lock, and its locks end")
	}
	if step.finish {
		ch.effects = append(ch.effects, "the next masters act without the old ones: only another change can undo this")
	}
	if step.abort {
		ch.effects = append(ch.effects, fmt.Sprintf(
			"the old masters act without the next ones, at epoch %d, which clients adopt by themselves", s.Epoch+1))
	}
	return ch
}

// others returns the connected clients that do not use the file.
func (s *setCall) others(ctx context.Context) otherClients { return s.client.others(ctx, 0) }

// awaitClients waits until every connected client uses the file. It returns an error that names the other clients if
// ctx ends, and at once if one of them cannot change to the file, or if none can, because another step comes first.
func (s *setCall) awaitClients(ctx context.Context, con *console) error {
	if c, err := s.set.Change(ctx); err != nil || len(s.Next) == 0 && !c.OpenAll {
		return cmp.Or(err, errors.New("redlock set: nothing was changed: the next step that is shown comes first"))
	}
	for shown := ""; ; {
		o := s.others(ctx)
		text := strings.Join(o.all(), ", ")
		switch {
		case ctx.Err() != nil, !o.known && shown != "": // the look is incomplete: an earlier one was not
			text = shown
		case !o.known:
			return errors.New("redlock set: nothing was changed: too few old masters list their clients (CLIENT LIST): use " +
				"--force if every client uses this file")
		case len(o.never) > 0:
			what, _, fix := o.cause(s.arguments())
			return fmt.Errorf("redlock set: nothing was changed: %s; %s", what, fix)
		case text == "":
			return nil
		case text != shown:
			con.say(con.stdout, "waiting for clients that do not use this file yet: "+text)
		}
		shown = text
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			hint := ""
			if len(o.nameless) > 0 {
				hint = "; a nameless connection may belong to a client without the right +client|setname"
			}
			return fmt.Errorf("redlock set: nothing was changed: not every client uses this file yet: %s; give the "+
				"file to these clients or stop them, or use --force if they may lose their locks%s", text, hint)
		}
	}
}

// finish lets the next masters act without the old ones. If the change will be complete before the timeout, finish
// waits for that.
func (s *setCall) finish(ctx context.Context, con *console) error {
	c, err := s.set.Change(ctx)
	if err != nil {
		return err
	}
	if end, _ := ctx.Deadline(); c.RaisedAll && !c.OpenAll && c.Left > 0 && time.Now().Add(c.Left).Before(end) {
		con.say(con.stdout, fmt.Sprintf("waiting: the change can be finished in %v", c.Left.Round(time.Second)))
		end := con.progress(func() string { return "the end of locks of earlier clients" })
		select {
		case <-time.After(c.Left + 10*time.Millisecond):
		case <-ctx.Done():
		}
		end()
	}
	return s.set.FinishChange(ctx)
}

// A planStep is one step in the plan of a change.
type planStep struct {
	done bool
	text string
}

// show prints the masters and the plan of the change. If a majority of the old or of the next masters is down, show
// prints what to do instead of the plan, and returns true.
func (s *setCall) show(ctx context.Context, con *console, c reconfig.Progress) (down bool) {
	masters := admin.Of(s.Locker).Masters()
	o := s.others(ctx)
	plan, lost := s.plan(c, masters, &o), s.lost(masters, c.RaisedAll)
	if len(lost) > 0 {
		plan = nil
	}
	out := jsonChange{
		Epoch: s.Epoch, Raised: c.Raised, Open: c.Open, Complete: c.Complete, Left: millis(c.Left),
		List: o.own.List, Late: o.all(), Lost: lost, Masters: jsonMasters(masters),
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

// rewrite returns a command for a shell that makes the file of the next epoch from this file, with a filter for jq that
// changes the masters. The new file has the mode of this file, which may contain a password. The present file stays
// beside the new one, as FILE.EPOCH. If the file already has another epoch, or jq fails, the command does not change
// it, and may be repeated.
func (s *setCall) rewrite(filter string) string {
	return fmt.Sprintf("cp -p %[4]s %[5]s && "+
		"jq 'if (.epoch // 0) == %[1]d then .epoch = %[2]d | %[3]s else error(\"not epoch %[1]d\") end' %[4]s >%[5]s && "+
		"cp -p %[4]s %[6]s && mv %[5]s %[4]s",
		s.Epoch, s.Epoch+1, filter, s.quoted(), shellQuoted(s.file+".new"), shellQuoted(fmt.Sprint(s.file, ".", s.Epoch)))
}

// quoted returns the name of the file for a shell.
func (s *setCall) quoted() string { return shellQuoted(s.file) }

// arguments returns the flags that select the deployment, and the file, for a shell.
func (s *setCall) arguments() string { return strings.TrimSpace(s.flags + " " + s.quoted()) }

// command returns the command that performs a step of the change of this file.
func (s *setCall) command(step string) string { return "redlock set " + step + " " + s.arguments() }

// shellQuoted returns text as one word of a shell.
func shellQuoted(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%", r) && (r > 'z' || r < 'a') && (r > 'Z' || r < 'A') && (r > '9' || r < '0')
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// title returns one line that describes the change.
func (s *setCall) title() string {
	switch {
	case s.Epoch == 0:
		return fmt.Sprintf("epoch 0: %d masters; to add one: %s", len(s.Masters),
			s.rewrite(`.next = .masters + ["redis://HOST"]`))
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
func (s *setCall) plan(c reconfig.Progress, masters []redlockinfo.Master, o *otherClients) []planStep {
	follow, text := planStep{c.RaisedAll, "every client uses this file"}, strings.Join(o.all(), ", ")
	switch {
	case text != "" && c.RaisedAll:
		follow.text += ", or is refused: " + text
	case text != "":
		follow.text += "; not yet: " + text
		if len(o.never) > 0 {
			what, _, fix := o.cause(s.arguments())
			follow.text = fmt.Sprintf("clients cannot use this file: %s; %s", what, fix)
		}
	case !o.known:
		follow.text += "; the clients cannot be listed (CLIENT LIST)"
	default:
		follow.done = true
	}
	raise := fmt.Sprintf("%s: %d of %d masters refuse clients that do not use it", s.command("--raise"), c.Raised,
		len(s.Masters))
	again := ""
	if c.RaisedAll && c.Raised < len(s.Masters) {
		again = "; repeat this when the other masters are up, because they do not vote before"
	}
	switch {
	case s.Epoch == 0:
		return nil
	case c.Skips && c.Latest%2 == 1:
		return []planStep{{false, fmt.Sprintf("use the file of epoch %d, whose change is not complete: no change skips an "+
			"epoch", c.Latest)}}
	case c.Skips:
		return []planStep{{false, fmt.Sprintf("correct the epoch in %s: the masters have epoch %d, so the next change has "+
			"epoch %d", s.quoted(), c.Latest, c.Latest+1)}}
	case len(s.Next) == 0 && c.Cancels:
		return []planStep{
			{false, fmt.Sprintf("redlock set --abort with the file of epoch %d, if that change is to be cancelled; if not, use "+
				"its file", s.Epoch-1)},
			follow,
		}
	case len(s.Next) == 0:
		return []planStep{
			{c.OpenAll, fmt.Sprintf("redlock set --finish with the file of epoch %d: %d of %d masters may act "+
				"without the old ones", s.Epoch-1,
				c.Open, len(s.Masters))},
			follow,
			{c.Raised == len(s.Masters), raise + again},
			{false, "stop the masters that are not in the file, for good"},
		}
	}
	vote := fmt.Sprintf("the next masters vote: %d of %d", count(masters, s.Next, "voting"), len(s.Next))
	voted := c.OpenAll || count(masters, s.Next, "voting") > len(s.Next)/2
	if !voted {
		vote += "; wait for the end of their quarantine, or, if they are new, run redlock admit"
	}
	finish := fmt.Sprintf("%s: %d of %d next masters may act without the old ones", s.command("--finish"), c.Open,
		len(s.Next))
	if c.Differ {
		finish += "; not possible now: " + reconfig.Differ
	} else if c.RaisedAll && c.Left > 0 {
		finish += fmt.Sprintf("; possible in %v", c.Left.Round(time.Second))
	}
	return []planStep{
		{voted, vote},
		follow,
		{c.RaisedAll, raise},
		{c.OpenAll, finish},
		{false, fmt.Sprintf("%s: the file of epoch %d, for all clients", s.rewrite(".masters = .next | del(.next)"),
			s.Epoch+1)},
	}
}

// count returns the number of masters in set that are in this state. If set is nil, all masters are counted.
func count(masters []redlockinfo.Master, set []string, state redlockinfo.State) (n int) {
	for _, m := range masters {
		if m.State == state && (set == nil || slices.Contains(set, m.Addr)) {
			n++
		}
	}
	return n
}

// lost returns what to do if a majority of the old or of the next masters is down, or refuses this client, or nil if
// neither is. Servers that answer, as replicas or with an error, are not lost. raised reports whether a majority of the
// old masters has the epoch.
func (s *setCall) lost(masters []redlockinfo.Master, raised bool) (lines []string) {
	for k, set := range [][]string{s.Masters, s.Next} {
		down, needed := count(masters, set, "down"), len(set)/2+1
		if len(set) == 0 || len(set)-down >= needed {
			continue
		}
		title := fmt.Sprintf("%d of %d masters cannot be used, and %d are needed: redlock check shows the next step for "+
			"each", down, len(set), needed)
		answer := func(m redlockinfo.Master) bool {
			return errors.Is(m.Err, fault.ErrRefused) || errors.As(m.Err, new(redis.Error))
		}
		if len(set)-count(slices.DeleteFunc(slices.Clone(masters), answer), set, "down") >= needed {
			return []string{title}
		}
		title += "; if they are lost for good:"
		if k == 1 && !raised {
			return []string{title, fmt.Sprintf("  1. start the clients again with the file of epoch %d: no majority refuses "+
				"this epoch", s.Epoch-1)}
		}
		longest := scripts.DefaultMaxTTL
		for _, m := range masters {
			longest = max(longest, m.MaxTTL)
		}
		lines = []string{
			title, fmt.Sprintf("  1. stop all clients, and wait %v; never start the lost servers again", longest),
		}
		for _, t := range s.pools[0].Subjects() {
			up := func(m redlockinfo.Master) bool { return m.Addr == t.Name && m.State != "down" }
			if slices.ContainsFunc(masters, up) {
				record := scripts.Prefix(s.config.Prefix).Admission()
				lines = append(lines, fmt.Sprintf("  2. %s DEL %s", s.redisCLI(t.Config), shellQuoted(record)))
			}
		}
		prefix := ""
		if s.config.Prefix != scripts.DefaultPrefix {
			prefix = " --prefix " + shellQuoted(s.config.Prefix)
		}
		return append(lines,
			fmt.Sprintf("  3. redlock admit --max-ttl %v%s, with the URLs of all masters that are used from now on", longest,
				prefix),
			"  4. start the clients with these URLs (docs/night.md, Disaster recovery)")
	}
	return nil
}

// redisCLI returns the beginning of a command for a shell that sends a command to a master. redis-cli asks for the
// password, if there is one.
func (s *setCall) redisCLI(master *transport.Config) string {
	address := master.Addr
	if master.FindFunc != nil {
		ctx, cancel := s.within()
		defer cancel()
		found, err := master.FindFunc(ctx)
		if address = found; err != nil {
			address = "MASTER" // the sentinels do not agree on it
		}
	}
	words := []string{"redis-cli"}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	switch {
	case master.Network == "unix":
		add("-s", address)
	case master.TLS == nil:
		add("-u", "redis://"+address)
	default:
		add("-u", "rediss://"+address)
		add("--cacert", s.config.CA)
		add("--cert", s.config.Cert)
		add("--key", s.config.Key)
	}
	if master.Database > 0 {
		add("-n", fmt.Sprint(master.Database))
	}
	user, password := master.Login()
	if add("--user", user); password != "" {
		words = append(words, "--askpass")
	}
	for i, word := range words {
		words[i] = shellQuoted(word)
	}
	return strings.Join(words, " ")
}
