package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// A twin is the rule of the local queue read plainly.
type twin struct {
	holder    *grant.Grant
	contender *Call
	waiting   []*Call
}

// move lets the first who waits contend, where the rule says so.
func (w *twin) move() {
	if w.holder == nil && w.contender == nil && len(w.waiting) > 0 {
		w.contender, w.waiting = w.waiting[0], w.waiting[1:]
	}
}

// stand puts a call in its place: those of its priority that came before it, and all of a better one, are before it.
func (w *twin) stand(c *Call) {
	at := 0
	for at < len(w.waiting) && (w.waiting[at].Priority > c.Priority ||
		w.waiting[at].Priority == c.Priority && w.waiting[at].seq < c.seq) {
		at++
	}
	w.waiting = slices.Insert(w.waiting, at, c)
}

// idleQueue is a Queue that has no masters, and hears nothing.
func idleQueue() *Queue {
	q := New(Env{Keeper: &grant.Keeper{}})
	q.inbox = fakeSub(0)
	return q
}

// A game makes random moves on a line and its twin.
type game struct {
	q    *Queue
	twin twin
	r    *rand.Rand
}

func (g *game) join() {
	c := &Call{
		Name: "n", Keys: &scripts.Keys{}, Priority: g.r.IntN(3) - 1, Fair: g.r.IntN(4) == 0, Terms: terms(),
		Handle: &grant.Handle{},
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
		g.q.quit(c)
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
		w.contender, w.holder = nil, &grant.Grant{Name: "n"}
		g.q.mu.Lock()
		ln := g.q.names["n"]
		ln.contender, ln.holder = nil, w.holder
		g.q.mu.Unlock()
	case pick < 9 && w.contender == nil:
		w.holder = &grant.Grant{Name: "n"}
		g.q.Held(w.holder)
	case pick < 10 && w.holder != nil:
		g.q.Over(&grant.Grant{Name: "n"}) // an earlier one does not end the later
		h := w.holder
		w.holder = nil
		w.move()
		g.q.Over(h)
	case pick < 11 && w.holder != nil:
		if heir := g.q.Heir("n")(9*time.Second, 10*time.Second); heir != nil {
			if heir.Handle != w.waiting[0].Handle {
				panic("it goes to another than the first")
			}
			heir.Take()
			w.waiting = w.waiting[1:]
		}
	case len(w.waiting) > 0:
		i := g.r.IntN(len(w.waiting))
		c := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.move()
		g.q.quit(c)
	}
}

// The local queue does what its rule says, in whatever order things happen: whoever gets a turn was first, nobody is
// forgotten, and nothing is kept of a name that nobody wants.
func TestTheLocalQueueIsTheRuleReadPlainly(t *testing.T) {
	for seed := range uint64(500) {
		g := &game{q: idleQueue(), r: rand.New(rand.NewPCG(seed, 1))}
		for n := range 200 {
			g.step()
			w, ln := &g.twin, g.q.names["n"]
			if w.holder == nil && w.contender == nil && len(w.waiting) == 0 {
				if ln != nil {
					t.Fatalf("seed %d, step %d: a line of nobody is kept: %+v", seed, n, ln)
				}
				continue
			}
			if ln == nil || ln.holder != w.holder || ln.contender != w.contender || !slices.Equal(ln.waiting, w.waiting) {
				t.Fatalf("seed %d, step %d: %+v, want %+v", seed, n, ln, w)
			}
			for _, c := range w.waiting {
				if c.turn != stands {
					t.Fatalf("seed %d, step %d: a call that waits has the turn %d", seed, n, c.turn)
				}
			}
			if c := w.contender; c != nil && c.turn != contends {
				t.Fatalf("seed %d, step %d: the contender has the turn %d", seed, n, c.turn)
			}
		}
	}
}

// Among those who wait the priority counts first, and then who called first.
func TestWaitingCallsAreInTheOrderOfPriorityThenOfCalling(t *testing.T) {
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

// Who gets a grant by handing on: the first who waits, if it may, and if the grant is good enough for it.
func TestWhoIsHeirAsTable(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(c *Call)
		left, ttl time.Duration
		want      bool
	}{
		{"the first", func(*Call) {}, 9 * time.Second, 10 * time.Second, true},
		{"a shorter TTL than it asked for", func(*Call) {}, 6 * time.Second, 7 * time.Second, true},
		{"a longer TTL than it asked for", func(*Call) {}, 9 * time.Second, 11 * time.Second, false},
		{"too little left", func(*Call) {}, 5*time.Second - 1, 10 * time.Second, false},
		{"just enough left", func(*Call) {}, 5 * time.Second, 10 * time.Second, true},
		{"a fair call", func(c *Call) { c.Fair = true }, 9 * time.Second, 10 * time.Second, false},
	} {
		q := idleQueue()
		if q.Heir("n")(c.left, c.ttl) != nil {
			t.Errorf("%s: nobody is there, and is heir", c.name)
		}
		q.Held(&grant.Grant{Name: "n"})
		first := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Handle: &grant.Handle{}}
		c.change(first)
		q.join(first)
		second := &Call{Name: "n", Keys: &scripts.Keys{}, Terms: terms(), Handle: &grant.Handle{}}
		q.join(second)
		heir := q.Heir("n")(c.left, c.ttl)
		if (heir != nil) != c.want || heir != nil && heir.Handle != first.Handle {
			t.Errorf("%s: the heir is %+v", c.name, heir)
		}
	}
}

