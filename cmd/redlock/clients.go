package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// otherClients are the clients of one shard that do not use the configuration of this command.
type otherClients struct {
	late  []transport.Client // have an earlier epoch, and may change to the configuration
	never []transport.Client // cannot change to the configuration: same or later epoch, or another number of shards
	// ahead have a later epoch, which no master allows yet: the masters grant them nothing.
	ahead []transport.Client
	// nameless are connections that may belong to clients; see [transport.Transport.Clients].
	nameless []transport.Client
	// known is false if a client could have a majority of the masters without being in one of the lists, because too many
	// masters do not list their clients.
	known bool
	own   transport.ClientName
}

// others returns the connected clients of shard i that do not use the configuration of this command.
func (c *client) others(ctx context.Context, i int) (o otherClients) {
	o.own = c.pools[i].ClientNames()[0]
	masters, unlisted := admin.Of(c.Locker).Configuration()[i].Masters, 0
	all := c.pools[i].Clients(ctx)
	for _, m := range masters {
		if _, listed := all[m]; !listed {
			unlisted++
		}
	}
	o.known = unlisted < len(masters)/2+1
	total, latest := numberOfShards(o.own.Shard), c.latest(ctx, i)
	for _, clients := range all {
		for _, one := range clients {
			sameShards := numberOfShards(one.Shard) == total
			switch {
			case !one.Named:
				o.nameless = append(o.nameless, one)
			case one.Prefix != o.own.Prefix, sameShards && one.Shard != o.own.Shard: // for other names
			case one.List == o.own.List:
			case sameShards && one.Epoch < o.own.Epoch:
				o.late = append(o.late, one)
			case sameShards && one.Epoch%2 == 0 && one.Epoch > latest:
				o.ahead = append(o.ahead, one)
			default:
				o.never = append(o.never, one)
			}
		}
	}
	return o
}

// latest returns the latest epoch that a client of shard i may have: that of this command or of a record, or the next
// one if a majority of the next masters may act without the old ones.
func (c *client) latest(ctx context.Context, i int) int64 {
	own := admin.Of(c.Locker).Configuration()[i]
	latest := own.Epoch
	for _, m := range shardsOf(admin.Of(c.Locker).Masters())[i] {
		latest = max(latest, m.Epoch)
	}
	if p, err := c.set.Clients[i].Change(ctx); err != nil || len(own.Next) > 0 && p.OpenAll {
		latest = max(latest, own.Epoch+1)
	}
	return latest
}

