package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A change is an operation that may end or endanger the locks of clients.
type change struct {
	command string
	target  string   // the master whose record may differ from those of the other masters; "" for none
	effects []string // one line each
	question,
	undone string // undone is the error text if the answer is no
}

// approve reads the states of the masters, refuses a change if the list of masters is wrong, shows the effects of the
// change and the affected clients, and asks the user for confirmation. It returns nil if the change may be made.
func approve(ctx context.Context, con *console, c *client, ch *change) error {
	if err := agreement(ch, c.setsOf(c.settled(ctx).Masters)); err != nil {
		return err
	}
	con.say(con.stderr, strings.Join(append(ch.effects, affected(ctx, c.pools)), "\n"))
	return con.confirm(ch.command, ch.question, ch.undone)
}

// agreement returns nil if, in each set, a quorum of the masters can be read, and fewer than half of the masters read
// have a record with another list. A minority of such records is ignored, because these records may be left from
// another deployment.
func agreement(ch *change, sets []masterSet) error {
	for _, set := range sets {
		var others []redlockinfo.Master
		read, needed, reasons := 0, len(set.masters)/2+1, ""
		for _, m := range set.masters {
			switch {
			case m.State != "down" && m.State != "connecting":
				read++
				if m.Addr != ch.target && errors.Is(m.Err, redlock.ErrMasterList) {
					others = append(others, m)
				}
			case m.Err != nil:
				reasons += fmt.Sprintf("; %s: %s", m.Addr, diagnose.Reason(m.Addr, m.Err))
			}
		}
		switch {
		case len(others) > 0 && 2*len(others) >= read:
			return fmt.Errorf("redlock %s: nothing was changed: %d of %d %s have records with another list: %w", ch.command,
				len(others), read, set.name, others[0].Err)
		case read < needed:
			return fmt.Errorf("redlock %s: nothing was changed: %d of %d %s can be read, %d are needed%s", ch.command,
				read, len(set.masters), set.name, needed, reasons)
		}
	}
	return nil
}

// shardsOf divides a list of masters by shard.
func shardsOf(list []redlockinfo.Master) (shards [][]redlockinfo.Master) {
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(m redlockinfo.Master) bool { return m.Shard != list[0].Shard })
		if n < 0 {
			n = len(list)
		}
		shards, list = append(shards, list[:n]), list[n:]
	}
	return shards
}

// A masterSet is a set of masters of which a majority must vote.
type masterSet struct {
	name    string // "masters", "old masters" or "next masters"
	masters []redlockinfo.Master
}

// setsOf divides a list of masters into the sets of each shard: one set, or, during a change, the old and the next
// masters.
func (c *client) setsOf(list []redlockinfo.Master) (sets []masterSet) {
	configurations := admin.Of(c.Locker).Configuration()
	for i, shard := range shardsOf(list) {
		masters, next := configurations[i].Masters, configurations[i].Next
		if len(next) == 0 {
			sets = append(sets, masterSet{"masters", shard})
			continue
		}
		in := func(set []string) []redlockinfo.Master {
			return slices.DeleteFunc(slices.Clone(shard), func(m redlockinfo.Master) bool {
				return !slices.Contains(set, m.Addr)
			})
		}
		sets = append(sets, masterSet{"old masters", in(masters)}, masterSet{"next masters", in(next)})
	}
	return sets
}

// clientLabels returns the labels of the clients that are connected to the masters, sorted, and the hosts of nameless
// connections. unlisted are the masters that did not list their clients.
func clientLabels(ctx context.Context, pools []*transport.Transport) (labels, unlisted []string) {
	for _, p := range pools {
		prefix := p.ClientNames()[0].Prefix
		all := p.Clients(ctx)
		for i := range p.N() {
			if _, listed := all[p.Addr(i)]; !listed {
				unlisted = append(unlisted, p.Addr(i))
			}
		}
		for _, clients := range all {
			for _, c := range clients {
				if c.Named && c.Prefix == prefix {
					labels = append(labels, c.Label)
				} else if !c.Named {
					labels = append(labels, "a nameless connection from "+c.Host)
				}
			}
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels), unlisted
}

// affected returns a line that lists the clients that are connected to the masters.
func affected(ctx context.Context, pools []*transport.Transport) string {
	labels, unlisted := clientLabels(ctx, pools)
	if len(unlisted) > 0 {
		return fmt.Sprintf("clients: %s; CLIENT LIST failed on %s", cmp.Or(strings.Join(labels, ", "), "none is known"),
			strings.Join(unlisted, ", "))
	}
	return "clients: " + cmp.Or(strings.Join(labels, ", "), "no client is connected")
}

// loses returns the effects of a quarantine of master addr, one line each.
func loses(addr string, sets []masterSet) (effects []string) {
	for _, set := range sets {
		i := slices.IndexFunc(set.masters, func(m redlockinfo.Master) bool { return m.Addr == addr })
		if i < 0 {
			continue
		}
		voting, needed, maxTTL := 0, len(set.masters)/2+1, 30*time.Second
		for k, m := range set.masters {
			maxTTL = max(maxTTL, m.MaxTTL)
			if k != i && m.State == "voting" {
				voting++
			}
		}
		if len(effects) == 0 {
			effects = append(effects, fmt.Sprintf("the state of %s is %s", addr, set.masters[i].State))
		}
		effects = append(effects,
			fmt.Sprintf("the master will not vote for %v: meanwhile %d of %d %s vote, %d are needed", maxTTL, voting,
				len(set.masters), set.name, needed))
		if voting < needed {
			effects = append(effects, "no lock can be acquired or extended meanwhile: held locks end")
		}
	}
	return slices.Compact(effects)
}