func TestCallsOfOneProgramFollowEachOtherByHandingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 3)
		a := p.start(p.call(0, false))
		b := p.start(p.call(0, false))
		c := p.start(p.call(0, false))
		for _, next := range []*pending{b, c} {
			if a.is() != "holds" || next.is() != "waits" {
				t.Fatalf("%s and %s", a.is(), next.is())
			}
			p.unlock(a)
			if next.is() != "holds" || next.Handle.Token() != a.Handle.Token()+1 {
				t.Fatalf("the next %s, with token %d after %d", next.is(), next.Handle.Token(), a.Handle.Token())
			}
			a = next
		}
		p.unlock(c)
		synctest.Wait()
		if asked := p.count("asked true") + p.count("asked false"); asked != 1 || p.names["n"] != nil {
			t.Errorf("%d rounds; of the name is left %+v", asked, p.names["n"])
		}
	})
}

// A call with a better priority than the contender's takes over, and the contender stands behind it.
func TestAContenderYieldsToABetterPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 3)
		p.Masters.Take("n", 10*time.Second)
		low := p.start(p.call(-1, true))
		after(10 * time.Millisecond)
		high := p.start(p.call(7, true))
		after(10 * time.Millisecond)
		if ln := p.names["n"]; ln.contender != high.Call || !slices.Equal(ln.waiting, []*Call{low.Call}) {
			t.Fatalf("%+v", ln)
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

// A call whose turn to contend comes as its context ends passes the turn on.
func TestACallThatQuitsPassesItsTurnOn(t *testing.T) {
	q := idleQueue()
	var calls []*Call
	for range 3 {
		c := &Call{Name: "n", Keys: &scripts.Keys{}}
		q.join(c)
		calls = append(calls, c)
	}
	q.quit(calls[0])
	if q.names["n"].contender != calls[1] || calls[1].turn != contends {
		t.Error("the turn went to nobody")
	}
	if got := q.quit(calls[1]); got != gone || q.names["n"].contender != calls[2] || calls[2].turn != contends {
		t.Errorf("one that has quit with the turn keeps it: %d", got)
	}
	if q.quit(calls[1]); q.names["n"].contender != calls[2] {
		t.Error("one that quits twice takes the turn of another")
	}
	if q.quit(calls[2]); len(q.names) != 0 {
		t.Errorf("%d lines are left", len(q.names))
	}
}

// A grant that is handed to a call whose context ends at that very moment goes on to the next, or is released: nobody
// extends it for ever.
func TestAGrantHandedToACallThatGivesUpIsNotLeftBehind(t *testing.T) {
	for _, others := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p := newProgram(t, 3)
			a := p.start(p.call(0, false))
			b := p.start(p.call(0, false))
			var c *pending
			if others > 0 {
				c = p.start(p.call(0, false))
			}
			p.handing = func() { // b is chosen, and not told yet
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
			if len(p.Keeper.All()) != 0 || p.names["n"] != nil {
				t.Errorf("%d grants are live; of the name is left %+v", len(p.Keeper.All()), p.names["n"])
			}
			if n := p.count("acquired"); n != p.count("released") || n != 2+others {
				t.Errorf("%d tenures began, %d ended", n, p.count("released"))
			}
		})
	}
}

// A call that gives up while it stands in the local queue says so, and leaves nothing: neither here nor in the masters'
// queues, which a fair call joins before the release of the one before it (H85).
func TestACallThatGivesUpInTheLocalQueueLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 3)
		a := p.start(p.call(0, true))
		b := p.start(p.call(0, true))
		after(10 * time.Millisecond) // its inbox stands
		p.Queue.Releasing(a.Handle.Grant())
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
		if len(p.hearers) != 0 || len(p.names["n"].waiting) != 0 {
			t.Errorf("here are left %d waiters, %d calls", len(p.hearers), len(p.names["n"].waiting))
		}
		p.unlock(a)
	})
}

// Calls that wait end with Close.
func TestWaitingCallsEndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t, 3)
		p.Masters.Take("n", 10*time.Second)
		a := p.start(p.call(0, false))
		b := p.start(p.call(0, false))
		p.once.Do(func() { close(p.closing) })
		for _, l := range []*pending{a, b} {
			var f *round.Failure
			if l.is() != "failed" || !errors.As(<-l.err, &f) || !errors.Is(f.Cause, grant.ErrClosed) {
				t.Errorf("%+v", f)
			}
		}
		if len(p.names) != 0 {
			t.Errorf("lines are left: %+v", p.names)
		}
	})
}
