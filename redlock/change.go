package redlock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// reconfigure implements [Admin.Reconfigure] for one shard.
func (l operator) reconfigure(ctx context.Context, s Configuration) (err error) {
	defer func() {
		l.events.post(redlockinfo.Event{Kind: "reconfigured", Token: s.Epoch, Err: err})
	}()
	if err := s.check(); err != nil {
		return err
	}
	if l.cfg.guard == 0 && s.Epoch > 0 {
		return errUnguarded
	}
	return l.withRecords(ctx, "change", func(*admission.View) error { // an idle client may have seen only old records
		select {
		case l.changing <- struct{}{}:
			defer func() { <-l.changing }()
		case <-ctx.Done():
			return l.stopped("change", contextError(ctx))
		case <-l.closing:
			return errClosed
		}
		if s.lists(l.configuration()) {
			return nil
		}
		err := reconfig.MayFollow(l.seen(l.voters.View(), nil), s.Epoch)
		if err != nil { // return before join adds the masters of s to the pool
			return refused(err)
		}
		want, err := s.join(l.pool)
		if err != nil {
			return err
		}
		defer leave(l.pool, want)
		return l.changeTo(ctx, want)
	})
}

// changeTo performs the steps that reconfig.Next returns, until the Locker uses want.
func (l operator) changeTo(ctx context.Context, want *quorum.Config) error {
	for {
		moved := l.voters.Changed()
		view := l.voters.View()
		step, err := reconfig.Next(l.seen(view, want), want)
		if err != nil {
			return refused(err)
		}
		var again <-chan time.Time
		switch {
		case step == reconfig.Stay:
			if view.Config.Tracked != view.Config.Rule { // an earlier change was begun and abandoned
				l.voters.SetConfig(want)
			}
			return nil
		case step == reconfig.Adopt:
			l.adopt(want)
			return nil
		case step == reconfig.Carry:
			again = time.After(20 * time.Millisecond) // poll, since extensions of leases send no notification
		case view.Config.Tracked != want.Rule: // SetConfig closes moved, unless the Locker is closed
			l.voters.SetConfig(view.Config.Following(want))
		}
		select {
		case <-moved:
		case <-again:
		case <-ctx.Done():
			if step == reconfig.Prepare {
				return l.notVoting("change", view, want, contextError(ctx))
			}
			return l.stopped("change", contextError(ctx))
		case <-l.closing:
			return errClosed
		}
	}
}

// adopt makes the Locker use want. If want has two sets, adopt schedules an early extension, at a random time, of each
// lease that uses only one of the sets.
func (l operator) adopt(want *quorum.Config) {
	l.voters.SetConfig(want)
	if !want.Rule.Joint() {
		return
	}
	for _, g := range l.leases.All() {
		if g.Extends() && g.Config() != want {
			g.ExtendSoon(time.Duration(jitter.Int64N(int64(l.cfg.lock.TTL / 4))))
		}
	}
}

// seen returns the input for package reconfig. want is the configuration to change to, or nil.
func (l operator) seen(view *admission.View, want *quorum.Config) reconfig.Seen {
	s := reconfig.Seen{Config: view.Config, Masters: view.Masters, Carried: true}
	if want == nil {
		return s
	}
	for _, g := range l.leases.All() {
		if by := g.Config(); g.Extends() && by.Rule != view.Config.Rule && !want.Within(by) {
			s.Carried = false
		}
	}
	return s
}

// refused returns an error of package reconfig as an error for callers: an ErrInvalid, unless it is errIncomplete.
func refused(err error) error {
	if errors.Is(err, errIncomplete) {
		return err
	}
	return invalid("%w", err)
}

