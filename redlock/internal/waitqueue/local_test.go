package waitqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A twin implements the rule of the local queue plainly.
type twin struct {
	holder    *lease.Lease
	contender *Call
	waiting   []*Call
}

// move makes the first waiting call the contender, if the rule says so.
func (w *twin) move() {
	if w.holder == nil && w.contender == nil && len(w.waiting) > 0 {
		w.contender, w.waiting = w.waiting[0], w.waiting[1:]
	}
}

// stand inserts a call at its place: those of its priority that came before it, and all of a better one, are before it.
func (w *twin) stand(c *Call) {
	at := 0
	for at < len(w.waiting) && (w.waiting[at].Priority > c.Priority ||
		w.waiting[at].Priority == c.Priority && w.waiting[at].seq < c.seq) {
		at++
	}
	w.waiting = slices.Insert(w.waiting, at, c)
}

// idleQueue is a Queue without masters and wake-ups.
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
	g.twin.stand(c)
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
			panic("it gives way, or not, for no reason")
		}
		if outranked {
			w.contender = nil
			w.stand(c)
			w.move()
		}
	case pick < 8 && w.contender != nil: // it has won
		w.contender, w.holder = nil, &lease.Lease{Name: "n"}
		g.q.mu.Lock()
		nq := g.q.names["n"]
		nq.contender, nq.holder = nil, w.holder
		g.q.mu.Unlock()
	case pick < 9 && w.contender == nil:
		w.holder = &lease.Lease{Name: "n"}
		g.q.RecordHold(w.holder)
	case pick < 10 && w.holder != nil:
		g.q.Ended(&lease.Lease{Name: "n"}) // an earlier one does not end the later
		h := w.holder
		w.holder = nil
		w.move()
		g.q.Ended(h)
	case pick < 11 && w.holder != nil:
		if successor := g.q.Successor("n")(9*time.Second, 10*time.Second); successor != nil {
			if successor.Hold != w.waiting[0].Hold {
				panic("it goes to another than the first")
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

// The local queue does what its rule says, in any order things happen: the call that becomes the contender was first,
// no call is forgotten, and nothing is kept of a name that no client wants.
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
			if nq == nil || nq.holder != w.holder || nq.contender != w.contender || !slices.Equal(nq.waiting, w.waiting) {
				t.Fatalf("seed %d, step %d: %+v, want %+v", seed, n, nq, w)
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

// Waiting calls are ordered by priority, and then by the time of the call.
func TestWaitersAreOrderedByPriorityThenCall(t *testing.T) {
	q := idleQueue()
	for _, priority := range []int{1000, 0, 5, -3, 5, 0, 7, -3} {
		c := &Call{Name: "n", Keys: &scripts.Keys{}, Priority: priority}
		q.join(c)
	}
	var got []int
	for _, c := range q.names["n"].waiting {
		got = append(got, c.Priority*100+int(c.seq))
	}
	if want := []int{707, 503, 505, 2, 6, -296, -292}; !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// A lease is handed off to the first waiting call, if that is not fair and the lease suits its terms.
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
		if q.Successor("n")(c.left, c.ttl) != nil {
			t.Errorf("%s: there is a successor without a call", c.name)
		}
		q.RecordHold(&lease.Lease{Name: "n"})
		first := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Hold: &lease.Hold{}}
		c.change(first)
		q.join(first)
		second := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Hold: &lease.Hold{}}
		q.join(second)
		successor := q.Successor("n")(c.left, c.ttl)
		if (successor != nil) != c.want || successor != nil && successor.Hold != first.Hold {
			t.Errorf("%s: the successor is %+v", c.name, successor)
		}
	}
}

func TestCallsOfOneClientFollowByHandoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		a := p.start(p.call(0, false))
		b := p.start(p.call(0, false))
		c := p.start(p.call(0, false))
		for _, next := range []*pending{b, c} {
			if a.is() != "holds" || next.is() != "waits" {
				t.Fatalf("%s and %s", a.is(), next.is())
			}
			p.unlock(a)
			if next.is() != "holds" || next.Hold.Token() != a.Hold.Token()+1 {
				t.Fatalf("the next %s, with token %d after %d", next.is(), next.Hold.Token(), a.Hold.Token())
			}
			a = next
		}
		p.unlock(c)
		synctest.Wait()
		if n := p.count("attempted true") + p.count("attempted false"); n != 1 || p.names["n"] != nil {
			t.Errorf("%d rounds; of the name is left %+v", n, p.names["n"])
		}
	})
}

