package redlock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// A Set is one state of a fleet's configuration: which masters hold its locks. A fleet that changes its masters goes from
// one state to the next, each with an epoch that is larger by one:
//
//	0  the old masters            {"epoch": 0, "masters": [...]}
//	1  the old and the next       {"epoch": 1, "masters": [...], "next": [...]}    a hold needs a majority of each
//	2  the next ones alone        {"epoch": 2, "masters": [the next]}
//
// and so on: an even epoch has one set, an odd one two, which may share masters. See [Locker.ChangeMasters]. In JSON it is
// what [FileSource] reads.
type Set struct {
	// Epoch counts the states, from 0. It is below 2^53.
	Epoch int64 `json:"epoch"`
	// Masters are the URLs of the masters, as [pool.URL] takes them, or the names by which the pool knows them. All
	// programs name them in the same order.
	Masters []string `json:"masters"`
	// Next are those that the fleet changes to, where the epoch is odd.
	Next []string `json:"next,omitempty"`
}

// ParseSet reads a Set from JSON and checks its epoch; the masters are looked at when it is used. Fields that it does not
// know are errors. Errors match [ErrInvalidOption]; their texts contain no credentials.
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
func WithSet(s Set) Option {
	return lockerOption(func(c *config) { c.set = &s })
}

// joint reports whether two sets are named.
func (s *Set) joint() bool { return s.Epoch%2 == 1 }

// check looks at the epoch, and at what goes with it.
func (s *Set) check() error {
	switch {
	case s.Epoch < 0 || s.Epoch > scripts.MaxBallot:
		return invalid("epoch %d: it is from 0 to 2^53-1", s.Epoch)
	case len(s.Masters) == 0:
		return invalid("the set of epoch %d names no masters", s.Epoch)
	case s.joint() && len(s.Next) == 0:
		return invalid("epoch %d is odd, so old and next masters hold the locks together, and no next ones are named", s.Epoch)
	case !s.joint() && len(s.Next) > 0:
		return invalid("epoch %d is even, so one set holds the locks, and next masters are named; the state with both has an odd epoch", s.Epoch)
	}
	return nil
}

// named checks s, and returns the masters of both sets by name.
func (s *Set) named(p *pool.Pool) (first, second []named, err error) {
	if err := s.check(); err != nil {
		return nil, nil, err
	}
	if first, err = namesOf(p, s.Masters); err == nil {
		second, err = namesOf(p, s.Next)
	}
	return first, second, err
}

// A named is one master of a set: its name, and how it was named where the pool does not know it.
type named struct {
	name   string
	master pool.Master
}

// namesOf names the masters of one set.
func namesOf(p *pool.Pool, texts []string) ([]named, error) {
	list := make([]named, len(texts))
	for i, text := range texts {
		n := named{name: text}
		if _, known := p.Find(text); !known {
			if n.master = pool.URL(text); n.master.Err() != nil {
				return nil, invalid("%v", n.master.Err())
			}
			n.name = n.master.Name()
		}
		if j := slices.IndexFunc(list[:i], func(o named) bool { return o.name == n.name }); j >= 0 {
			return nil, invalid("masters %d and %d of a set are the same, %q: one server would have two votes", j, i, n.name)
		}
		list[i] = n
	}
	return list, nil
}

// join makes the masters of s known to the pool, and numbers them.
func (s *Set) join(p *pool.Pool) (*members, error) {
	first, second, err := s.named(p)
	if err != nil {
		return nil, err
	}
	var numbers [2][]int
	for k, list := range [][]named{first, second} {
		for _, m := range list {
			i, known := p.Find(m.name)
			if !known {
				if p.N() >= maxMasters {
					return nil, invalid("the pool has known %d masters in its life, and %d are the most; make a new pool and Locker", p.N(), maxMasters)
				}
				added, err := p.Add(m.master)
				if err != nil {
					return nil, invalid("%v", err)
				}
				i = added[0]
			}
			if i >= maxMasters {
				return nil, invalid("master %d of the pool, %q: %d masters are the most", i, m.name, maxMasters)
			}
			numbers[k] = append(numbers[k], i)
		}
	}
	return membersOf(p, s.Epoch, numbers[0], numbers[1]), nil
}

// firstSet are the masters that a Locker begins with.
func firstSet(p *pool.Pool, cfg *config) (*members, error) {
	if cfg.set != nil {
		if cfg.set.Epoch > 0 && cfg.guard == 0 {
			return nil, errNoMarkers
		}
		return cfg.set.join(p)
	}
	var list []int
	for i := range p.N() {
		if k, ok := p.Find(p.Addr(i)); ok && k == i {
			list = append(list, i)
		}
	}
	if p.N() > maxMasters {
		return nil, invalid("%d masters; %d are the most", p.N(), maxMasters)
	}
	return membersOf(p, 0, list, nil), nil
}

var errNoMarkers = invalid("the restart guard is off, so nothing on the masters says which set of masters holds, and the set cannot be changed")

// Set is the state of the configuration that the Locker goes by. The masters are named as [pool.Pool.Addr] does.
func (l *Locker) Set() Set { return l.setOf(l.set.Load()) }

func (l *Locker) setOf(m *members) Set {
	s := Set{Epoch: m.epoch}
	for _, i := range m.order {
		if m.rule.first&bit(i) != 0 {
			s.Masters = append(s.Masters, l.pool.Addr(i))
		}
		if m.rule.second&bit(i) != 0 {
			s.Next = append(s.Next, l.pool.Addr(i))
		}
	}
	return s
}

// retain tells the pool which masters this Locker uses, beyond those it was told.
func (l *Locker) retain(set uint64) {
	for rest := set &^ l.retained; rest != 0; {
		l.pool.Retain(popFirst(&rest))
	}
	l.retained |= set
}

// releaseAll tells the pool that this Locker uses no master any more. They stay there for the next one.
func (l *Locker) releaseAll() {
	for l.retained != 0 {
		l.pool.Release(popFirst(&l.retained), false)
	}
}

// String names the epoch and the masters; it contains no credentials where the masters are named without any.
func (s Set) String() string {
	if s.joint() {
		return fmt.Sprintf("epoch %d, %d masters together with %d next ones", s.Epoch, len(s.Masters), len(s.Next))
	}
	return fmt.Sprintf("epoch %d, %d masters", s.Epoch, len(s.Masters))
}

// same reports whether both name the same masters in the same state.
func (m *members) same(o *members) bool { return m.epoch == o.epoch && m.rule == o.rule }