// writeChange writes the records that step, a function of package reconfig, requires.
func (l operator) writeChange(ctx context.Context, step func(reconfig.Seen) ([]reconfig.Writing, error)) error {
	return l.withRecords(ctx, "change", func(view *admission.View) error {
		list, err := step(l.seen(view, nil))
		if err != nil {
			return refused(err)
		}
		for _, w := range list {
			if err := l.writeNumbers(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// levelMaxTTL gives the next masters that vote the longest max TTL of the old masters, and the quarantine for it: a
// client may use that TTL, and must not be refused by the masters to which it changes.
func (l operator) levelMaxTTL(ctx context.Context) error {
	return l.withRecords(ctx, "change", func(view *admission.View) error {
		rule, longest := view.Config.Rule, time.Duration(0)
		for i := range rule.Old.All() {
			longest = max(longest, view.Masters[i].Record.MaxTTL)
		}
		added := quorum.Rule{Old: rule.Next &^ rule.Old & view.Voting}
		if added.Old == 0 {
			return nil
		}
		return l.write(ctx, "change", scripts.AdmitMaxTTL, added, true,
			func(st *admission.State, r *scripts.Record) (bool, error) {
				r.MaxTTL, r.Quarantine = max(r.MaxTTL, longest), max(r.Quarantine, longest)
				return st.Record.MaxTTL >= longest, disagrees(st)
			})
	})
}

// writeNumbers writes the lists and the numbers of w into the records.
func (l operator) writeNumbers(ctx context.Context, w reconfig.Writing) error {
	return l.write(ctx, "change", scripts.AdmitEpoch, w.Rule, false,
		func(st *admission.State, r *scripts.Record) (bool, error) {
			//mutant:abort-quarantine = false
			if w.Voting && !st.Admitted {
				return false, errors.New("not voting")
			}
			if w.Has(st) {
				return true, nil
			}
			if !w.May(st) {
				return false, errors.New("the admission record belongs to another change of the masters")
			}
			r.Masters, r.Next, r.Epoch = w.Record.Masters, w.Record.Next, w.Record.Epoch
			r.Final = max(st.Record.Final, w.Record.Final)
			return false, nil
		})
}

// A Configuration lists the masters that hold the locks of a deployment. A deployment changes its masters by going from
// one configuration to the next. The epoch grows by one each time:
//
//	0  the old masters            {"epoch": 0, "masters": [...]}
//	1  the old and the next       {"epoch": 1, "masters": [...], "next": [...]}    a lock needs a majority of each
//	2  the next masters only      {"epoch": 2, "masters": [the next]}
//
// and so on. An even epoch has one set of masters. An odd epoch has two sets, which may share masters. See
// [Admin.Reconfigure].
type Configuration struct {
	// Epoch is the number of the configuration, from 0 to 2^53-1.
	Epoch int64 `json:"epoch"`
	// Masters are the URLs of the masters, in the form of [pool.URL], or their names in the pool. All clients must name
	// the same masters. To replace a master, go to the next configuration; never just change this list.
	Masters []string `json:"masters"`
	// Next are the masters that the deployment changes to. Only a configuration with an odd epoch has them.
	Next []string `json:"next,omitempty"`
}

// ParseConfiguration reads a Configuration from JSON and checks its epoch. Its masters are checked by the call that
// uses it. Unknown fields are errors. Errors match [ErrInvalid]; their texts contain no credentials.
func ParseConfiguration(text []byte) (Configuration, error) {
	var s Configuration
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Configuration{}, invalid("configuration of masters: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // Decoder.More would miss a trailing bracket
		return Configuration{}, invalid("unexpected text after the configuration of masters")
	}
	return s, s.check()
}

// WithConfiguration sets the initial configuration of each shard. Masters that are not in the pool are added to it. The
// default, and the meaning of a zero Configuration, is epoch 0 with all masters of the pool.
func WithConfiguration(s ...Configuration) Option {
	return lockerOption(func(c *config) { c.sets = s })
}

// check validates the epoch, and whether the lists are those that the epoch requires.
func (s *Configuration) check() error {
	joint := s.Epoch%2 == 1
	switch {
	case s.Epoch < 0 || s.Epoch > scripts.MaxBallot:
		return invalid("epoch %d: must be from 0 to 2^53-1", s.Epoch)
	case len(s.Masters) == 0:
		return invalid("the configuration of epoch %d has no masters", s.Epoch)
	case joint && len(s.Next) == 0:
		return invalid("epoch %d is odd, so it needs next masters", s.Epoch)
	case !joint && len(s.Next) > 0:
		return invalid("epoch %d is even, so it must not have next masters", s.Epoch)
	}
	return nil
}

// lists reports whether s only lists the masters of now, without an epoch, and now has a single set.
func (s *Configuration) lists(now Configuration) bool {
	names := slices.Clone(s.Masters)
	for i, name := range names {
		if m := transport.URL(name); m.Err() == nil {
			names[i] = m.Name
		}
	}
	slices.Sort(names)
	slices.Sort(now.Masters)
	return s.Epoch == 0 && len(now.Next) == 0 && slices.Equal(names, now.Masters)
}

// join returns the configuration s with the numbers of its masters, and takes a reference to each of them, so that no
// other user of the pool can retire them. The caller drops the references with leave when a monitor uses the
// configuration. Masters that are not in the pool are added. If one of the masters is invalid, join adds none.
func (s *Configuration) join(p *transport.Transport) (*quorum.Config, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var all []transport.Master
	var names [2][]string
	for k, texts := range [][]string{s.Masters, s.Next} {
		for i, text := range texts {
			m := transport.URL(text)
			if _, known := p.Find(text); known {
				m.Name = text
			} else if m.Err() != nil {
				return nil, m.Err()
			}
			if j := slices.Index(names[k], m.Name); j >= 0 {
				return nil, invalid("masters %d and %d of a set are the same, %q: one server would have two votes", j, i, m.Name)
			}
			names[k] = append(names[k], m.Name)
			if !slices.ContainsFunc(all, func(o transport.Master) bool { return o.Name == m.Name }) {
				all = append(all, m)
			}
		}
	}
	order, err := p.Use(all...)
	if err != nil {
		return nil, err
	}
	c := &quorum.Config{Epoch: s.Epoch, Slots: p.N(), Masters: scripts.List(names[0]), Order: order}
	if len(names[1]) > 0 {
		c.Next = scripts.List(names[1])
	}
	for k, i := range order {
		if slices.Contains(names[0], all[k].Name) {
			c.Rule.Old |= quorum.One(i)
		}
		if slices.Contains(names[1], all[k].Name) {
			c.Rule.Next |= quorum.One(i)
		}
		c.Slowest = max(c.Slowest, p.Timeout(i))
	}
	c.Tracked = c.Rule
	return c, nil
}

// leave drops the references that join has taken. The pool keeps masters that no monitor uses, for the next attempt.
func leave(p *transport.Transport, c *quorum.Config) {
	for _, i := range c.Order {
		p.Release(i, false)
	}
}

// firstConfig returns the initial configuration of a Locker.
func firstConfig(p *transport.Transport, cfg *config) (*quorum.Config, error) {
	set := cfg.set
	if set == nil {
		set = &Configuration{}
		for i := range p.N() {
			if k, ok := p.Find(p.Addr(i)); ok && k == i { // not retired
				set.Masters = append(set.Masters, p.Addr(i))
			}
		}
	}
	if set.Epoch > 0 && cfg.guard == 0 {
		return nil, errUnguarded
	}
	return set.join(p)
}

// configuration returns the configuration in use.
func (l *shard) configuration() Configuration {
	c := l.voters.View().Config
	s := Configuration{Epoch: c.Epoch}
	for _, i := range c.Order {
		if c.Rule.Old.Has(i) {
			s.Masters = append(s.Masters, l.pool.Addr(i))
		}
		if c.Rule.Next.Has(i) {
			s.Next = append(s.Next, l.pool.Addr(i))
		}
	}
	return s
}
