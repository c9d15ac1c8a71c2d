package client

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Reconfigure implements Reconfigure of package admin.
func (c *Client) Reconfigure(ctx context.Context, s Configuration) (err error) {
	defer func() {
		c.events.post(redlockinfo.Event{Kind: redlockinfo.KindReconfigured, Token: s.Epoch, Err: err})
	}()
	if err := s.Check(); err != nil {
		return err
	}
	if c.cfg.MaxTTL == 0 && s.Epoch > 0 {
		return errUnguarded
	}
	// An idle client may have seen only old records.
	return c.withRecords(ctx, redlockinfo.OpReconfigure, func(*admission.View) error {
		select {
		case c.changing <- struct{}{}:
			defer func() { <-c.changing }()
		case <-ctx.Done():
			return c.stopped(redlockinfo.OpReconfigure, fault.ContextError(ctx))
		case <-c.closing:
			return lease.ErrClosed
		}
		if s.lists(c.Configuration()) {
			c.stay(c.monitor.View().Config)
			return nil
		}
		err := reconfig.MayFollow(c.seen(c.monitor.View(), nil), s.Epoch)
		if err != nil { // return before join adds the masters of s to the pool
			return refused(err)
		}
		want, err := s.join(c.pool)
		if err != nil {
			return err
		}
		defer releaseMasters(c.pool, want)
		return c.changeTo(ctx, want)
	})
}

// changeTo performs the steps that reconfig.Next returns, until the client uses want.
func (c *Client) changeTo(ctx context.Context, want *quorum.Config) error {
	for {
		moved := c.monitor.Changed()
		view := c.monitor.View()
		step, err := reconfig.Next(c.seen(view, want), want)
		if err != nil {
			return refused(err)
		}
		var again <-chan time.Time
		switch {
		case step == reconfig.Stay:
			c.stay(view.Config)
			return nil
		case step == reconfig.Adopt:
			c.adopt(want)
			return nil
		case step == reconfig.Carry:
			again = time.After(20 * time.Millisecond) // poll, since extensions of leases send no notification
		case view.Config.Tracked != want.Rule: // SetConfig closes moved, unless the Locker is closed
			c.monitor.SetConfig(view.Config.Following(want))
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
			if step == reconfig.Prepare {
				return c.notVoting(redlockinfo.OpReconfigure, view, want, fault.ContextError(ctx))
			}
			return c.stopped(redlockinfo.OpReconfigure, fault.ContextError(ctx))
		case <-c.closing:
			return lease.ErrClosed
		}
	}
}

// stay keeps the configuration now. If another change was begun and abandoned, its masters are no longer admitted.
func (c *Client) stay(now *quorum.Config) {
	if now.Tracked != now.Rule {
		c.monitor.SetConfig(now.Settled())
	}
}

// adopt makes the client use want. If want has two sets, adopt schedules an early extension, at a random time, of each
// lease that uses only one of the sets.
func (c *Client) adopt(want *quorum.Config) {
	c.monitor.SetConfig(want)
	if !want.Rule.Joint() {
		return
	}
	for _, l := range c.leases.All() {
		if l.Extends() && l.Config() != want {
			l.ExtendSoon(time.Duration(jitter.Int64N(int64(c.cfg.Defaults.TTL / 4))))
		}
	}
}

// seen returns the input for package reconfig. want is the configuration to change to, or nil.
func (c *Client) seen(view *admission.View, want *quorum.Config) reconfig.Seen {
	s := reconfig.Seen{Config: view.Config, Masters: view.Masters, Carried: true}
	if want == nil {
		return s
	}
	for _, l := range c.leases.All() {
		if by := l.Config(); l.Extends() && by.Rule != view.Config.Rule && !want.Within(by) {
			s.Carried = false
		}
	}
	return s
}

// refused returns an error of package reconfig as an error for callers: an ErrInvalid, unless it is
// admission.ErrIncomplete.
func refused(err error) error {
	if errors.Is(err, admission.ErrIncomplete) {
		return err
	}
	return Invalid("%w", err)
}

