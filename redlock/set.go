package redlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// clients name the same ones. A master is replaced by another state, never by a change of this list alone.
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
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // More would not see a bracket
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

// Quorum reports whether the masters of which has is true are a quorum: a majority of Masters, and while the fleet
// changes one of Next, too. With [Locker.Masters] it tells whether a lock can be had at this moment.
func (s Set) Quorum(has func(master string) bool) bool {
	most := func(masters []string) bool {
		n := 0
		for _, m := range masters {
			if has(m) {
				n++
			}
		}
		return n > len(masters)/2
	}
	return most(s.Masters) && (len(s.Next) == 0 || most(s.Next))
}

// join makes the masters of s known to the pool, and numbers them. Nothing is dialled if one of them cannot be right.
func (s *Set) join(p *pool.Pool) (*quorum.Config, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var added []pool.Master
	var names [2][]string
	for k, texts := range [][]string{s.Masters, s.Next} {
		for i, name := range texts {
			if _, known := p.Find(name); !known {
				m := pool.URL(name)
				if m.Err() != nil {
					return nil, invalid("%v", m.Err())
				}
				name = m.Name
				_, known = p.Find(name)
				if !known && !slices.ContainsFunc(added, func(o pool.Master) bool { return o.Name == name }) {
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
		return nil, invalid("the pool has known %d masters in its life; %d are the most, so make a new pool and Locker",
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

// firstConfig is what a Locker begins with.
func firstConfig(p *pool.Pool, cfg *config) (*quorum.Config, error) {
	set := cfg.set
	if set == nil {
		set = &Set{}
		for i := range p.N() {
			if k, ok := p.Find(p.Addr(i)); ok && k == i { // it is not retired
				set.Masters = append(set.Masters, p.Addr(i))
			}
		}
	}
	if set.Epoch > 0 && cfg.guard == 0 {
		return nil, errUnguarded
	}
	return set.join(p)
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
