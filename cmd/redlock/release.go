package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

const releaseLong = `With --ask, asks the holder to release the lock, and returns immediately. A program that uses
Lock.ReleaseRequested releases the lock at a suitable point; other programs, "redlock run" and "redlock lock" ignore
the request. A request endangers no lock.
Exit status of --ask: 0 if the request was sent to a holder; 1 if no client holds the name, or its holder is
not subscribed to requests or not connected; 2 if no quorum of the masters was reached.

With --force, takes the lock away from its holder: shows the lease, asks for confirmation, and deletes only that
lease, on all masters that it reaches. It raises the fence, so that the masters refuse late messages of the holder.
The first waiter then gets the name. Without a terminal, as in scripts, --yes is required.

--force endangers the resource that the lock protects. A live holder is notified immediately if it can be reached;
otherwise it detects the loss at its next extension, at most a third of its TTL later. Until its work has stopped,
the holder may write although the next client holds the name. Make sure that the holder is dead, or that the
resource rejects tokens smaller than the largest it has seen. If the holder is dead, wait instead: its name is free
when the TTL has expired.

Exit status of --force: 0 if the holder has lost the lock; 1 if no client holds the name, the lease is not that of
--lease, or the answer was no; 2 if too few masters were reached or vote, so that a holder may still have the lock:
run the command again.`

func releaseCommand(a *app) *cobra.Command {
	var force, ask bool
	var lease string
	cmd := &cobra.Command{
		Use:   "release --ask|--force NAME",
		Short: "ask the holder to release a lock, or take the lock away",
		Long:  releaseLong,
		Example: `  redlock release --ask nightly-report
  redlock release --force nightly-report
  redlock release --force --yes --lease "$(redlock who --json deploy | jq -r .lease)" deploy`,
		Args: func(_ *cobra.Command, names []string) error {
			if len(names) != 1 {
				return fmt.Errorf("redlock release: give the name of one lock, not %d names", len(names))
			}
			return checkNames(names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if force == ask {
				return wrongCall(cmd, errors.New("redlock release: give either --ask, to ask the holder, or --force, to take "+
					"the lock away; see redlock release --help"))
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
	flags.BoolVar(&ask, "ask", false, "ask the holder to release the lock")
	flags.BoolVar(&force, "force", false, "take the lock away without asking the holder")
	a.addYes(cmd, func() bool { return force && !ask }) // with both flags, the usage error comes first
	flags.StringVar(&lease, "lease", "", "release only this lease, as printed by who --json")
	return cmd
}

// requestRelease asks the holder of name to release the lock.
func requestRelease(con *console, c *client, name string) error {
	ctx, cancel := c.within()
	defer cancel()
	asked, err := admin.Of(c.Locker).RequestRelease(ctx, name)
	switch {
	case err != nil:
		return &exit{exitNoQuorum, err}
	case asked == 0:
		return &exit{exitDanger, fmt.Errorf("redlock release: no client holds %q, or its holder is not subscribed to "+
			"requests or not connected", name)}
	}
	con.result(map[string]any{"name": name, "asked": asked}, fmt.Sprintf("the request was sent to %s of %q, and is not "+
		"confirmed: redlock who shows when the name is free\n", transport.Count(asked, "holder"), name))
	return nil
}

// forceRelease shows the lease, and releases it if the user confirms.
func forceRelease(con *console, c *client, name, lease string) error {
	ctx, cancel := c.within()
	defer cancel()
	w := redlockinfo.Inspection{}
	err := agreement(&change{command: "release"}, c.setsOf(c.settled(ctx).Masters))
	if err == nil {
		w, err = c.Inspect(ctx, name)
	}
	if err != nil {
		return &exit{exitNoQuorum, err}
	}
	if !con.json {
		fmt.Fprint(con.stdout, whoText(name, w))
	}
	several := severalHolders(&w)
	for _, one := range several {
		if one.ID == lease || len(several) == 1 && w.ReaderCount < 2 {
			w.Client, w.Token = one.Client, one.Token
			break
		}
	}
	switch {
	case w.ID == "" && len(several)+w.ReaderCount > 0:
		err = fmt.Errorf("redlock release: %s hold the name: choose a lease with --lease; redlock who --json shows them",
			transport.Count(max(len(several), w.ReaderCount), "client"))
	case unknown(&w):
		return &exit{exitNoQuorum, fmt.Errorf("redlock release: nothing was released: it is unknown whether a client holds "+
			"%q: %s; wait until a majority votes, or until the lease has expired", name, doubt(&w))}
	case w.ID == "":
		err = fmt.Errorf("redlock release: no client holds %q", name)
	case lease != "" && lease != w.ID:
		err = fmt.Errorf("redlock release: %q is held by lease %s, but --lease is %s", name, w.ID, lease)
	default:
		err = con.confirm("release", "The holder, if it is alive, may write until it detects the loss. Release the lock?",
			"nothing was released")
	}
	if err != nil {
		return &exit{exitDanger, err}
	}
	ctx, cancel = c.within()
	defer cancel()
	n, err := admin.Of(c.Locker).ForceRelease(ctx, name, w.ID)
	con.result(map[string]any{"name": name, "lease": w.ID, "token": w.Token, "released": n, "masters": w.N},
		fmt.Sprintf("released on %d of %d masters\n", n, w.N))
	if err != nil {
		return &exit{exitNoQuorum, err}
	}
	return nil
}

// severalHolders returns the holders of a name that may have more than one: readers, or the holders of the slots of a
// semaphore.
func severalHolders(w *redlockinfo.Inspection) (list []redlockinfo.Inspection) {
	for _, r := range w.Readers {
		list = append(list, redlockinfo.Inspection{Client: r})
	}
	for _, n := range heldSlots(w) {
		list = append(list, w.Slots[n-1])
	}
	return list
}
