package client

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/diagnose"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Masters returns the state of each master of all clients. It sends nothing.
func (s *Set) Masters() (list []redlockinfo.Master) {
	for _, c := range s.Clients {
		list = append(list, c.mastersOf(c.monitor.View())...)
	}
	return list
}

// Warnings returns the warnings about the configuration, one sentence each.
func (s *Set) Warnings() []string { return s.warningsWhere(func(warning) bool { return true }) }

// WarningsOfPart returns the warnings that also hold if the masters are only some of those of a deployment.
func (s *Set) WarningsOfPart() []string {
	return s.warningsWhere(func(w warning) bool { return !w.list })
}

func (s *Set) warningsWhere(ok func(warning) bool) (list []string) {
	for _, c := range s.Clients {
		for _, w := range c.warnings {
			if ok(w) {
				list = append(list, w.text)
			}
		}
	}
	return list
}

// Logger returns the logger that the options have set.
func (s *Set) Logger() *slog.Logger { return s.Clients[0].cfg.Log }

// AwaitKnown waits until the state of each master is known: down, voting or not voting. It returns early if ctx ends.
func (s *Set) AwaitKnown(ctx context.Context) {
	_ = s.each(func(_ int, c *Client) error {
		_, err := c.monitor.Await(ctx, (*admission.View).AllKnown)
		return err
	}) // ignore the error: the states of the masters show that ctx ended early
}

// Verdict returns the verdict of this moment. It sends nothing. seen are findings of the caller, each about the master
// in every shard.
func (s *Set) Verdict(seen ...redlockinfo.Finding) redlockinfo.Verdict {
	list := make([]redlockinfo.Verdict, len(s.Clients))
	for i, c := range s.Clients {
		list[i] = c.present().Judge(seen)
	}
	return diagnose.Join(list)
}

// Lists returns the hash of the configuration of each client, as CLIENT LIST shows it.
func (s *Set) Lists() (list []string) {
	for _, c := range s.Clients {
		list = append(list, c.hash(c.monitor.View().Config))
	}
	return list
}

// WrongList returns an error if a master's record shows that the list of its client is wrong or out of date, and no
// majority of the client's masters votes.
func (s *Set) WrongList() error {
	for _, c := range s.Clients {
		view := c.monitor.View()
		for _, i := range view.Config.Order {
			err := view.Masters[i].Err
			if admission.WrongList(err) && !view.Voting.MajorityOf(view.Config.Rule.Old) {
				return fmt.Errorf("%s: %w", c.pool.Addr(i), err)
			}
		}
	}
	return nil
}

// Transport returns the connections of c.
func (c *Client) Transport() *transport.Transport { return c.pool }

// Counts are counts of one client: see Stats of package redlock.
type Counts struct {
	Held                         []string
	WaitingHeld, WaitingNoQuorum int
	Unconfirmed, Dropped, Panics uint64
}

// Counts returns the counts of c. It sends nothing.
func (c *Client) Counts() (n Counts) {
	for _, l := range c.leases.All() {
		if !l.Idle() {
			n.Held = append(n.Held, l.PublicName())
		}
	}
	waiting := c.queue.Waiting()
	n.WaitingHeld, n.WaitingNoQuorum = waiting.Held, waiting.NoQuorum
	n.Unconfirmed = c.events.unconfirmed.Load()
	n.Dropped, n.Panics = c.events.Queue.Counts()
	return n
}

func (c *Client) mastersOf(v *admission.View) []redlockinfo.Master {
	list := make([]redlockinfo.Master, 0, len(v.Config.Order))
	for _, i := range v.Config.Order {
		list = append(list, c.masterInfo(i, &v.Masters[i]))
	}
	return list
}

// masterInfo returns the description of master i for monitoring.
func (c *Client) masterInfo(i int, st *admission.State) redlockinfo.Master {
	info := redlockinfo.Master{
		Addr: c.pool.Addr(i), Shard: c.cfg.Shard.Number, State: redlockinfo.State(st.Phase.String()),
		MaxTTL: st.Record.MaxTTL, Epoch: st.Record.Epoch,
		Err: st.Err, Pending: c.pool.Pending(i),
	}
	if st.Record.Masters != "" {
		info.List = st.Record.Configuration().Hash()
	}
	if err := c.sender.Trouble(i, st); err != nil && st.Phase == admission.Voting {
		info.State, info.Err = redlockinfo.StateFailing, err
	}
	info.Left = c.quarantineLeft(i, st)
	return info
}

// quarantineLeft returns how much is left of the quarantine of master i in the state st. It returns 0 if the master is
// not in quarantine, or if the time is not known.
func (c *Client) quarantineLeft(i int, st *admission.State) time.Duration {
	if st.Phase != admission.InQuarantine || st.Over == 0 {
		return 0
	}
	now := c.cfg.Clock.Now()
	return max(0, ballot.Span(st.Over-min(c.ballots.Own(now, i), c.ballots.Read(now).First)))
}

// present returns what is known at this moment. It sends nothing.
func (c *Client) present() *diagnose.Client {
	view := c.monitor.View()
	return &diagnose.Client{
		Prefix: c.cfg.Prefix, MaxTTL: c.cfg.MaxTTL, Shard: c.cfg.Shard.Number, Name: c.Deployment(), View: view,
		Able: c.sender.Able(view), Masters: c.mastersOf(view),
	}
}

// Deployment returns the name of the shard in findings and errors.
func (c *Client) Deployment() string {
	if c.cfg.Shard.Of == 0 {
		return "deployment"
	}
	return fmt.Sprintf("shard %d of %d", c.cfg.Shard.Number, c.cfg.Shard.Of)
}
