package model

import "slices"

const (
	masters  = 3
	clients  = 2
	attempts = 2 // maximum per client
	holds    = clients * attempts
	quorum   = masters/2 + 1
)

// Phases of a client.
const (
	idle uint8 = iota
	asking
	holding
	gone // no attempt is left
)

// Votes of a master on the present attempt of a client.
const (
	unheard uint8 = iota
	yes
	no
	unasked // it was in quarantine when the attempt began
)

// Marks: the incarnation for which a master is admitted.
const (
	original uint8 = iota
	quarantined
	readmitted
)

// copied marks an acquire under way that the master has read before.
const copied = 4

// A column is one master, with the messages between it and the clients. lock is a hold + 1, fence a ballot. A hold is
// client*attempts + attempt.
type column struct {
	lock, fence, mark uint8
	vote              [clients]uint8
	acquire           [holds]uint8 // in flight: 0, or its stamp's mark + 1, and copied
	release           [holds]uint8 // in flight
}

// A state is a state of the whole system. Ballots are ranks, because only their order matters. Those of attempts that
// began after time has passed are above late.
type state struct {
	column           [masters]column
	phase, attempt   [clients]uint8
	ballot           [holds]uint8 // 0 if no client needs it any more
	won              uint8        // the largest ballot that held
	repeats, forgets uint8        // number used
	late             bool         // time has passed
}

const late = 8

// key encodes a state in few bits. States that are equal up to names and ranks have equal keys.
type key [masters + 1]uint64

func (s *state) key(x *machine) key {
	if !x.noGuard && !x.noFence {
		s.dropSpent(x.ownConnection)
	}
	s.forget()
	a := s.pack()
	t := s.swapped()
	return lesser(a, t.pack())
}

func lesser(a, b key) key {
	if slices.Compare(a[:], b[:]) <= 0 {
		return a
	}
	return b
}

// pack encodes s with the masters sorted.
func (s *state) pack() key {
	var k key
	for i := range s.column {
		k[i] = s.column[i].pack()
	}
	slices.Sort(k[:masters])
	w := writer{}
	for c := range clients {
		w.put(s.phase[c], 2)
		w.put(s.attempt[c], 2)
	}
	for _, b := range s.ballot {
		w.put(b, 4)
	}
	w.put(s.won, 4)
	w.put(s.repeats, 3)
	w.put(s.forgets, 2)
	if s.late {
		w.put(1, 1)
	}
	k[masters] = w.bits
	return k
}

// around encodes the rest of s that affects how masters read messages.
func (s *state) around() uint64 {
	w := writer{}
	for c := range clients {
		w.put(s.phase[c], 2)
		w.put(s.attempt[c], 2)
	}
	for _, b := range s.ballot {
		w.put(b, 4)
	}
	w.put(s.repeats, 3)
	if s.late {
		w.put(1, 1)
	}
	return w.bits
}

func (k key) state() *state {
	s := &state{}
	for i := range s.column {
		s.column[i] = unpack(k[i])
	}
	r := reader{k[masters]}
	for c := range clients {
		s.phase[c], s.attempt[c] = r.get(2), r.get(2)
	}
	for h := range s.ballot {
		s.ballot[h] = r.get(4)
	}
	s.won, s.repeats, s.forgets = r.get(4), r.get(3), r.get(2)
	s.late = r.get(1) == 1
	return s
}

func (c *column) pack() uint64 {
	w := writer{}
	w.put(c.lock, 3)
	w.put(c.fence, 4)
	w.put(c.mark, 2)
	for _, v := range c.vote {
		w.put(v, 2)
	}
	for h := range holds {
		w.put(c.acquire[h], 3)
		w.put(c.release[h], 1)
	}
	return w.bits
}

func unpack(bits uint64) (c column) {
	r := reader{bits}
	c.lock, c.fence, c.mark = r.get(3), r.get(4), r.get(2)
	for i := range c.vote {
		c.vote[i] = r.get(2)
	}
	for h := range holds {
		c.acquire[h], c.release[h] = r.get(3), r.get(1)
	}
	return c
}

type writer struct {
	bits uint64
	at   int
}

func (w *writer) put(v uint8, n int) {
	w.bits |= uint64(v) << w.at
	w.at += n
}

type reader struct{ bits uint64 }

func (r *reader) get(n int) uint8 {
	v := uint8(r.bits & (1<<n - 1))
	r.bits >>= n
	return v
}

// swapped returns s with the clients exchanged.
func (s *state) swapped() *state {
	t := *s
	for i := range t.column {
		c, from := &t.column[i], &s.column[i]
		c.vote[0], c.vote[1] = from.vote[1], from.vote[0]
		if from.lock != 0 {
			c.lock = uint8((int(from.lock)-1+attempts)%holds) + 1
		}
		for h := range holds {
			o := (h + attempts) % holds
			c.acquire[h], c.release[h] = from.acquire[o], from.release[o]
		}
	}
	for h := range holds {
		t.ballot[h] = s.ballot[(h+attempts)%holds]
	}
	t.phase[0], t.phase[1] = s.phase[1], s.phase[0]
	t.attempt[0], t.attempt[1] = s.attempt[1], s.attempt[0]
	return &t
}

// current returns the hold of a client's present attempt.
func (s *state) current(c int) int { return c*attempts + int(s.attempt[c]) }

// over reports whether the attempt h has begun and ended.
func (s *state) over(h int) bool {
	c, a := h/attempts, uint8(h%attempts)
	return a < s.attempt[c] || s.phase[c] == gone
}

// dropSpent drops messages of ended attempts that can no longer have an effect, and fences that no longer refuse
// anything. Fences only grow, and a master that has lost its fence never again has the record that older acquires
// expect.
func (s *state) dropSpent(ownConnection bool) {
	for i := range s.column {
		c := &s.column[i]
		if s.late && c.fence <= late {
			c.fence = 0 // below every future ballot; that older acquires are refused is for the masters to show
		}
		for h := range holds {
			if c.acquire[h] != 0 && s.over(h) && (c.fence >= s.ballot[h] || c.acquire[h]&^copied != c.mark+1) &&
				int(c.lock) != h+1 {
				c.acquire[h] = 0
			}
			noEffect := ownConnection || c.fence >= s.ballot[h] || s.late && s.ballot[h] <= late
			if c.release[h] != 0 && c.acquire[h] == 0 && int(c.lock) != h+1 && noEffect {
				c.release[h] = 0
			}
		}
	}
}

// forget drops values that can no longer matter, and gives ballots the smallest ranks with the same order.
func (s *state) forget() {
	for h := range holds {
		used := !s.over(h)
		for i := range s.column {
			used = used || s.column[i].acquire[h] != 0 || s.column[i].release[h] != 0
		}
		if !used {
			s.ballot[h] = 0
		}
	}
	var seen [2 * late]bool
	s.ranks(func(r *uint8) { seen[*r] = true })
	var to [2 * late]uint8
	for _, base := range []uint8{0, late} {
		next := base
		for r := base; r < base+late; r++ {
			if seen[r] && r != 0 {
				next++
				to[r] = next
			}
		}
	}
	s.ranks(func(r *uint8) { *r = to[*r] })
}

// ranks calls f for each ballot in s.
func (s *state) ranks(f func(*uint8)) {
	for h := range s.ballot {
		f(&s.ballot[h])
	}
	for i := range s.column {
		f(&s.column[i].fence)
	}
	f(&s.won)
}