// writeChange writes the records that step, a function of package reconfig, requires.
func (c *Client) writeChange(ctx context.Context, step func(reconfig.Seen) ([]reconfig.Writing, error)) error {
	return c.withRecords(ctx, redlockinfo.OpReconfigure, func(view *admission.View) error {
		list, err := step(c.seen(view, nil))
		if err != nil {
			return refused(err)
		}
		for _, w := range list {
			if err := c.writeNumbers(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// levelMaxTTL gives all masters that vote the longest max TTL of the old masters, and the quarantine for it: a client
// may use that TTL, and must not be refused by the masters to which it changes. At an even epoch, these are the masters
// that did not vote when the change began.
func (c *Client) levelMaxTTL(ctx context.Context) error {
	return c.withRecords(ctx, redlockinfo.OpReconfigure, func(view *admission.View) error {
		rule, longest := view.Config.Rule, time.Duration(0)
		for i := range rule.Old.All() {
			longest = max(longest, view.Masters[i].Record.MaxTTL)
		}
		voting := quorum.Rule{Old: rule.All() & view.Voting}
		return c.write(ctx, redlockinfo.OpReconfigure, scripts.AdmitMaxTTL, voting, true,
			func(_ int, st *admission.State, r *scripts.Record) (bool, error) {
				r.MaxTTL, r.Quarantine = max(r.MaxTTL, longest), max(r.Quarantine, longest)
				return st.Record.MaxTTL >= longest, disagrees(st)
			})
	})
}

// writeNumbers writes the lists and the numbers of w into the records.
func (c *Client) writeNumbers(ctx context.Context, w reconfig.Writing) error {
	return c.write(ctx, redlockinfo.OpReconfigure, scripts.AdmitEpoch, w.Rule, false,
		func(i int, st *admission.State, r *scripts.Record) (bool, error) {
			//mutant:abort-quarantine = false
			if w.Voting && !st.Admitted {
				return false, errors.New("not voting")
			}
			if w.Has(st) {
				return true, nil
			}
			if !w.May(i, st) {
				return false, errors.New("the admission record belongs to another change of the masters")
			}
			r.Masters, r.Next, r.Epoch = w.Record.Masters, w.Record.Next, w.Record.Epoch
			r.Final = max(st.Record.Final, w.Record.Final)
			return false, nil
		})
}

// Change reads the records of all masters that can be reached, and returns the progress of a change: see
// [reconfig.Look]. Change returns the error of ctx, or ErrClosed.
func (s *Set) Change(ctx context.Context) (reconfig.Progress, error) {
	p, err := s.Clients[0].Change(ctx)
	return p, s.Public(err)
}

// Change implements Change of Set for one shard.
func (c *Client) Change(ctx context.Context) (p reconfig.Progress, err error) {
	err = c.withRecords(ctx, redlockinfo.OpReconfigure, func(view *admission.View) error {
		p = reconfig.Look(c.seen(view, nil))
		return nil
	})
	return p, err
}

// RaiseEpoch writes the epoch of this client's configuration into the records of all masters that can be reached. From
// then on, clients with an earlier configuration are refused: see [reconfig.Raise]. Masters that vote with a shorter
// max TTL than the old masters, such as next ones that were admitted with the default, get the longest one of the old.
//
// It returns round.ErrNoQuorum, with the reason of each master that does not have the epoch, if it did not reach a
// majority of each set; admission.ErrIncomplete if the epoch is even and not final; and ErrInvalid for epoch 0. It also
// fails for an epoch that skips one. Records that were written before a failure stay, and RaiseEpoch may be repeated.
func (s *Set) RaiseEpoch(ctx context.Context) error {
	err := s.Clients[0].writeChange(ctx, reconfig.Raise)
	if err == nil {
		err = s.Clients[0].levelMaxTTL(ctx)
	}
	return s.Public(err)
}

// FinishChange makes the next masters of this client's configuration final: see [reconfig.Finish]. If the change is not
// complete (see Change), it writes nothing and returns admission.ErrIncomplete with the remaining time. It returns
// ErrInvalid if the epoch is even, and otherwise the errors of RaiseEpoch.
func (s *Set) FinishChange(ctx context.Context) error {
	return s.Public(s.Clients[0].writeChange(ctx, reconfig.Finish))
}

// AbortChange abandons a change of the masters: see [reconfig.Abort]. It makes the old masters of this client's
// configuration final again, at the next epoch. Clients with the joint configuration adopt the new one by themselves
// and keep their locks.
//
// AbortChange returns ErrInvalid if the epoch is even, or if the next masters are already final. If too few records can
// be written, it writes none. Otherwise its errors are those of RaiseEpoch, and it may be repeated.
func (s *Set) AbortChange(ctx context.Context) error {
	return s.Public(s.Clients[0].writeChange(ctx, reconfig.Abort))
}
