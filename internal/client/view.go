package client

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// onView handles a new View. It informs the leases, and logs and traces each master whose state has changed.
func (c *Client) onView(last, next *admission.View) {
	c.leases.ViewChanged(last, next)
	if last.Config != next.Config {
		c.introduce(next.Config)
	}
	for i := range next.Config.All().All() {
		st, before := &next.Masters[i], admission.State{}
		if i < len(last.Masters) {
			before = last.Masters[i]
		}
		if i >= len(last.Masters) || before.Phase != st.Phase || clockChanged(&before, st) {
			m := c.masterInfo(i, st)
			c.journal.changed(i, &before, st, &m)
			c.events.master(&m)
		}
	}
	c.noteQuorum()
	c.journal.durable(next)
	c.journal.watch()
	c.warnGuarded(next)
}

// warnGuarded warns once if the restart guard of c is off, but admission records show clients that have it on.
func (c *Client) warnGuarded(next *admission.View) {
	var guarded []string
	for _, i := range next.Config.Order {
		if next.Masters[i].Guarded {
			guarded = append(guarded, c.pool.Addr(i))
		}
	}
	if len(guarded) > 0 && !c.warnedGuarded {
		c.warnedGuarded = true
		c.events.Log(slog.LevelWarn, guardedByOthers, slog.String("master", strings.Join(guarded, ", ")),
			slog.String("hint", "after a restart of a master two clients may hold a lock: turn the guard on or off in all "+
				"clients; if it is off in all, delete the admission records"))
		c.events.post(redlockinfo.Event{Kind: redlockinfo.KindWarning, Err: errors.New(guardedByOthers)})
	}
}

const guardedByOthers = "redlock: the restart guard is off here, but admission records show clients with the guard on"

// hash returns the hash of everything in a configuration on which two clients must agree.
func (c *Client) hash(of *quorum.Config) string {
	return scripts.Configuration{Shard: c.cfg.Shard, Masters: of.Masters, Next: of.Next, Epoch: of.Epoch}.Hash()
}

// introduce names the connections of the pool after this client and its configuration now.
func (c *Client) introduce(now *quorum.Config) {
	n := &transport.ClientName{
		Label: c.cfg.Label, Prefix: c.cfg.Prefix, Epoch: now.Epoch, Observer: c.cfg.Observer,
		List: c.hash(now),
	}
	if c.cfg.Shard.Of > 0 {
		n.Shard = c.cfg.Shard.String()
	}
	c.pool.SetClientName(c, n)
}

// compareLists is the advice of the log for a client whose list of masters is wrong or out of date. The full advice
// contains both lists, which may be too long for the log.
const compareLists = "run redlock check with this list of masters: it shows the list in the records, and the next step"

// shortage returns the attributes of a log record that explain why no lock can be acquired: no majority of the masters
// can grant a lock, or calls wait without a quorum. It returns nil if locks can be acquired, or if c is closed.
func (c *Client) shortage() []slog.Attr {
	if !c.enter() {
		return nil
	}
	defer c.leave()
	view := c.monitor.View()
	able, waiting := c.sender.Able(view), c.queue.Waiting()
	quorate := view.Config.Rule.Won(able)
	if quorate && waiting.NoQuorum == 0 {
		return nil
	}
	var unable troubles
	known := map[string]bool{} // the masters in unable
	wrongList := false
	for _, i := range view.Config.Order {
		if m := c.masterInfo(i, &view.Masters[i]); m.State != redlockinfo.StateVoting {
			unable.add(troubleOf(&m))
			known[m.Addr] = true
			wrongList = wrongList || admission.WrongList(m.Err)
		}
	}
	var more []slog.Attr
	room := 320                         // for the masters, as JSON: with the rest, 500 bytes
	if f := waiting.Failure; f != nil { // why one of the calls waits, unless the states of the masters say it
		others := slices.DeleteFunc(slices.Clone(f.Masters), func(err error) bool {
			name, _ := addressed(err)
			return known[name]
		})
		if len(others) > 0 || len(f.Masters) == 0 {
			reasons := strings.Join(append([]string{Plain(f.Decision)}, joined(others)...), "; ")
			more = append(more, slog.String("reason", shortened(reasons, mostReason)))
			room -= mostReason
		}
	}
	hint := ""
	switch {
	case quorate:
	case wrongList:
		hint = compareLists
	case !view.Voted && errors.Is(c.sender.NoQuorum(view, nil), admission.ErrQuarantine):
		hint = mayAdmit
	}
	if hint != "" {
		more = append(more, slog.String("hint", hint))
		room -= len(hint)
	}
	return append([]slog.Attr{
		slog.Int("able", able.Len()), slog.Int("needed", view.Config.Rule.Least()),
		slog.Int("waiting", waiting.NoQuorum), slog.Any("masters", unable.within(room)),
	}, more...)
}
