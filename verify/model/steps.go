package model

import (
	"fmt"
	"slices"
)

// Bounds limits a search, and selects the protections to remove.
type Bounds struct {
	// Attempts of the first and of the second client, at most 2 each.
	Attempts [clients]int
	// Repeats is the total number of requests that are read twice; at most 7.
	Repeats int
	// Forgets is the total number of times that a master loses its data; at most 3.
	Forgets int
	// Passes: time may pass at any moment. After a master has lost its data, it may pass in any case.
	Passes bool
	// RepeatRefused: a request may be read twice even if it was refused the first time.
	RepeatRefused bool
	// OwnConnection: a release follows its acquire on the same connection, and so carries no ballot.
	OwnConnection bool

	// NoGuard: acquires expect no record. NoTombstone: a release raises no fence. NoFence: acquires see none.
	NoGuard, NoTombstone, NoFence bool
}

// A step leads to a state. Its words are for people; they use the names of masters and clients in the state before.
type step struct {
	to    *state
	words func() []string
}

// successors calls f for every possible next step, except those that can be left out because others give the same
// result:
//
//   - Masters read only when it matters. What one master reads does not affect the others, so each reading is deferred
//     until a client needs its reply, or the master loses its data; see burst. To find locks that remain, every state
//     considers everything that a master might read in it.
//   - A client begins an attempt when the one before has ended, or when a master has lost its data or was admitted
//     again, or time has passed. An attempt of which nothing has been read yet is equivalent to none.
//   - Nothing is read just before time passes: locks are gone then, and fences below every later ballot.
func (x *machine) successors(s *state, b *Bounds, f func(step)) {
	var reads [masters][]burst
	for i := range masters {
		reads[i] = x.bursts(s, b, i, false)
	}
	for c := range clients {
		switch s.phase[c] {
		case asking:
			x.holds(s, b, c, &reads, f)
			x.givesUp(s, b, c, &reads, f)
		case holding:
			x.begins(s.end(c, b), b, c, saying(letter(c)+" unlocks: release to all masters"), f)
		}
	}
	for i := range masters {
		x.upset(s, b, i, reads[i], f)
	}
	if !s.late && (b.Passes || s.forgets > 0) {
		words := saying("more time passes than the max TTL and any TTL: the client that asked or held has lost it")
		x.anyBegins(s.timePasses(b), b, words, f)
	}
}

func saying(words ...string) func() []string { return func() []string { return words } }

func letter(c int) string { return string(rune('A' + c)) }

// begins calls f for t, in which client c may begin at once. It does begin if no later event can make a difference.
func (x *machine) begins(t *state, b *Bounds, c int, words func() []string, f func(step)) {
	if t.phase[c] != idle {
		f(step{t, words})
		return
	}
	if int(t.forgets) < b.Forgets && !t.late || b.Passes && !t.late || t.unsettled() {
		f(step{t, words})
	}
	for _, rank := range t.choices() {
		f(step{t.begin(c, rank, x.noGuard), func() []string { return append(words(), t.beginning(c, rank, x.noGuard)) }})
	}
}

// anyBegins calls f for t, in which each idle client may begin at once, or not.
func (x *machine) anyBegins(t *state, b *Bounds, words func() []string, f func(step)) {
	x.begins(t, b, 0, words, func(first step) {
		if first.to.phase[1] != idle {
			f(first)
			return
		}
		x.begins(first.to, b, 1, saying(), func(second step) {
			f(step{second.to, func() []string { return append(first.words(), second.words()...) }})
		})
	})
}

// unsettled reports whether an event may still come that no client causes.
func (s *state) unsettled() bool {
	for i := range s.column {
		if s.column[i].mark == quarantined {
			return true
		}
	}
	return false
}

// choices returns the possible ranks of a new ballot, doubled: even ones are equal to a known ballot, odd ones between.
func (s *state) choices() (list []uint8) {
	base, most := uint8(0), uint8(0)
	if s.late {
		base = late
	}
	s.ranks(func(r *uint8) {
		if *r > base {
			most = max(most, *r-base)
		}
	})
	for r := uint8(1); r <= 2*most+1; r++ {
		list = append(list, r)
	}
	return list
}

// begin starts the next attempt of a client. Masters that are not admitted get no acquire.
func (s *state) begin(c int, doubled uint8, noGuard bool) *state {
	t := *s
	h := s.current(c)
	t.phase[c] = asking
	base := uint8(0)
	if s.late {
		base = late
	}
	own := base + (doubled+1)/2
	if doubled%2 == 1 { // between two: ranks above move up
		t.ranks(func(r *uint8) {
			if *r >= own && *r > base && (s.late || *r < late) {
				*r++
			}
		})
	} else {
		own = base + doubled/2
	}
	t.ballot[h] = own
	for i := range t.column {
		col := &t.column[i]
		col.vote[c] = unheard
		if col.mark == quarantined && !noGuard {
			col.vote[c] = unasked
			continue
		}
		col.acquire[h] = col.mark + 1
	}
	return &t
}

// end ends an attempt or a hold: it sends a release to each master on which the acquire may have had an effect, which
// is each one that got it, except those whose refusal has arrived.
func (s *state) end(c int, b *Bounds, heard ...[]int) *state {
	t := *s
	h := s.current(c)
	for i := range t.column {
		col := &t.column[i]
		saidNo := len(heard) > 0 && slices.Contains(heard[0], i)
		if s.phase[c] == holding || col.vote[c] != unasked && !saidNo {
			col.release[h] = 1
		}
		col.vote[c] = unheard
	}
	t.attempt[c]++
	t.phase[c] = idle
	if int(t.attempt[c]) >= b.Attempts[c] {
		t.attempt[c], t.phase[c] = s.attempt[c], gone
	}
	return &t
}

// upset calls f for master i losing its data, and for the end of its quarantine.
func (x *machine) upset(s *state, b *Bounds, i int, reads []burst, f func(step)) {
	if int(s.forgets) < b.Forgets && !s.late {
		for n := range reads {
			if reads[n].idle {
				continue
			}
			t := *s
			reads[n].on(&t, i)
			t.forgets++
			col := &t.column[i]
			col.lock, col.fence = 0, 0
			if !x.noGuard {
				col.mark = quarantined
			}
			x.anyBegins(&t, b, func() []string {
				return append(told(&reads[n]), fmt.Sprintf("master %d forgets everything",
					i+1))
			}, f)
		}
	}
	if s.late && s.column[i].mark == quarantined {
		t := *s
		t.column[i].mark = readmitted
		x.anyBegins(&t, b, func() []string { return []string{fmt.Sprintf("master %d ends its quarantine", i+1)} }, f)
	}
}

// timePasses ends every attempt and hold for its client, and removes expired keys from the masters.
func (s *state) timePasses(b *Bounds) *state {
	t := *s
	t.late = true
	for i := range t.column {
		t.column[i].pass()
	}
	for c := range clients {
		if t.phase[c] == asking || t.phase[c] == holding {
			t = *t.end(c, b)
		}
	}
	return &t
}
