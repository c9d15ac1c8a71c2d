package model

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

// Times of the model. Everything happens at one of two moments, further apart than the max TTL, which equals the
// TTL.
const (
	guard = 30 * time.Second
	early = int64(1_700_000_000_000_000)
	later = early + int64(31*time.Second/time.Microsecond)

	prefix = scripts.Prefix("p")
	name   = "n"
)

// A machine runs the masters' real decision function. The effect of one message on one master depends on few values, so
// each case is computed once.
type machine struct {
	noGuard, noTombstone, noFence bool
	ownConnection                 bool
	tell                          bool // give steps words
	encoder                       *scripts.Encoder
	keys                          scripts.Keys
	known                         map[uint32]outcome
	bursting                      map[situation][]burst
	orphans                       map[situation]bool
}

// An outcome is the effect of a message on a master.
type outcome struct {
	lock, fence uint8
	kind        scripts.Outcome // the reply to an acquire
}

func newMachine(b *Bounds) *machine {
	return &machine{noGuard: b.NoGuard, noTombstone: b.NoTombstone, noFence: b.NoFence, ownConnection: b.OwnConnection,
		encoder: scripts.NewEncoder(prefix, 0), keys: prefix.Keys(name), known: map[uint32]outcome{},
		bursting: map[situation][]burst{}, orphans: map[situation]bool{}}
}

// grantOf returns the lease id of attempt h.
func grantOf(h int) string {
	return scripts.LeaseID("client"+strconv.Itoa(h/attempts), uint64(h%attempts+1), "")
}

// now returns the masters' time.
func (s *state) now() int64 {
	if s.late {
		return later
	}
	return early
}

// ballotAt returns the ballot of a rank.
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

// record returns the admission record of a master with this mark. After the master has lost its data its identity is
// another one.
func record(mark uint8) string {
	if mark == quarantined {
		return ""
	}
	return scripts.Record{Stamp: fmt.Sprintf("%016x", 1+int(mark)), Identity: identity(mark).Identity(), Masters: "a,b,c",
		Longest: guard, Quarantine: guard, Admitted: true}.String()
}

func identity(mark uint8) reference.Env {
	return reference.Env{RunID: fmt.Sprintf("a%d", mark), ReplID2: fmt.Sprintf("b%d", mark)}
}

// build returns the keyspace of a master in the state c. Locks and fences are set at now: none expires before the next
// moment.
func (c *column) build(now int64, ballot uint8) *reference.State {
	m := &reference.State{}
	if c.lock != 0 {
		at := ballotAt(ballot)
		m.SetHash(prefix.Lock(name),
			reference.Field{Name: grantOf(int(c.lock) - 1), Value: scripts.LeaseText(1, at, at)})
		m.Expire(now, prefix.Lock(name), guard.Milliseconds())
	}
	if c.fence != 0 {
		m.Set(now, prefix.Fence(name), strconv.FormatInt(ballotAt(c.fence), 10), scripts.FenceKept.Milliseconds())
	}
	if text := record(c.mark); text != "" {
		m.Set(now, prefix.Admission(), text, 0)
	}
	return m
}

// keyspace returns the lock and the fence of a master at now, in the terms of the model.
func keyspace(m *reference.State, now int64) (lock, fence uint8) {
	for h := range holds {
		if _, there := m.Hash(now, prefix.Lock(name))[grantOf(h)]; there {
			lock = uint8(h) + 1
		}
	}
	text, _ := m.Get(now, prefix.Fence(name))
	return lock, rankOf(text)
}

// acquire returns the outcome of a master reading the acquire of h; stamp is the mark that the acquire carries.
func (x *machine) acquire(s *state, c *column, h int, stamp uint8) outcome {
	b := s.ballot[h]
	return x.once(s, c, b, uint32(h)|uint32(stamp)<<2, func() (*scripts.Call, string) {
		text := record(stamp)
		if x.noGuard {
			text = ""
		}
		return x.encoder.Acquire(&x.keys, grantOf(h), guard, ballotAt(b), ballotAt(b), nil), text
	})
}

// release returns the outcome of a master reading the release of h.
func (x *machine) release(s *state, c *column, h int) outcome {
	b := s.ballot[h]
	return x.once(s, c, b, uint32(h)|1<<4, func() (*scripts.Call, string) {
		end := scripts.Ending{Leases: []string{grantOf(h)}}
		if !x.ownConnection {
			end.Ballot = ballotAt(b)
		}
		return x.encoder.Release(&x.keys, end), ""
	})
}

func (x *machine) once(s *state, c *column, ballot uint8, op uint32, call func() (*scripts.Call, string)) outcome {
	id := op | uint32(c.lock)<<5 | uint32(c.fence)<<8 | uint32(c.mark)<<12 | uint32(ballot)<<14
	if s.late {
		id |= 1 << 18
	}
	if known, ok := x.known[id]; ok {
		return known
	}
	q, stamp := call()
	now := s.now()
	from := *c
	if x.noFence {
		from.fence = 0
	}
	m := from.build(now, ballot)
	reply := eval(m, now, c.mark, q, stamp)
	o := outcome{}
	o.lock, o.fence = keyspace(m, now)
	if q.Script == scripts.Acquire {
		v, err := scripts.DecodeVote(reply)
		if err != nil {
			panic(err)
		}
		o.kind = v.Outcome
	} else if x.noTombstone {
		o.fence = c.fence
	}
	x.known[id] = o
	return o
}

// eval runs a call like an in-memory master.
func eval(m *reference.State, now int64, mark uint8, q *scripts.Call, stamp string) any {
	keys, args := q.Arguments(stamp)
	return m.Eval(now, identity(mark), q.Script, keys, args)
}

// pass removes the keys of one master that expire before the second moment.
func (c *column) pass() {
	m := c.build(early, 0)
	c.lock, c.fence = keyspace(m, later)
}