// texts returns descriptions of clients, without duplicates.
func (o *otherClients) texts(list ...transport.Client) []string {
	texts := make([]string, len(list))
	for i, c := range list {
		switch {
		case !c.Named && c.Name != "":
			texts[i] = fmt.Sprintf("a connection named %q of user %q from %s", c.Name, c.User, c.Host)
		case !c.Named:
			texts[i] = fmt.Sprintf("a nameless connection of user %q from %s", c.User, c.Host)
		case c.Shard != o.own.Shard:
			texts[i] = fmt.Sprintf("%s (epoch %d, shard %s)", c.Label, c.Epoch, cmp.Or(c.Shard, "none"))
		case c.Epoch == o.own.Epoch:
			texts[i] = fmt.Sprintf("%s (epoch %d with another list: %s, and this one is %s)", c.Label, c.Epoch, c.List,
				o.own.List)
		default:
			texts[i] = fmt.Sprintf("%s (epoch %d)", c.Label, c.Epoch)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// all returns descriptions of all clients in o.
func (o *otherClients) all() []string {
	return o.texts(slices.Concat(o.late, o.never, o.ahead, o.nameless)...)
}

// cause says why the clients in o.never cannot change to the configuration of this command, what that endangers, and
// what to do. arguments are those of "redlock set" for the file of the configuration; "" if they are not known.
func (o *otherClients) cause(arguments string) (what, risk, fix string) {
	who, total := strings.Join(o.texts(o.never...), ", "), numberOfShards(o.own.Shard)
	layout := func(c transport.Client) bool { return numberOfShards(c.Shard) != total }
	same := func(c transport.Client) bool { return c.Epoch == o.own.Epoch }
	switch {
	case slices.ContainsFunc(o.never, layout):
		return who + ": this client has another number of shards: " + cmp.Or(o.own.Shard, "none"),
			"only clients with the shards in the records acquire locks", "give all clients the same shards"
	case !slices.ContainsFunc(o.never, same):
		return who + fmt.Sprintf(": this list has only epoch %d, and no client goes back", o.own.Epoch),
			"the masters of this list may not be those that the clients need", "use the file of these clients"
	case o.own.Epoch%2 == 1:
		return who + ": no client changes from one list of an epoch to another",
			"these clients acquire no lock when the masters have this list",
			fmt.Sprintf("`redlock set --abort %s`: it cancels the change, and no client loses a lock; then begin again "+
				"with epoch %d", cmp.Or(arguments, "FILE"), o.own.Epoch+2)
	}
	return who + ": only one of the lists can be right", "only clients with the list in the records acquire locks",
		"give all clients the same list; only redlock set replaces a master"
}

// stepAhead is the step for clients that use the file of a later epoch too early.
const stepAhead = "nothing if that file is the end of the present change: redlock set FILE, with the file of the " +
	"other clients, shows the next step; otherwise restart them with the file of the other clients"

// numberOfShards returns the number of shards in a text such as 2/3.
func numberOfShards(shard string) string {
	_, total, _ := strings.Cut(shard, "/")
	return total
}

// misfits returns a finding for each shard with clients that cannot change to the configuration of this command, and
// one for each shard with clients that the masters refuse. arguments are those that "redlock set" needs. If a record
// shows that the list of this command is wrong, that is the only finding, and misfits returns none.
func (c *client) misfits(ctx context.Context, arguments string) (list []redlockinfo.Finding) {
	if c.set.WrongList() != nil {
		return nil
	}
	for i, masters := range shardsOf(admin.Of(c.Locker).Masters()) {
		o := c.others(ctx, i)
		name := c.set.Clients[i].Deployment()
		find := func(s redlockinfo.Severity, what, risk, fix string) {
			list = append(list, redlockinfo.Finding{
				Master: name, Severity: s, About: "clients", What: what, Risk: risk, Fix: fix,
			})
		}
		if len(o.never) > 0 {
			what, risk, fix := o.cause(arguments)
			find(redlockinfo.Failure, what, risk, fix)
		}
		if len(o.ahead) > 0 {
			find(redlockinfo.Warning, strings.Join(o.texts(o.ahead...), ", ")+": no master has this epoch yet, or allows it",
				"these clients acquire no lock until the change of the masters has come to their epoch", stepAhead)
		}
		old := admin.Of(c.Locker).Configuration()[i].Masters
		refused := slices.DeleteFunc(slices.Clone(o.late), func(late transport.Client) bool {
			later := func(m redlockinfo.Master) bool { return !slices.Contains(old, m.Addr) || m.Epoch <= late.Epoch }
			return len(slices.DeleteFunc(slices.Clone(masters), later)) < len(old)/2+1
		})
		if len(refused) > 0 {
			find(redlockinfo.Warning, strings.Join(o.texts(refused...), ", ")+": a majority of the masters refuses this epoch",
				"these clients acquire no lock until they use this list", "wait 10 s, since clients that can change to this "+
					"list do so by themselves; give it to the others, or restart them with it")
		}
	}
	return list
}

// misfit returns the first problem of misfits that is a failure, as an error.
func (c *client) misfit(ctx context.Context, arguments string) error {
	for _, f := range c.misfits(ctx, arguments) {
		if f.Severity == redlockinfo.Failure {
			return fmt.Errorf("%s: %s; %s", f.Master, f.What, f.Fix)
		}
	}
	return nil
}
