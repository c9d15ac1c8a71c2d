package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// addYes adds the flag that answers the question of a command that may stop or endanger clients.
func (a *app) addYes(flags *pflag.FlagSet) {
	flags.BoolVar(&a.yes, "yes", false, "do not ask for confirmation")
}

// needsAnswer returns the error of a command that must ask and cannot. Nothing was sent yet.
func (a *app) needsAnswer(cmd *cobra.Command) error {
	if a.yes || stdinIsTerminal() {
		return nil
	}
	return wrongCall(cmd, fmt.Errorf("redlock %s: no terminal to ask for confirmation; use --yes",
		cmd.Name()))
}

// A change is an operation that may stop or endanger clients.
type change struct {
	command string
	target  string   // the master whose record may be another than that of the others; "" if there is none
	effects []string // what will happen, a line each
	question,
	undone string // the question, and what to report if the answer is no
}

// approve reads what the masters say, refuses a change if the list of masters is wrong, shows what will happen to which
// clients, and asks. It returns nil if the change may be made.
func (a *app) approve(ctx context.Context, l *redlock.Locker, pools []*pool.Pool, ch *change) error {
	if err := agreement(ch, settled(ctx, l)); err != nil {
		return err
	}
	if !a.json {
		for _, line := range ch.effects {
			fmt.Fprintln(a.stderr, line)
		}
		fmt.Fprintln(a.stderr, affected(ctx, pools))
	}
	if a.yes {
		return nil
	}
	if !stdinIsTerminal() {
		return fmt.Errorf("redlock %s: no terminal to ask for confirmation; use --yes", ch.command)
	}
	if !a.ask(ch.question) {
		return fmt.Errorf("redlock %s: %s", ch.command, ch.undone)
	}
	return nil
}

// agreement returns an error unless a quorum of the masters was read, and no majority of those has another list. A
// minority stops nothing: its records may be stray ones.
func agreement(ch *change, list []redlockinfo.Master) error {
	for _, shard := range shardsOf(list) {
		read, n := 0, len(shard)
		var others []redlockinfo.Master
		for _, m := range shard {
			if m.State == "down" || m.State == "connecting" {
				continue
			}
			read++
			if m.Addr != ch.target && errors.Is(m.Err, redlock.ErrMasterList) {
				others = append(others, m)
			}
		}
		switch {
		case len(others) > 0 && 2*len(others) >= read:
			return fmt.Errorf("redlock %s: nothing was changed: %d of %d masters have another list: %w", ch.command,
				len(others), read, others[0].Err)
		case read < n/2+1:
			text := fmt.Sprintf("redlock %s: nothing was changed: %d of %d masters can be read, %d are needed", ch.command,
				read, n, n/2+1)
			for _, m := range shard {
				if m.Err != nil && (m.State == "down" || m.State == "connecting") {
					text += fmt.Sprintf("; %s: %v", m.Addr, m.Err)
				}
			}
			return errors.New(text)
		}
	}
	return nil
}

// shardsOf divides a list of masters by shard.
func shardsOf(list []redlockinfo.Master) (shards [][]redlockinfo.Master) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Shard == list[0].Shard {
			n++
		}
		shards, list = append(shards, list[:n]), list[n:]
	}
	return shards
}

// affected returns a line about the clients that are connected to the masters.
func affected(ctx context.Context, pools []*pool.Pool) string {
	var labels []string
	for _, clients := range connected(ctx, pools) {
		for _, c := range clients {
			labels = append(labels, c.Label)
		}
	}
	slices.Sort(labels)
	if labels = slices.Compact(labels); len(labels) == 0 {
		return "clients: none is connected, or they cannot be listed (CLIENT LIST)"
	}
	return "clients: " + strings.Join(labels, ", ")
}

// connected returns the clients that are connected to each master, by address.
func connected(ctx context.Context, pools []*pool.Pool) map[string][]transport.Client {
	all := map[string][]transport.Client{}
	for _, p := range pools {
		for addr, clients := range p.Transport().Clients(ctx) {
			all[addr] = append(all[addr], clients...)
		}
	}
	return all
}

// ask asks the user, and reports whether the answer was yes.
func (a *app) ask(question string) bool {
	fmt.Fprint(a.stderr, question, " [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n') // the end of the input means no
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// within returns a new context for a command after its question, which may have taken long.
func (a *app) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), a.deployment.timeout)
}

// loses returns what happens when master addr loses its vote for the max TTL.
func loses(addr string, list []redlockinfo.Master) (effects []string) {
	for _, shard := range shardsOf(list) {
		voting, n, maxTTL, found := 0, len(shard), 30*time.Second, false
		for _, m := range shard {
			maxTTL = max(maxTTL, m.MaxTTL)
			if m.Addr == addr {
				found = true
				effects = append(effects, fmt.Sprintf("%s is in the state %s", addr, m.State))
			} else if m.State == "voting" {
				voting++
			}
		}
		if !found {
			continue
		}
		effects = append(effects, fmt.Sprintf("it will not vote for %v: meanwhile %d of %d masters vote, %d are needed",
			maxTTL, voting, n, n/2+1))
		if voting < n/2+1 {
			effects = append(effects, "no lock can be acquired or extended meanwhile: held locks end")
		}
	}
	return effects
}
