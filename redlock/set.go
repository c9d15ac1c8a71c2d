package redlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// A Configuration lists the masters that hold the locks of a deployment. A deployment that changes its masters goes
// from one configuration to the next, each with an epoch that is larger by one:
//
//	0  the old masters            {"epoch": 0, "masters": [...]}
//	1  the old and the next       {"epoch": 1, "masters": [...], "next": [...]}    a lock needs a majority of each
//	2  the next masters only      {"epoch": 2, "masters": [the next]}
//
// and so on: an even epoch has one set of masters, an odd epoch two, which may share masters. See [Admin.Reconfigure].
type Configuration struct {
	// Epoch numbers the configurations, from 0. It is below 2^53.
	Epoch int64 `json:"epoch"`
	// Masters are the URLs of the masters, in the form of [pool.URL], or their names in the pool. All clients name the
	// same masters. To replace a master, go to the next configuration; never just change this list.
	Masters []string `json:"masters"`
	// Next are the masters that the deployment changes to. Only an odd epoch has them.
	Next []string `json:"next,omitempty"`
}

// ParseConfiguration reads a Configuration from JSON and checks its epoch; the masters are checked when it is used.
// Unknown fields are errors. Errors match [ErrInvalid]; their texts contain no credentials.
func ParseConfiguration(text []byte) (Configuration, error) {
	var s Configuration
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Configuration{}, invalid("invalid configuration of masters: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // More does not detect a trailing bracket
		return Configuration{}, invalid("text after the configuration of masters")
	}
	return s, s.check()
}

// WithConfiguration sets the initial configuration of the Locker, one for each shard. Masters that are not in the pool
// are added to it. The default, also for a zero Configuration, is epoch 0 with all masters of the pool.
func WithConfiguration(s ...Configuration) Option {
	return lockerOption(func(c *config) { c.sets = s })
}

// check validates the epoch and the fields that depend on it.
func (s *Configuration) check() error {
	joint := s.Epoch%2 == 1
	switch {
	case s.Epoch < 0 || s.Epoch > scripts.MaxBallot:
		return invalid("epoch %d: must be from 0 to 2^53-1", s.Epoch)
	case len(s.Masters) == 0:
		return invalid("the configuration of epoch %d has no masters", s.Epoch)
	case joint && len(s.Next) == 0:
		return invalid("epoch %d is odd, so it needs next masters",
			s.Epoch)
	case !joint && len(s.Next) > 0:
		return invalid("epoch %d is even, so it must not have next masters", s.Epoch)
	}
	return nil
}

// lists reports whether s is a plain list, without an epoch, with the masters of now, which is final.
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

// join adds the masters of s to the pool and numbers them. It dials none of them if one is invalid.
func (s *Configuration) join(p *transport.Transport) (*quorum.Config, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var added []transport.Master
	var names [2][]string
	for k, texts := range [][]string{s.Masters, s.Next} {
		for i, name := range texts {
			if _, known := p.Find(name); !known {
				m := transport.URL(name)
				if m.Err() != nil {
					return nil, invalid("%v", m.Err())
				}
				name = m.Name
				_, known = p.Find(name)
				if !known && !slices.ContainsFunc(added, func(o transport.Master) bool { return o.Name == name }) {
					added = append(added, m)
				}
			}
			if j := slices.Index(names[k], name); j >= 0 {
				return nil, invalid("masters %d and %d of a set are the same, %q: one server would have two votes", j, i, name)
			}
			names[k] = append(names[k], name)
		}
	}
	if p.N()+len(added) > quorum.Most {
		return nil, invalid("the pool has had %d masters, the maximum is %d: make a new pool and Locker",
			p.N(), quorum.Most)
	}
	if _, err := p.Add(added...); err != nil {
		return nil, invalid("%v", err)
	}
	c := &quorum.Config{
		Epoch: s.Epoch, Slots: p.N(), Masters: scripts.List(names[0]),
	}
	if len(names[1]) > 0 {
		c.Next = scripts.List(names[1])
	}
	for k, set := range []*quorum.Set{&c.Rule.Old, &c.Rule.Next} {
		for _, name := range names[k] {
			i, _ := p.Find(name)
			if !c.Rule.All().Has(i) {
				c.Order = append(c.Order, i)
			}
			*set |= quorum.One(i)
			c.Slowest = max(c.Slowest, p.Timeout(i))
		}
	}
	c.Follow = c.Rule
	return c, nil
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
func (l *shard) configuration() Configuration { return l.setOf(l.voters.View().Config) }

func (l *shard) setOf(c *quorum.Config) Configuration {
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
