// Command redlock shows and changes the admission of masters: whether they vote.
//
//	redlock status URL...   tells the state of each master, and changes nothing but this: a master without a marker
//	                        begins its quarantine, as it would with any client
//	redlock admit URL...    lets all of them vote at once; for those who know that no lock is held on them
//
// Flags: -prefix (default "redlock"), -guard (default 30s), -timeout (default 10s). The exit code is 0 when a majority
// votes, 1 when it does not, 2 for a wrong call.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = "usage: redlock status|admit [-prefix redlock] [-guard 30s] [-timeout 10s] redis://host:port ..."

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] != "status" && args[0] != "admit" {
		fmt.Fprintln(stderr, usage)
		return 2
	}
	flags := flag.NewFlagSet("redlock "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	prefix := flags.String("prefix", redlock.DefaultPrefix, "what the keys begin with")
	guard := flags.Duration("guard", redlock.DefaultGuardTime, "guard time of the fleet, written where no master has one")
	timeout := flags.Duration("timeout", 10*time.Second, "bound on the whole command")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	masters, err := pool.Dial(flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer masters.Close()
	locker, err := redlock.New(masters, redlock.WithPrefix(*prefix), redlock.WithGuardTime(*guard), redlock.WithTTL(min(*guard, redlock.DefaultTTL)))
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	defer locker.Close(ctx)
	if args[0] == "admit" {
		if err := locker.AdmitNow(ctx); err != nil {
			fmt.Fprintln(stderr, err)
		}
	}
	return report(locker.Ready(ctx), stdout)
}

// report prints a line for each master.
func report(list []redlock.MasterInfo, stdout io.Writer) int {
	voting := 0
	for _, m := range list {
		fmt.Fprintf(stdout, "%-28s %s", m.Addr, m.State)
		if m.Left > 0 {
			fmt.Fprintf(stdout, ", %v left", m.Left.Round(time.Second))
		}
		if m.Err != nil {
			fmt.Fprintf(stdout, ": %v", m.Err)
		}
		fmt.Fprintln(stdout)
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Fprintf(stdout, "%d of %d vote, %d are needed\n", voting, len(list), len(list)/2+1)
	if voting <= len(list)/2 {
		return 1
	}
	return 0
}
