package model

import (
	"fmt"
	"math/bits"
	"slices"
)

// A Violation is a state that breaks an invariant, and a shortest path to it.
type Violation struct {
	What  string
	Story []string
}

// A Result is the outcome of a search.
type Result struct {
	States    int // number of different states, each examined in full
	Steps     int // number of transitions between them
	Depth     int // length of the longest shortest path
	Violation *Violation
}

// Search examines every state within the bounds, or stops at the first violation. It returns an error after most
// states; 0 is no limit.
func Search(b Bounds, most int) (Result, error) {
	x := newMachine(&b)
	var t table
	start := &state{}
	for c := range clients {
		if b.Attempts[c] == 0 {
			start.phase[c] = gone
		}
	}
	t.add(start.key(x), 0)
	x.anyBegins(start, &b, saying(), func(first step) { t.add(first.to.key(x), 0) })
	r := Result{}
	for at, level := 0, 1; at < len(t.keys); at++ {
		if at == level {
			r.Depth++
			level = len(t.keys)
		}
		s := t.keys[at].state()
		if bad, _ := x.orphan(s, &b); bad != "" {
			way, last := story(x, &b, &t, start, at)
			bad, more := x.orphan(last, &b)
			r.Violation = &Violation{What: bad, Story: append(way, more...)}
			return r, nil
		}
		var bad string
		x.successors(s, &b, func(next step) {
			r.Steps++
			if bad != "" {
				return
			}
			if bad = next.to.wrong(s); bad != "" {
				return
			}
			next.to.keepWon(s)
			t.add(next.to.key(x), uint32(at))
		})
		r.States = at + 1
		if bad != "" {
			way, last := story(x, &b, &t, start, at)
			r.Violation = lastStep(x, &b, last, way)
			return r, nil
		}
		if most > 0 && len(t.keys) > most {
			return r, fmt.Errorf("more than %d states", most)
		}
	}
	return r, nil
}

// wrong returns which invariant s breaks, "" if none; before is its predecessor.
func (s *state) wrong(before *state) string {
	if s.phase[0] == holding && s.phase[1] == holding {
		return "both clients hold the lock"
	}
	for c := range clients {
		if s.phase[c] == holding && before.phase[c] != holding && s.ballot[s.current(c)] <= s.won {
			return fmt.Sprintf("the token of %s is not larger than that of a hold before", holdName(s.current(c)))
		}
	}
	return ""
}

// orphan finds a lock that remains on master i after it has read all messages of a hold that has ended.
func (x *machine) orphan(s *state, b *Bounds) (what string, story []string) {
	if x.noFence { // without a fence there is no tombstone either; this search is for tokens
		return "", nil
	}
	for i := range masters {
		id := situation{s.column[i].pack(), s.around(), true}
		if sound := x.orphans[id]; sound && !x.tell {
			continue
		}
		for _, r := range x.read(s, b, i, true) {
			col := &r.column
			if col.lock == 0 {
				continue
			}
			if h := int(col.lock) - 1; s.over(h) && col.acquire[h] == 0 && col.release[h] == 0 {
				return fmt.Sprintf("master %d has the lock of %s, which has ended, and has read all its messages", i+1,
					holdName(h)), r.words
			}
		}
		x.orphans[id] = true
	}
	return "", nil
}

// keepWon records the token of a hold that has just begun.
func (s *state) keepWon(before *state) {
	for c := range clients {
		if s.phase[c] == holding && before.phase[c] != holding {
			s.won = s.ballot[s.current(c)]
		}
	}
}

// story returns the steps to state number at, and that state. States are stored up to renaming, so the path is
// recomputed from the beginning: each step leads to a state that equals the next stored one up to renaming.
func story(x *machine, b *Bounds, t *table, start *state, at int) (told []string, s *state) {
	x.tell = true
	var way []int
	for n := at; n != 0; n = int(t.from[n]) {
		way = append(way, n)
	}
	slices.Reverse(way)
	s = start
	for i, n := range way {
		steps := x.successors
		if i == 0 {
			steps = func(s *state, b *Bounds, f func(step)) { x.anyBegins(s, b, saying(), f) }
		}
		var next *state
		steps(s, b, func(one step) {
			to := *one.to
			to.keepWon(s)
			if next == nil && to.key(x) == t.keys[n] {
				told, next = append(told, one.words()...), &to
			}
		})
		s = next
	}
	return told, s
}

// lastStep returns the step from s that leads to a violation.
func lastStep(x *machine, b *Bounds, s *state, way []string) (v *Violation) {
	x.successors(s, b, func(one step) {
		if bad := one.to.wrong(s); bad != "" && v == nil {
			v = &Violation{What: bad, Story: append(way, one.words()...)}
		}
	})
	return v
}

// A table is a set of keys in insertion order, each with the number of its predecessor.
type table struct {
	keys []key
	from []uint32
	slot []uint32 // number + 1 of the key with this hash, 0 for none; open addressing
}

func (t *table) add(k key, from uint32) {
	if len(t.keys)*4 >= len(t.slot)*3 {
		t.grow()
	}
	for i := t.hash(k); ; i = (i + 1) & (len(t.slot) - 1) {
		switch n := t.slot[i]; {
		case n == 0:
			t.keys, t.from = append(t.keys, k), append(t.from, from)
			t.slot[i] = uint32(len(t.keys))
			return
		case t.keys[n-1] == k:
			return
		}
	}
}

func (t *table) grow() {
	t.slot = make([]uint32, max(1<<12, 2*len(t.slot)))
	for n := range t.keys {
		i := t.hash(t.keys[n])
		for t.slot[i] != 0 {
			i = (i + 1) & (len(t.slot) - 1)
		}
		t.slot[i] = uint32(n + 1)
	}
}

func (t *table) hash(k key) int {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range k {
		hi, lo := bits.Mul64(h^w, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	return int(h>>1) & (len(t.slot) - 1)
}
