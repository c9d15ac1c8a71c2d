package model

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

// The times. Everything happens at one of two moments, further apart than the guard time, which is also the TTL.
const (
	guard  = 30 * time.Second
	barTTL = time.Hour
	early  = int64(1_700_000_000_000_000)
	later  = early + int64(31*time.Second/time.Microsecond)

	prefix = scripts.Prefix("p")
	name   = "n"
)

// A machine is what the masters do, by their real decision function. What one master does with one message depends on
// very little, so each case is computed once.
type machine struct {
	noGuard, noTombstone, noBar bool
	tell                        bool // steps have words
	fleet                       scripts.Fleet
	known                       map[uint32]outcome
	bursting                    map[situation][]burst
	orphans                     map[situation]bool
}

// An outcome is what a message has done to a master.
type outcome struct {
	lock, bar uint8
	kind      scripts.Kind // of an acquire
}

func newMachine(b *Bounds) *machine {
	return &machine{noGuard: b.NoGuard, noTombstone: b.NoTombstone, noBar: b.NoBar, fleet: scripts.NewFleet(prefix, guard/2, barTTL, 0), known: map[uint32]outcome{},
		bursting: map[situation][]burst{}, orphans: map[situation]bool{}}
}

func holdOf(h int) scripts.Hold {
	return scripts.NewHold(prefix.Keys(name), "client"+strconv.Itoa(h/attempts)+":"+strconv.Itoa(h%attempts+1), "")
}

// now is the masters' time.
func (s *state) now() int64 {
	if s.late {
		return later
	}
	return early
}

// ballotAt is the number that a rank stands for.
func ballotAt(rank uint8) int64 {
	if rank > late {
		return later + int64(rank)
	}
	return early + int64(rank)
}

func rankOf(ballot string) uint8 {
	if ballot == "" {
		return 0
	}
	n, err := strconv.ParseInt(ballot, 10, 64)
	if err != nil {
		panic(err)
	}
	if n >= later {
		return uint8(n - later)
	}
	return uint8(n - early)
}

// marker is what a master with this mark has; its identity is another one after it has forgotten.
func marker(mark uint8) string {
	if mark == quarantined {
		return ""
	}
	return scripts.Marker{Identity: fmt.Sprintf("a%d/b%d", mark, mark), Guard: guard}.String()
}

// build makes the keyspace of a master as it stands in the model. Locks are as old as the moment, bars too: neither
// expires before the next.
func (c *column) build(now int64) *master.State {
	m := &master.State{}
	if c.lock != 0 {
		m.SetHash(prefix.Lock(name), master.Field{Name: holdOf(int(c.lock) - 1).ID, Value: "1"})
		m.Expire(now, prefix.Lock(name), guard.Milliseconds())
	}
	if c.bar != 0 {
		m.Set(now, prefix.Bar(name), strconv.FormatInt(ballotAt(c.bar), 10), barTTL.Milliseconds())
	}
	if text := marker(c.mark); text != "" {
		m.Set(now, prefix.Marker(), text, 0)
	}
	return m
}

// keyspace is what the master holds at now, in the terms of the model.
func keyspace(m *master.State, now int64) (lock, bar uint8) {
	for h := range holds {
		if _, there := m.Hash(now, prefix.Lock(name))[holdOf(h).ID]; there {
			lock = uint8(h) + 1
		}
	}
	text, _ := m.Get(now, prefix.Bar(name))
	return lock, rankOf(text)
}

// acquire is a master reading the acquire of h; stamp is the mark that it carries.
func (x *machine) acquire(s *state, c *column, h int, stamp uint8) outcome {
	b := s.ballot[h]
	return x.once(s, c, b, uint32(h)|uint32(stamp)<<2, func() (*scripts.Call, string) {
		text := marker(stamp)
		if x.noGuard {
			text = ""
		}
		return x.fleet.AcquireCall(holdOf(h), scripts.ModeAcquire, guard, ballotAt(b), ballotAt(b), 1), text
	})
}

// release is a master reading the release of h.
func (x *machine) release(s *state, c *column, h int) outcome {
	b := s.ballot[h]
	return x.once(s, c, b, uint32(h)|1<<4, func() (*scripts.Call, string) {
		return x.fleet.ReleaseCall(holdOf(h), ballotAt(b), false, scripts.Nothing), ""
	})
}

func (x *machine) once(s *state, c *column, ballot uint8, op uint32, call func() (*scripts.Call, string)) outcome {
	id := op | uint32(c.lock)<<5 | uint32(c.bar)<<8 | uint32(c.mark)<<12 | uint32(ballot)<<14
	if s.late {
		id |= 1 << 18
	}
	if known, ok := x.known[id]; ok {
		return known
	}
	q, stamp := call()
	now := s.now()
	from := *c
	if x.noBar {
		from.bar = 0
	}
	m := from.build(now)
	reply := eval(m, now, c.mark, q, stamp)
	o := outcome{}
	o.lock, o.bar = keyspace(m, now)
	if q.Script == scripts.Acquire {
		v, err := scripts.DecodeVote(reply)
		if err != nil {
			panic(err)
		}
		o.kind = v.Kind
	} else if x.noTombstone {
		o.bar = c.bar
	}
	x.known[id] = o
	return o
}

// eval runs a call as an in-memory master does.
func eval(m *master.State, now int64, mark uint8, q *scripts.Call, stamp string) any {
	args := make([]string, len(q.Args))
	for i, a := range q.Args {
		args[i] = fmt.Sprint(a)
	}
	if q.Stamp > 0 {
		args[q.Stamp] = stamp
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		panic(err)
	}
	reply, _ := m.Eval(now, master.Env{RunID: fmt.Sprintf("a%d", mark), ReplID: fmt.Sprintf("b%d", mark)}, q.Script, args[2:2+n], args[2+n:])
	return reply
}

// pass is time passing on one master: what has expired is gone.
func (c *column) pass() {
	m := c.build(early)
	c.lock, c.bar = keyspace(m, later)
}
