package client

import (
	"slices"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
)

// A Configuration lists masters. Package redlock describes it.
type Configuration struct {
	Epoch         int64
	Masters, Next []string
}

// isZero reports whether s is the zero Configuration, which means all masters of the pool.
func (s *Configuration) isZero() bool { return s.Epoch == 0 && len(s.Masters) == 0 && len(s.Next) == 0 }

// Check validates the epoch, and whether the lists are those that the epoch requires.
func (s *Configuration) Check() error {
	joint := s.Epoch%2 == 1
	switch {
	case s.Epoch < 0 || s.Epoch > scripts.MaxBallot:
		return Invalid("epoch %d: must be from 0 to 2^53-1", s.Epoch)
	case len(s.Masters) == 0:
		return Invalid("the configuration of epoch %d has no masters", s.Epoch)
	case joint && len(s.Next) == 0:
		return Invalid("epoch %d is odd, so it needs next masters", s.Epoch)
	case !joint && len(s.Next) > 0:
		return Invalid("epoch %d is even, so it must not have next masters", s.Epoch)
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
// other user of the pool can retire them. The caller drops the references with releaseMasters when a monitor uses the
// configuration. Masters that are not in the pool are added. If one of the masters is invalid, join adds none.
func (s *Configuration) join(p *transport.Transport) (*quorum.Config, error) {
	if err := s.Check(); err != nil {
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
				return nil, Invalid("masters %d and %d of a set are the same, %q: one server would have two votes",
					j+1, i+1, m.Name)
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

// releaseMasters drops the references that join has taken. The pool keeps masters that no monitor uses, for the next
// attempt.
func releaseMasters(p *transport.Transport, c *quorum.Config) {
	for _, i := range c.Order {
		p.Release(i, false)
	}
}

// firstConfig returns the initial configuration of a client.
func firstConfig(p *transport.Transport, cfg *Config) (*quorum.Config, error) {
	set := &Configuration{}
	if len(cfg.Initial) > 0 && !cfg.Initial[0].isZero() {
		set = &cfg.Initial[0]
	} else {
		for i := range p.N() {
			if k, ok := p.Find(p.Addr(i)); ok && k == i { // not retired
				set.Masters = append(set.Masters, p.Addr(i))
			}
		}
	}
	if set.Epoch > 0 && cfg.MaxTTL == 0 {
		return nil, errUnguarded
	}
	return set.join(p)
}

// Configuration returns the configuration in use.
func (c *Client) Configuration() Configuration {
	now := c.monitor.View().Config
	s := Configuration{Epoch: now.Epoch}
	for _, i := range now.Order {
		if now.Rule.Old.Has(i) {
			s.Masters = append(s.Masters, c.pool.Addr(i))
		}
		if now.Rule.Next.Has(i) {
			s.Next = append(s.Next, c.pool.Addr(i))
		}
	}
	return s
}
