package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

const releaseLong = `With --ask, requests the holder to release the lock, and returns at once: programs that use
redlock.ReleaseRequested stop at a good point, others ignore it. It takes the lock from no holder and endangers nothing.
Exit status: 0 if a holder has received the request; 1 if no client holds the name, or none is subscribed; 2 if fewer
than a quorum of the masters were reached.

With --force, takes the lock from its holder: shows the lease, asks for confirmation, and deletes only that lease on
all masters that it reaches. It raises the fence, so that late messages of the holder are refused. Then the
first waiter gets the name. In scripts, without a terminal, --yes is needed.

This endangers the resource that the lock protects. A live holder is notified at once if it can be reached, and
otherwise detects the loss with its next extension, a third of its TTL later. It may write until then and longer, while
the next client holds the name. Make sure that it is dead, or that the resource rejects a smaller token than it has
seen. If the holder is dead, the name is free without this command when its TTL has expired.

Exit status of --force: 0 if the holder has lost the lock; 1 if no client holds the name, the lease is not that of
--lease, or the answer was no; 2 if so few masters were reached that the holder may keep it: then call it again.`

func releaseCommand(a *app) *cobra.Command {
	var force, ask bool
	var lease string
	cmd := &cobra.Command{
		Use:   "release --ask|--force NAME",
		Short: "request a lock from its holder, or take it",
		Long:  releaseLong,
		Example: `  redlock release --ask nightly-report
  redlock release --force nightly-report
  redlock release --force --yes --lease "$(redlock who --json deploy | jq -r .lease)" deploy`,
		Args: func(_ *cobra.Command, names []string) error {
			if len(names) != 1 {
				return fmt.Errorf("redlock release: give the name of one lock, not %d", len(names))
			}
			return checkNames(names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if force == ask {
				return wrongCall(cmd, errors.New("redlock release: use --ask to request the lock from its holder, or take it "+
					"with --force; see redlock release --help"))
			}
			return a.observe(cmd, nil, func(c *client) error {
				if ask {
					return requestRelease(&a.console, c, args[0])
				}
				return forceRelease(&a.console, c, args[0], lease)
			})
		},
	}
	a.deployment.addTimeout(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&ask, "ask", false, "request the lock from its holder, which may release it")
	flags.BoolVar(&force, "force", false, "take the lock from its holder without a request")
	a.addYes(cmd, func() bool { return force && !ask }) // both flags together are an error, which must come first
	flags.StringVar(&lease, "lease", "", "release only this lease, as printed by who --json")
	return cmd
}

// requestRelease asks the holder of a name to release it.
func requestRelease(con *console, c *client, name string) error {
	ctx, cancel := c.within()
	defer cancel()
	heard, err := c.Admin().RequestRelease(ctx, name)
	switch {
	case err != nil:
		return &exit{exitNoQuorum, err}
	case heard == 0:
		return &exit{exitDanger, fmt.Errorf("redlock release: no client holds %q, or its holder is not subscribed to "+
			"requests", name)}
	}
	con.result(map[string]any{"name": name, "heard": heard},
		fmt.Sprintf("requested from %d holder(s) of %q\n", heard, name))
	return nil
}

// forceRelease shows the lease, and releases it if the user confirms.
func forceRelease(con *console, c *client, name, lease string) error {
	ctx, cancel := c.within()
	defer cancel()
	w := redlockinfo.Inspection{}
	err := agreement(&change{command: "release"}, c.setsOf(c.settled(ctx)))
	if err == nil {
		w, err = c.Inspect(ctx, name)
	}
	if err != nil {
		return &exit{exitNoQuorum, err}
	}
	if !con.json {
		fmt.Fprint(con.stdout, whoText(name, w))
	}
	switch {
	case w.ID == "":
		err = fmt.Errorf("redlock release: no client holds %q", name)
	case lease != "" && lease != w.ID:
		err = fmt.Errorf("redlock release: %q is held by another lease, %s", name, w.ID)
	default:
		err = con.confirm("release", "The holder, if it is alive, may write until it detects the loss. Release it?",
			"nothing was released")
	}
	if err != nil {
		return &exit{exitDanger, err}
	}
	ctx, cancel = c.within()
	defer cancel()
	n, err := c.Admin().ForceRelease(ctx, name, w.ID)
	con.result(map[string]any{"name": name, "lease": w.ID, "token": w.Token, "released": n, "masters": w.N},
		fmt.Sprintf("released on %d of %d masters\n", n, w.N))
	if err != nil {
		return &exit{exitNoQuorum, err}
	}
	return nil
}