// A call with a better priority than the contender's takes over, and the contender is behind it.
func TestContenderYieldsToABetterPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		p.Masters.Take("n", 10*time.Second)
		low := p.start(p.call(-1, true))
		after(10 * time.Millisecond)
		high := p.start(p.call(7, true))
		after(10 * time.Millisecond)
		if nq := p.names["n"]; nq.contender != high.Call || !slices.Equal(nq.waiting, []*Call{low.Call}) {
			t.Fatalf("%+v", nq)
		}
		if got := p.waiters(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("in the masters' queues are %v", got)
		}
		p.Masters.Free("n")
		after(2 * time.Second)
		if high.is() != "holds" || low.is() != "waits" {
			t.Errorf("the better one %s, the other %s", high.is(), low.is())
		}
		p.unlock(high)
		if after(2 * time.Second); low.is() != "holds" {
			t.Errorf("the other %s", low.is())
		}
	})
}

// A call that becomes the contender as its context ends promotes the next one.
func TestContenderThatLeavesPromotesTheNext(t *testing.T) {
	q := idleQueue()
	var calls []*Call
	for range 3 {
		c := &Call{Name: "n", Keys: &scripts.Keys{}}
		q.join(c)
		calls = append(calls, c)
	}
	q.leave(calls[0])
	if q.names["n"].contender != calls[1] || calls[1].state != acquiring {
		t.Error("the turn went to no client")
	}
	if got := q.leave(calls[1]); got != abandoned || q.names["n"].contender != calls[2] || calls[2].state != acquiring {
		t.Errorf("a contender that has left has the state %d", got)
	}
	if q.leave(calls[1]); q.names["n"].contender != calls[2] {
		t.Error("one that quits twice takes the turn of another")
	}
	if q.leave(calls[2]); len(q.names) != 0 {
		t.Errorf("%d name queues are left", len(q.names))
	}
}

// A lease that is handed to a call whose context ends at that very moment goes on to the next, or is released: no
// client extends it forever.
func TestLeaseHandedToACancelledCallIsNotLeftBehind(t *testing.T) {
	for _, others := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestClient(t, 3)
			a := p.start(p.call(0, false))
			b := p.start(p.call(0, false))
			var c *pending
			if others > 0 {
				c = p.start(p.call(0, false))
			}
			p.handing = func() { // the handoff to b is not finished yet
				b.cancel()
				synctest.Wait()
			}
			p.unlock(a)
			if b.is() != "failed" || !errors.Is(<-b.err, context.Canceled) {
				t.Fatal("the call whose context has ended")
			}
			if c != nil {
				if c.is() != "holds" {
					t.Fatalf("the next %s", c.is())
				}
				p.unlock(c)
			}
			synctest.Wait()
			if id, on := p.Masters.Holder("n"); on != 0 {
				t.Errorf("%s is left on %d masters", id, on)
			}
			if len(p.Manager.All()) != 0 || p.names["n"] != nil {
				t.Errorf("%d leases are live; of the name is left %+v", len(p.Manager.All()), p.names["n"])
			}
			if n := p.count("acquired"); n != p.count("released") || n != 2+others {
				t.Errorf("%d ownerships began, %d ended", n, p.count("released"))
			}
		})
	}
}

// A call that gives up while it is in the local queue says so, and leaves nothing: neither here nor in the masters'
// queues, which a fair call joins before the release of the one before it (H85).
func TestCallCancelledInTheLocalQueueLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		a := p.start(p.call(0, true))
		b := p.start(p.call(0, true))
		after(10 * time.Millisecond) // its inbox is open
		p.Queue.Releasing(a.Hold.Lease())
		synctest.Wait()
		if got := p.waiters(); !slices.Equal(got, []int{1, 1, 1}) {
			t.Errorf("a fair call that is next is not in the queues before the release: %v", got)
		}
		b.cancel()
		var f *round.Failure
		if b.is() != "failed" || !errors.As(<-b.err, &f) || !errors.Is(f.Cause, context.Canceled) ||
			!errors.Is(f.Decision, round.ErrHeld) {
			t.Fatalf("it %s: %+v", b.is(), f)
		}
		synctest.Wait()
		if got := p.waiters(); !slices.Equal(got, []int{0, 0, 0}) {
			t.Errorf("in the masters' queues are left %v", got)
		}
		if len(p.subscribers) != 0 || len(p.names["n"].waiting) != 0 {
			t.Errorf("here are left %d waiters, %d calls", len(p.subscribers), len(p.names["n"].waiting))
		}
		p.unlock(a)
	})
}

// Calls that wait end with Close.
func TestWaitingCallsEndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestClient(t, 3)
		p.Masters.Take("n", 10*time.Second)
		a := p.start(p.call(0, false))
		b := p.start(p.call(0, false))
		p.once.Do(func() { close(p.closing) })
		for _, l := range []*pending{a, b} {
			var f *round.Failure
			if l.is() != "failed" || !errors.As(<-l.err, &f) || !errors.Is(f.Cause, lease.ErrClosed) {
				t.Errorf("%+v", f)
			}
		}
		if len(p.names) != 0 {
			t.Errorf("name queues are left: %+v", p.names)
		}
	})
}
