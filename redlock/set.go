package redlock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// A Set is one state of a fleet's configuration: which masters hold its locks. A fleet that changes its masters goes
// from one state to the next, each with an epoch that is larger by one:
//
//	0  the old masters            {"epoch": 0, "masters": [...]}
//	1  the old and the next       {"epoch": 1, "masters": [...], "next": [...]}    a lock needs a majority of each
//	2  the next ones alone        {"epoch": 2, "masters": [the next]}
//
// and so on: an even epoch has one set, an odd one two, which may share masters. See [Locker.ChangeMasters].
type Set struct {
	// Epoch counts the states, from 0. It is below 2^53.
	Epoch int64 `json:"epoch"`
	// Masters are the URLs of the masters, as [pool.URL] takes them, or the names by which the pool knows them. All
	// programs name them in the same order.
	Masters []string `json:"masters"`
	// Next are those that the fleet changes to. Only an odd epoch has them.
	Next []string `json:"next,omitempty"`
}

// ParseSet reads a Set from JSON and checks its epoch; the masters are looked at when it is used. Fields that it does
// not know are errors. Errors match [ErrInvalidOption]; their texts contain no credentials.
func ParseSet(text []byte) (Set, error) {
	var s Set
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Set{}, invalid("this is no set of masters: %v", err)
	}
	if d.More() {
		return Set{}, invalid("there is something behind the set of masters")
	}
	return s, s.check()
}

// WithSet has the Locker begin with this state of the fleet's configuration. Masters that the pool does not know are
// added to it. The default is epoch 0 with all masters of the pool.
func WithSet(s Set) Option { return lockerOption(func(c *config) { c.set = &s }) }

// String names the epoch and the number of masters.
func (s Set) String() string {
	if s.Epoch%2 == 1 {
		return fmt.Sprintf("epoch %d, %d masters together with %d next ones", s.Epoch, len(s.Masters), len(s.Next))
	}
	return fmt.Sprintf("epoch %d, %d masters", s.Epoch, len(s.Masters))
}

// check looks at the epoch, and at what goes with it.
func (s *Set) check() error {
	joint := s.Epoch%2 == 1
	switch {
	case s.Epoch < 0 || s.Epoch > scripts.MaxBallot:
		return invalid("epoch %d: it is from 0 to 2^53-1", s.Epoch)
	case len(s.Masters) == 0:
		return invalid("the set of epoch %d names no masters", s.Epoch)
	case joint && len(s.Next) == 0:
		return invalid("epoch %d is odd, so old and next masters hold the locks together, and no next ones are named",
			s.Epoch)
	case !joint && len(s.Next) > 0:
		return invalid("epoch %d is even, so one set holds the locks, and next masters are named", s.Epoch)
	}
	return nil
}

// join makes the masters of s known to the pool, and numbers them. Nothing is dialled if one of them cannot be right.
func (s *Set) join(p *pool.Pool) (*quorum.Config, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var added []pool.Master
	for _, texts := range [][]string{s.Masters, s.Next} {
		var names []string
		for i, text := range texts {
			name := text
			if _, known := p.Find(text); !known {
				m := pool.URL(text)
				if m.Err() != nil {
					return nil, invalid("%v", m.Err())
				}
				if name = m.Name(); !slices.ContainsFunc(added, func(o pool.Master) bool { return o.Name() == name }) {
					added = append(added, m)
				}
			}
			if j := slices.Index(names, name); j >= 0 {
				return nil, invalid("masters %d and %d of a set are the same, %q: one server would have two votes", j, i, name)
			}
			names = append(names, name)
		}
	}
	added = slices.DeleteFunc(added, func(m pool.Master) bool { _, known := p.Find(m.Name()); return known })
	if p.N()+len(added) > quorum.Most {
		return nil, invalid("the pool has known %d masters in its life; %d are the most, so make a new pool and Locker",
			p.N(), quorum.Most)
	}
	if _, err := p.Add(added...); err != nil {
		return nil, invalid("%v", err)
	}
	numbers := func(texts []string) (list []int) {
		for _, text := range texts {
			i, known := p.Find(text)
			if !known {
				i, _ = p.Find(pool.URL(text).Name())
			}
			list = append(list, i)
		}
		return list
	}
	return configOf(p, s.Epoch, numbers(s.Masters), numbers(s.Next)), nil
}

// configOf is the configuration of one or two sets, as the pool numbers the masters.
func configOf(p *pool.Pool, epoch int64, masters, next []int) *quorum.Config {
	c := &quorum.Config{Epoch: epoch, Slots: p.N()}
	for k, list := range [][]int{masters, next} {
		for _, i := range list {
			if !c.Rule.All().Has(i) {
				c.Order = append(c.Order, i)
			}
			if k == 0 {
				c.Rule.Old |= quorum.One(i)
			} else {
				c.Rule.Next |= quorum.One(i)
			}
			c.Slowest = max(c.Slowest, p.Timeout(i))
		}
	}
	c.Follow = c.Rule
	return c
}

// firstConfig is what a Locker begins with.
func firstConfig(p *pool.Pool, cfg *config) (*quorum.Config, error) {
	if cfg.set != nil {
		if cfg.set.Epoch > 0 && cfg.guard == 0 {
			return nil, errUnguarded
		}
		return cfg.set.join(p)
	}
	if p.N() > quorum.Most {
		return nil, invalid("%d masters; %d are the most", p.N(), quorum.Most)
	}
	var list []int
	for i := range p.N() {
		if k, ok := p.Find(p.Addr(i)); ok && k == i { // it is not retired
			list = append(list, i)
		}
	}
	return configOf(p, 0, list, nil), nil
}

// Set is the state of the configuration that the Locker goes by. The masters are named as [pool.Pool.Addr] does.
func (l *Locker) Set() Set { return l.setOf(l.voters.View().Config) }

func (l *Locker) setOf(c *quorum.Config) Set {
	s := Set{Epoch: c.Epoch}
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
