package admission

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// Clients with different max TTLs, some partitioned from some masters, acquire locks repeatedly, while masters
// restart with and without their data, are promoted, free their backlogs, and have their clocks set, and while the
// max TTL is raised and the raise dies. At most a minority of the masters loses data within one TTL, and one clock
// is correct. There is never a second holder.
func TestNobodyGetsInEarly(t *testing.T) {
	seeds := uint64(40)
	if !long.Enabled() {
		seeds = 15
	}
	for seed := range seeds {
		wins := 0
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t, 3+2*r.IntN(2))
		durable := r.IntN(3) == 0
		guards := []time.Duration{20 * time.Second, 30 * time.Second, 60 * time.Second}
		var programs []*program
		for k := range 3 {
			p := w.program(fmt.Sprint("program", k), guards[r.IntN(3)])
			for i := range p.Facts {
				if durable {
					p.Facts[i].Home = fmt.Sprint("h", i)
				}
			}
			programs = append(programs, p)
		}
		programs[0].admit()
		for range 600 {
			w.disturb(r, programs, durable)
			for _, k := range r.Perm(len(programs)) {
				if p := programs[k]; r.IntN(10) > 0 { // otherwise it is frozen
					w.pass(time.Duration(r.IntN(1000))*time.Millisecond, p)
					if r.IntN(3) == 0 && p.lock(time.Duration(1+r.Int64N(p.Guard.Milliseconds()))*time.Millisecond) {
						wins++
					}
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if wins == 0 {
			t.Errorf("seed %d: no client ever won", seed)
		}
	}
}

// longest is the longest TTL of all clients.
const longest = 60 * time.Second

// disturb causes one random event, or none.
func (w *world) disturb(r *rand.Rand, programs []*program, durable bool) {
	n := len(w.servers)
	i := r.IntN(n)
	s := w.servers[i]
	lost := 0
	for _, o := range w.servers {
		if o != s && w.us-o.forgot < longest.Microseconds() {
			lost++
		}
	}
	mayForget := lost < n-quorum.Quorum(n)
	switch r.IntN(40) {
	case 0, 1:
		if mayForget {
			w.forget(s)
		}
	case 2:
		if mayForget { // a replica replaces it, with its record and without the lock
			w.start(s)
			s.env.ReplID2, s.env.Offset = fmt.Sprintf("%040x", r.Uint64()), r.Int64N(100)
			s.by, s.forgot, s.changed = nil, w.us, w.us
		}
	case 3:
		if mayForget { // it was a replica meanwhile
			s.env.ReplID2, s.env.Offset = fmt.Sprintf("%040x", r.Uint64()), r.Int64N(100)
			s.by, s.forgot, s.changed = nil, w.us, w.us
		}
	case 4:
		if w.us-s.changed > longest.Microseconds() {
			s.env.ReplID2 = ""
		}
	case 5, 6, 7:
		programs[r.IntN(len(programs))].reach = quorum.Set(r.Uint64()|r.Uint64()) & quorum.First(n)
	case 8, 9:
		if i > 0 { // a clock that is behind is corrected, or one falls behind
			s.offset = -r.Int64N(2) * r.Int64N(14e6)
		}
	case 10:
		p := programs[r.IntN(len(programs))]
		p.raise([]time.Duration{40 * time.Second, longest}[r.IntN(2)], r.IntN(3*n))
	case 11:
		if durable { // restarted with its data
			w.start(s)
		}
	}
}

// H57, H69: only the effect of a freed backlog is not a change of identity.
func TestIdentitiesAreToldApart(t *testing.T) {
	x := strings.Repeat("1", 40)
	for _, c := range []struct {
		from, to string
		freed    bool
	}{
		{"a" + taken, "a" + zeros, true}, {"a" + zeros, "a" + zeros, false}, {"a" + zeros, "a" + taken, false},
		{"a" + taken, "b" + zeros, false}, {"a" + taken, "a/" + x + "/7", false}, {"", "a" + zeros, false},
	} {
		if got := freed(c.from, c.to); got != c.freed {
			t.Errorf("from %s to %s: %v", c.from, c.to, got)
		}
	}
}
