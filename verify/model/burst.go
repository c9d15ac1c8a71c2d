package model

import (
	"fmt"
	"slices"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A burst is the set of messages that one master reads before something else happens: none, or some of the messages in
// flight to it, in any order.
type burst struct {
	column  column
	repeats uint8 // number of repeats used
	// last is the hold + 1 whose acquire was read last, for the first time; its reply is the client's vote in column.
	last  uint8
	idle  bool // nothing may be read after it
	words []string
}

// on applies the burst, read by master i, to s.
func (r *burst) on(s *state, i int) { s.column[i], s.repeats = r.column, r.repeats }

// bursts returns everything that master i may read; the first burst is empty. Bursts with the same result are listed
// once. A message that changes neither lock nor fence is only read last, for its reply; in any other position it may as
// well stay in flight forever. With all, every message is considered, to find locks that remain.
func (x *machine) bursts(s *state, b *Bounds, i int, all bool) []burst {
	if x.tell { // words name the master
		return x.read(s, b, i, all)
	}
	id := situation{s.column[i].pack(), s.around(), all}
	list, ok := x.bursting[id]
	if !ok {
		list = x.read(s, b, i, all)
		x.bursting[id] = list
	}
	return list
}

// A situation is everything that bursts depend on.
type situation struct {
	column, around uint64
	all            bool
}

func (x *machine) read(s *state, b *Bounds, i int, all bool) []burst {
	list := []burst{{column: s.column[i], repeats: s.repeats}}
	for n := 0; n < len(list); n++ {
		from := list[n]
		if from.idle {
			continue
		}
		add := func(r burst) {
			r.idle = !all && !b.RepeatRefused && r.column.lock == from.column.lock && r.column.fence == from.column.fence
			if r.idle && (r.last == 0 || r.repeats > from.repeats) {
				return
			}
			for n := range list {
				if o := &list[n]; o.column == r.column && o.repeats == r.repeats && o.last == r.last && o.idle == r.idle {
					return
				}
			}
			list = append(list, r)
		}
		for h := range holds {
			x.readAcquire(s, b, i, h, from, add)
			x.readRelease(s, b, i, h, from, add)
		}
	}
	return list
}

// readAcquire calls f for master i reading the acquire of h, once or twice. No client gets the reply to a request that
// was read before.
func (x *machine) readAcquire(s *state, b *Bounds, i, h int, from burst, f func(burst)) {
	stamp := from.column.acquire[h]
	if stamp == 0 {
		return
	}
	o := x.acquire(s, &from.column, h, stamp&^copied-1)
	for again := range 2 {
		if again == 1 && (int(from.repeats) >= b.Repeats || o.kind != scripts.Granted && !b.RepeatRefused) {
			return
		}
		r := burst{column: from.column, repeats: from.repeats + uint8(again)}
		col, c := &r.column, h/attempts
		col.lock, col.fence, col.acquire[h] = o.lock, o.fence, 0
		if again == 1 {
			col.acquire[h] = stamp | copied
		}
		if stamp&copied == 0 && !s.over(h) && s.phase[c] == asking {
			r.last = uint8(h) + 1
			col.vote[c] = no
			if o.kind == scripts.Granted {
				col.vote[c] = yes
			}
		}
		if x.tell {
			r.words = append(slices.Clone(from.words), fmt.Sprintf("master %d reads %s's acquire: %s%s", i+1, holdName(h),
				o.kind, repeated(again)))
		}
		f(r)
	}
}

// readRelease calls f for master i reading the release of h.
func (x *machine) readRelease(s *state, b *Bounds, i, h int, from burst, f func(burst)) {
	if from.column.release[h] == 0 || b.OwnConnection && from.column.acquire[h] != 0 {
		return
	}
	o := x.release(s, &from.column, h)
	for again := range 2 {
		if again == 1 && int(from.repeats) >= b.Repeats {
			return
		}
		r := burst{column: from.column, repeats: from.repeats + uint8(again)}
		r.column.lock, r.column.fence, r.column.release[h] = o.lock, o.fence, uint8(again)
		if x.tell {
			r.words = append(slices.Clone(from.words), fmt.Sprintf("master %d reads the release of %s%s", i+1, holdName(h),
				repeated(again)))
		}
		f(r)
	}
}

// votes returns the bursts of master i after which its vote for client c is v: its earlier reply, or the reply to the
// last message.
func votes(s *state, c, i int, v uint8, reads []burst) (list []*burst) {
	if s.column[i].vote[c] == v {
		return []*burst{&reads[0]}
	}
	for n := range reads {
		if r := &reads[n]; r.last == uint8(s.current(c))+1 && r.column.vote[c] == v {
			list = append(list, r)
		}
	}
	return list
}

// holds calls f for each way in which client c gets a quorum of leases.
func (x *machine) holds(s *state, b *Bounds, c int, reads *[masters][]burst, f func(step)) {
	for i := range masters {
		for j := range i {
			for _, first := range votes(s, c, i, yes, reads[i]) {
				for _, second := range votes(s, c, j, yes, reads[j]) {
					t := *s
					if !bothOn(&t, b, first, i, second, j) {
						continue
					}
					t.phase[c] = holding
					f(step{&t, func() []string {
						return append(told(first, second), fmt.Sprintf("%s hears yes from master %d and %d, and holds", letter(c),
							j+1, i+1))
					}})
				}
			}
		}
	}
}

// bothOn applies two bursts, and reports whether enough repeats were left.
func bothOn(t *state, b *Bounds, first *burst, i int, second *burst, j int) bool {
	used := t.repeats
	first.on(t, i)
	second.on(t, j)
	t.repeats = first.repeats + second.repeats - used
	return int(t.repeats) <= b.Repeats
}

// givesUp calls f for each way in which client c gives up after refusals by some masters, to which it sends no release.
func (x *machine) givesUp(s *state, b *Bounds, c int, reads *[masters][]burst, f func(step)) {
	x.hearsNo(s, b, c, 0, reads, nil, nil, f)
}

// hearsNo continues with master i, whose refusal arrives or does not.
func (x *machine) hearsNo(s *state, b *Bounds, c, i int, reads *[masters][]burst, read []*burst, heard []int,
	f func(step)) {
	if i == masters {
		t := s.end(c, b, heard)
		x.begins(t, b, c, func() []string {
			return append(told(read...), letter(c)+" gives up"+hearing(heard)+", and sends the release to "+s.sentTo(c, heard))
		}, f)
		return
	}
	x.hearsNo(s, b, c, i+1, reads, read, heard, f)
	for _, r := range votes(s, c, i, no, reads[i]) {
		t := *s
		r.on(&t, i)
		if t.repeats = s.repeats + r.repeats - reads[i][0].repeats; int(t.repeats) <= b.Repeats {
			x.hearsNo(&t, b, c, i+1, reads, append(slices.Clone(read), r), append(slices.Clone(heard), i), f)
		}
	}
}

func told(reads ...*burst) (words []string) {
	for _, r := range reads {
		words = append(words, r.words...)
	}
	return words
}
