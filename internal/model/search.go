package model

import (
	"fmt"
	"math/bits"
	"slices"
)

// A Violation is a state that must not be, and the shortest way to it.
type Violation struct {
	What  string
	Story []string
}

// A Result is what a search has found.
type Result struct {
	States    int // different ones, each looked at in full
	Steps     int // that lead from one to another
	Depth     int // the longest of the shortest ways
	Violation *Violation
}

// Search looks at every state within the bounds, or up to the first violation; most bounds the states, 0 is no
// bound. It returns an error where that was reached first.
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

// wrong says what must not be in s, which comes after before; "" where nothing is.
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

// orphan looks for a lock that stays on master i when it has read all messages of a hold that is over.
func (x *machine) orphan(s *state, b *Bounds) (what string, story []string) {
	if x.noFence { // it is the tombstone, too, and tokens are what is looked for
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
				return fmt.Sprintf("master %d has the lock of %s, which is over, and has read all its messages", i+1,
					holdName(h)), r.words
			}
		}
		x.orphans[id] = true
	}
	return "", nil
}

// keepWon remembers the token of a hold that has just begun.
func (s *state) keepWon(before *state) {
	for c := range clients {
		if s.phase[c] == holding && before.phase[c] != holding {
			s.won = s.ballot[s.current(c)]
		}
	}
}

// story tells the way to state number at, and returns the state that it comes to. States were kept under one of their
// names, so it is walked again from the beginning, from each state to one that is the next but for names.
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

// lastStep tells the step from s that leads to a violation.
func lastStep(x *machine, b *Bounds, s *state, way []string) (v *Violation) {
	x.successors(s, b, func(one step) {
		if bad := one.to.wrong(s); bad != "" && v == nil {
			v = &Violation{What: bad, Story: append(way, one.words()...)}
		}
	})
	return v
}

// A table is a set of keys in the order in which they came, each with the number of the one it came from.
type table struct {
	keys []key
	from []uint32
	slot []uint32 // number + 1 of the key that hashes here, 0 for none; open addressing
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
