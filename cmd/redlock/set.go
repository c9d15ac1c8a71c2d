package main

import (
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
)

func (a *app) setCommand() *cobra.Command {
	var raise, finish, abort bool
	cmd := &cobra.Command{
		Use:   "set [--raise | --finish | --abort] FILE",
		Short: "take the deployment through a change of its masters",
		Long: `Shows the progress of a change of the masters, and the next step. FILE is the configuration of the clients:
  {"epoch": 1, "masters": ["redis://old1", ...], "next": ["redis://next1", ...]}
It may say what the file of --config says. If names are sharded, the file is of one shard and says
which: {"shard": "2/3", "epoch": 1, ...}.

--raise writes its epoch, which refuses clients that use an earlier one. --finish lets the next masters act alone
as soon as the old ones show that nothing is held by them alone; it waits for that within the timeout. --abort gives
the change up and lets the old masters act alone at the next epoch; it is refused once the next ones may act alone.
Without any of them nothing is written. Each of them shows what will happen to which clients, and asks; in scripts,
without a terminal, --yes is needed.`,
		Example: `  redlock set locks.json
  redlock set --raise locks.json
  redlock set --finish --timeout 2m locks.json
  redlock set --abort locks.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.setFile(cmd.Flags(), args)
			if err == nil && abort && (raise || finish) {
				err = fmt.Errorf("redlock set: --abort excludes --raise and --finish")
			}
			if err != nil {
				return wrongCall(cmd, err)
			}
			if writes := raise || finish || abort; writes {
				if err := a.needsAnswer(cmd); err != nil {
					return err
				}
			}
			return a.observeDeployment(cmd, c, func(
				ctx context.Context, l *redlock.Locker, _ *configfile.Config, pools []*pool.Pool,
			) int {
				if raise || finish || abort {
					if err := a.approveSet(ctx, l, pools, raise, finish); err != nil {
						a.complain(err)
						return exitDanger
					}
					var cancel context.CancelFunc
					ctx, cancel = a.within()
					defer cancel()
				}
				if abort {
					return a.abortChange(ctx, l)
				}
				return a.changeSet(ctx, l, raise, finish, pools)
			})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	a.addYes(cmd.Flags())
	cmd.Flags().BoolVar(&raise, "raise", false, "write the epoch on the masters: every client uses the file")
	cmd.Flags().BoolVar(&abort, "abort", false, "give the change up: the old masters act alone again")
	cmd.Flags().BoolVar(&finish, "finish", false, "let the next masters act alone, once the change is complete")
	return cmd
}

// setFile reads the file of a change of the masters.
func (a *app) setFile(flags *pflag.FlagSet, args []string) (*configfile.Config, error) {
	if len(args) != 1 {
		return nil, errors.New("redlock set: one file is wanted, the configuration of the clients")
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

// approveSet asks whether a step of a change may be made.
func (a *app) approveSet(ctx context.Context, l *redlock.Locker, pools []*pool.Pool, raise, finish bool) error {
	settled(ctx, l)
	set := l.Admin().Configuration()[0]
	ch := &change{command: "set", question: "Go on?", undone: "nothing was changed"}
	if raise {
		ch.effects = append(ch.effects, fmt.Sprintf("the masters get the epoch %d: clients that do not use this file yet "+
			"acquire nothing from then on, and their locks end", set.Epoch))
		ch.effects = append(ch.effects, following(ctx, set, pools)...)
	}
	if finish {
		ch.effects = append(ch.effects, "the next masters may act alone: there is no way back but another change")
	}
	if !raise && !finish {
		ch.effects = append(ch.effects, fmt.Sprintf(
			"the old masters act alone, with the epoch %d; clients follow by themselves", set.Epoch+1))
	}
	return a.approve(ctx, l, pools, ch)
}

// following returns which clients have not followed a change of the masters yet: they are connected to old masters and
// to none of those that only the next set has. It returns nothing if that cannot be seen.
func following(ctx context.Context, set redlock.Configuration, pools []*pool.Pool) []string {
	if len(set.Next) == 0 {
		return nil
	}
	var old, next []string
	fresh := 0
	for addr, labels := range connected(ctx, pools) {
		if slices.Contains(set.Masters, addr) {
			old = append(old, labels...)
		} else {
			fresh++
			next = append(next, labels...)
		}
	}
	if fresh == 0 {
		return nil
	}
	late := slices.DeleteFunc(old, func(label string) bool { return slices.Contains(next, label) })
	slices.Sort(late)
	if late = slices.Compact(late); len(late) == 0 {
		return []string{"every client that is connected to the old masters is connected to the next ones, too"}
	}
	return []string{"not connected to the next masters yet: " + strings.Join(late, ", ")}
}

// changeSet performs the steps that the flags request, and reports the progress of the change.
func (a *app) changeSet(ctx context.Context, l *redlock.Locker, raise, finish bool, pools []*pool.Pool) int {
	err := error(nil)
	if raise {
		err = private.Of(l).RaiseEpoch(ctx)
	}
	if err == nil && finish {
		err = a.finish(ctx, l)
	}
	if err != nil {
		a.complain(err)
	}
	c, failed := private.Of(l).Change(ctx)
	if failed != nil {
		a.complain(failed)
		return exitDanger
	}
	a.tellChange(l.Admin(), c)
	if !a.json {
		for _, line := range following(ctx, l.Admin().Configuration()[0], pools) {
			fmt.Fprintln(a.stdout, line)
		}
	}
	if err != nil {
		return exitDanger
	}
	return exitDone
}

// abortChange cancels a change, and prints the next step.
func (a *app) abortChange(ctx context.Context, l *redlock.Locker) int {
	set := l.Admin().Configuration()[0]
	if err := private.Of(l).AbortChange(ctx); err != nil {
		a.complain(err)
		return exitDanger
	}
	next := fmt.Sprintf("give the clients the file of epoch %d, with the old masters as the only ones", set.Epoch+1)
	if a.json {
		a.encode(a.stdout, struct {
			Epoch int64  `json:"epoch"`
			Next  string `json:"next"`
		}{set.Epoch + 1, next})
		return exitDone
	}
	fmt.Fprintf(a.stdout, "epoch %d: the old masters act alone\nnext: %s\n", set.Epoch+1, next)
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

// tellChange says how far the change is, and what is next.
func (a *app) tellChange(admin redlock.Admin, c private.Change) {
	set, masters := admin.Configuration()[0], admin.Masters()
	next := nextStep(set, c)
	if a.json {
		a.encode(a.stdout, jsonChange{
			set.Epoch, c.Raised, c.Open, c.Complete, millis(c.Left), next, jsonMasters(masters),
		})
		return
	}
	for _, m := range masters {
		a.line(m)
	}
	if len(set.Next) == 0 {
		fmt.Fprintf(a.stdout, "epoch %d: %d of %d masters say that they may act alone, %d have the epoch\n",
			set.Epoch, c.Open, len(set.Masters), c.Raised)
	} else {
		fmt.Fprintf(a.stdout, "epoch %d: %d of %d old masters have it; %d of %d next masters may act alone\n",
			set.Epoch, c.Raised, len(set.Masters), c.Open, len(set.Next))
	}
	switch {
	case next == "":
	case !c.Complete || c.OpenAll || !c.RaisedAll || len(set.Next) == 0:
		if c.RaisedAll && !c.OpenAll {
			fmt.Fprintf(a.stdout, "complete in %v; ", c.Left.Round(time.Second))
		}
		fmt.Fprintln(a.stdout, "next:", next)
	default:
		fmt.Fprintln(a.stdout, "complete; next:", next)
	}
}

const nextRaise = "when every client uses this file, redlock set --raise, which refuses those that do not"

// nextStep is what the operator does next; "" if there is nothing.
func nextStep(set redlock.Configuration, c private.Change) string {
	switch {
	case len(set.Next) == 0 && c.OpenAll && !c.RaisedAll:
		return nextRaise + "; then stop the old masters"
	case len(set.Next) == 0:
		return ""
	case c.OpenAll:
		return fmt.Sprintf("give the clients the file of epoch %d, with the next masters as the only ones", set.Epoch+1)
	case !c.RaisedAll:
		return nextRaise
	}
	return "redlock set --finish"
}
