package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/redlock"
)

const releaseLong = `Takes a lock from its holder: shows the grant, asks if that is meant, and deletes that grant,
and no other, on all masters that it reaches. It raises the fence, so that late messages of the holder are refused.
Then the first waiter gets the name. In scripts, without a terminal, --yes is needed.

This endangers what the lock protects. A holder that lives notices at its next extension, a third of its TTL later,
and may write until then and longer: two clients at a time believe that they hold the name. Make sure that it is
dead, or that the resource refuses a smaller token than it has seen. If the holder is dead, the end of its TTL frees
the name without this command.

Exit status: 0 if the holder has lost the lock; 1 if no client holds the name, another grant is there than --grant says,
or the answer was no; 2 if so few masters were reached that the holder may keep it: then call it again.`

func (a *app) releaseCommand() *cobra.Command {
	var force, yes bool
	var grant string
	cmd := &cobra.Command{
		Use:   "release --force NAME",
		Short: "take a lock from its holder",
		Long:  releaseLong,
		Example: `  redlock release --force nightly-report
  redlock release --force --yes --grant "$(redlock who --json deploy | jq -r .grant)" deploy`,
		Args: func(_ *cobra.Command, names []string) error {
			if len(names) != 1 {
				return fmt.Errorf("redlock release: the name of one lock is wanted, not %d", len(names))
			}
			return checkNames(names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !force {
				return wrongCall(cmd, errors.New("redlock release: it takes a lock from its holder, so --force is wanted; "+
					"read redlock release --help before"))
			}
			if !yes && !stdinIsTerminal() {
				return wrongCall(cmd, errors.New("redlock release: there is no terminal to ask in; --yes releases without asking"))
			}
			c, err := a.deployment.readDeployment(cmd, nil)
			if err != nil {
				return wrongCall(cmd, err)
			}
			l, shut, err := a.open(c, observer)
			if err != nil {
				return wrongCall(cmd, err)
			}
			code := a.release(l, args[0], grant, yes)
			over, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			shut(over)
			return leave(code)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.deployment.addTimeout(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&force, "force", false, "the holder is not asked")
	flags.BoolVar(&yes, "yes", false, "the user is not asked")
	flags.StringVar(&grant, "grant", "", "release only this grant, as printed by who --json")
	return cmd
}

// release shows the grant, and takes it away if the user says yes.
func (a *app) release(l *redlock.Locker, name, grant string, yes bool) int {
	ctx, cancel := context.WithTimeout(context.Background(), a.deployment.timeout)
	w, err := l.Inspect(ctx, name)
	cancel()
	if err != nil {
		a.complain(err)
		return exitNoQuorum
	}
	if !a.json {
		writeWho(a.stdout, name, w)
	}
	switch {
	case w.ID == "":
		a.complain(fmt.Errorf("redlock release: no client holds %q", name))
		return exitDanger
	case grant != "" && grant != w.ID:
		a.complain(fmt.Errorf("redlock release: %q is held by another grant, %s", name, w.ID))
		return exitDanger
	case !yes && !a.confirm():
		a.complain(errors.New("redlock release: nothing was released"))
		return exitDanger
	}
	ctx, cancel = context.WithTimeout(context.Background(), a.deployment.timeout) // the confirmation may have taken long
	defer cancel()
	n, err := l.Admin().ForceRelease(ctx, name, w.ID)
	if a.json {
		a.encode(a.stdout, map[string]any{"name": name, "grant": w.ID, "token": w.Token, "released": n, "masters": w.N})
	} else {
		fmt.Fprintf(a.stdout, "released on %d of %d masters\n", n, w.N)
	}
	if err != nil {
		a.complain(err)
		return exitNoQuorum
	}
	return exitDone
}

// confirm asks the user, and reports whether the answer was yes.
func (a *app) confirm() bool {
	fmt.Fprint(a.stderr, "The holder, if it lives, may go on writing until it notices. Release it? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // the end of the input means no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}
