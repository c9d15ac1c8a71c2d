package waitqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/scripts"
)

// A twin is a simple reference implementation of the local queue.
type twin struct {
	holder    *lease.Lease
	contender *Call
	waiting   []*Call
}

// move makes the first waiting call the contender if there is no holder and no contender.
func (w *twin) move() {
	if w.holder == nil && w.contender == nil && len(w.waiting) > 0 {
		w.contender, w.waiting = w.waiting[0], w.waiting[1:]
	}
}

// insert inserts c behind the calls of higher priorities and the earlier calls of the same priority.
func (w *twin) insert(c *Call) {
	at := 0
	for at < len(w.waiting) && (w.waiting[at].Priority > c.Priority ||
		w.waiting[at].Priority == c.Priority && w.waiting[at].seq < c.seq) {
		at++
	}
	w.waiting = slices.Insert(w.waiting, at, c)
}

// idleQueue returns a Queue without masters and wake-ups.
func idleQueue() *Queue {
	q := New(Env{Manager: &lease.Manager{}})
	q.inbox = fakeSub(0)
	return q
}

// A game makes random moves on a nameQueue and its twin.
type game struct {
	q    *Queue
	twin twin
	r    *rand.Rand
}

func (g *game) join() {
	c := &Call{
		Name: "n", Keys: &scripts.Keys{}, Priority: g.r.IntN(3) - 1, Fair: g.r.IntN(4) == 0, Terms: terms(),
		Hold: &lease.Hold{},
	}
	g.q.join(c)
	g.twin.insert(c)
	g.twin.move()
}

// step makes one move.
func (g *game) step() {
	w := &g.twin
	switch pick := g.r.IntN(12); {
	case pick < 5:
		g.join()
	case pick < 6 && w.contender != nil:
		c := w.contender
		w.contender = nil
		w.move()
		g.q.leave(c)
	case pick < 7 && w.contender != nil:
		c := w.contender
		outranked := len(w.waiting) > 0 && w.waiting[0].Priority > c.Priority
		if g.q.yieldLocked(c) != outranked {
			panic("the contender must yield exactly to a call of higher priority")
		}
		if outranked {
			w.contender = nil
			w.insert(c)
			w.move()
		}
	case pick < 8 && w.contender != nil: // the contender has won
		w.contender, w.holder = nil, &lease.Lease{Name: "n"}
		g.q.mu.Lock()
		nq := g.q.names["n"]
		nq.contender, nq.holder = nil, w.holder
		g.q.mu.Unlock()
	case pick < 9 && w.contender == nil:
		w.holder = &lease.Lease{Name: "n"}
		recordHold(g.q, w.holder)
	case pick < 10 && w.holder != nil:
		g.q.Ended(&lease.Lease{Name: "n"}) // the end of an earlier lease does not end the hold
		h := w.holder
		w.holder = nil
		w.move()
		g.q.Ended(h)
	case pick < 11 && w.holder != nil:
		if successor := g.q.Successor("n", 9*time.Second, 10*time.Second); successor != nil {
			if successor.First != w.waiting[0].Hold {
				panic("the successor is not the first waiting call")
			}
			successor.OnHandoff()
			w.waiting = w.waiting[1:]
		}
	case len(w.waiting) > 0:
		i := g.r.IntN(len(w.waiting))
		c := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.move()
		g.q.leave(c)
	}
}

// The local queue behaves like its twin in any order of events: the first waiting call becomes the contender, no
// call is forgotten, and the queue of a name without calls is deleted.
func TestLocalQueueMatchesTwin(t *testing.T) {
	for seed := range uint64(500) {
		g := &game{q: idleQueue(), r: rand.New(rand.NewPCG(seed, 1))}
		for n := range 200 {
			g.step()
			w, nq := &g.twin, g.q.names["n"]
			if w.holder == nil && w.contender == nil && len(w.waiting) == 0 {
				if nq != nil {
					t.Fatalf("seed %d, step %d: a nameQueue without calls is kept: %+v", seed, n, nq)
				}
				continue
			}
			if nq == nil || nq.holder != w.holder || nq.contender != w.contender ||
				!slices.Equal(nq.waiting.calls(), w.waiting) {
				t.Fatalf("seed %d, step %d: the local queue is %+v, want %+v", seed, n, nq, w)
			}
			for _, c := range w.waiting {
				if c.state != queued {
					t.Fatalf("seed %d, step %d: a call that waits has the state %d", seed, n, c.state)
				}
			}
			if c := w.contender; c != nil && c.state != acquiring {
				t.Fatalf("seed %d, step %d: the contender has the state %d", seed, n, c.state)
			}
		}
	}
}

// Successor returns the first waiting call, unless this call is fair or its terms do not accept the lease.
func TestSuccessorAsTable(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(c *Call)
		left, ttl time.Duration
		want      bool
	}{
		{"the first", func(*Call) {}, 9 * time.Second, 10 * time.Second, true},
		{"a shorter TTL than its own", func(*Call) {}, 6 * time.Second, 7 * time.Second, true},
		{"a longer TTL than its own", func(*Call) {}, 9 * time.Second, 11 * time.Second, false},
		{"too little left", func(*Call) {}, 5*time.Second - 1, 10 * time.Second, false},
		{"just enough left", func(*Call) {}, 5 * time.Second, 10 * time.Second, true},
		{"a fair call", func(c *Call) { c.Fair = true }, 9 * time.Second, 10 * time.Second, false},
	} {
		q := idleQueue()
		if q.Successor("n", c.left, c.ttl) != nil {
			t.Errorf("%s: there is a successor although no call waits", c.name)
		}
		recordHold(q, &lease.Lease{Name: "n"})
		first := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Hold: &lease.Hold{}}
		c.change(first)
		q.join(first)
		second := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Hold: &lease.Hold{}}
		q.join(second)
		successor := q.Successor("n", c.left, c.ttl)
		if (successor != nil) != c.want || successor != nil && successor.First != first.Hold {
			t.Errorf("%s: the successor is %+v", c.name, successor)
		}
	}
}

func recordHold(q *Queue, l *lease.Lease) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recordHoldLocked(l)
}
