package redlock_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// H82: a waiter that has won a minority rolls back and keeps its ticket on every master, including those that granted.
// So it gets a hint there when the name is free, and goes before later callers.
func TestVirtualARollBackKeepsTheTicket(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("n", time.Hour)
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
		w.delay(100 * time.Microsecond)
		first, second := w.peer("first"), w.peer("second")
		a := w.call(w.Context(), first.Locker, "n", unpolled)
		after(100 * time.Millisecond)
		b := w.call(w.Context(), second.Locker, "n", unpolled)
		after(100 * time.Millisecond)
		backs := 0
		for _, s := range first.world.wire.sent("release") {
			if s.grant() != "" && s.waiter() != "" && s.arg(4) != "" {
				backs++
			}
		}
		if backs == 0 {
			w.Error("nothing was rolled back, so this shows nothing")
		}
		for i := range 5 {
			if got := w.labels(i, "n"); !slices.Equal(got, []string{"first", "second"}) {
				w.Errorf("master %d has %q in its queue", i, got)
			}
		}
		w.masters.Free("n")
		k, took := a.gets(time.Second)
		if took > 10*time.Millisecond || b.over() {
			w.Errorf("it took %v; the second has it: %v", took, b.over())
		}
		w.unlock(k)
		k, _ = b.gets(time.Second)
		w.delay(0)
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// H83: a leader with a standby survives any number of restarts of the masters, one after the other: a repair ignores
// the queue, and works in quarantine.
func TestVirtualARepairMindsNeitherTheQueueNorTheQuarantine(t *testing.T) {
	virtual(t, 5, func(w *world) {
		leader, standby := w.peer("leader"), w.peer("standby")
		k := w.taken(leader.Locker)
		c := w.call(w.Context(), standby.Locker, "n")
		after(time.Second)
		for n := range 10 {
			m := w.masters.Master(n % 5)
			m.Restart(false)
			after(6 * time.Second)
			id, _, _ := m.Holds("n")
			if on, _ := k.HeldOn(); on != 5 || labelOf(id) != "leader" || k.Err() != nil || c.over() {
				w.Fatalf("restart %d: the leader has it on %d masters, there has %q: %v", n, on, labelOf(id), k.Err())
			}
			if state := leader.Masters()[n%5].State; state != "quarantine" {
				w.Fatalf("restart %d: the master is %s, so this shows nothing", n, state)
			}
			after(30 * time.Second) // the master votes again before the next restart
		}
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 0, 3) // and the queues are there
		after(6 * time.Second)
		if on, _ := k.HeldOn(); on != 5 || w.on("n") != 5 || k.Err() != nil {
			w.Errorf("with a queue the leader has it on %d masters: %v", w.on("n"), k.Err())
		}
		w.unlock(k)
		next, _ := c.gets(5 * time.Second)
		w.delay(0)
		w.unlock(next)
		w.nothingLeft("n")
	})
}

// cut ends a peer's connections to some masters and blocks new ones until block is called again.
func (p *peer) cut(which ...int) {
	p.world.wire.block(which...)
	p.mu.Lock()
	all := maps.Clone(p.conns)
	p.mu.Unlock()
	for c := range all {
		if slices.Contains(which, c.master) {
			_ = c.Close()
		}
	}
}

// H87: the client with the earliest ticket loses its connections to a majority. It cannot win, so it leaves the queues
// of the masters that it reaches, and tries without a ticket until it has a majority of voters again. Others get the
// name meanwhile.
func TestVirtualAProgramWithoutAQuorumLeavesTheQueues(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder, cutOff, other := w.peer("holder"), w.peer("cut off"), w.peer("other")
		k := w.taken(holder.Locker, redlock.WithTTL(30*time.Second))
		a := w.call(w.Context(), cutOff.Locker, "n")
		after(100 * time.Millisecond)
		b := w.call(w.Context(), other.Locker, "n")
		after(100 * time.Millisecond)
		cutOff.cut(2, 3, 4)
		after(3 * time.Second)
		for i := range 5 {
			want := []string{"other"}
			if i >= 2 { // they do not know that it has left, and drop it 20 s after its last attempt
				want = []string{"cut off", "other"}
			}
			if got := w.labels(i, "n"); !slices.Equal(got, want) {
				w.Errorf("master %d has %q in its queue, want %q", i, got, want)
			}
		}
		w.unlock(k)
		k, took := b.gets(5 * time.Second)
		if took > 100*time.Millisecond {
			w.Errorf("the other has it after %v", took)
		}
		cutOff.world.wire.clear()
		after(10 * time.Second)
		for _, s := range cutOff.world.wire.sent("acquire") {
			if s.waiter() != "" {
				w.Errorf("without a majority it asks with a ticket")
			}
		}
		w.unlock(k)
		cutOff.world.wire.block()
		k, took = a.gets(5 * time.Second)
		if took > 4*time.Second {
			w.Errorf("with a majority again it has it after %v", took)
		}
		w.delay(0)
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// H93: one of three masters has a clock that is 20 s off. A client that reaches only that one and one more has no
// majority of voters, since that master refuses every ballot that the others accept; the client's waiter does not block
// others.
func TestVirtualAMasterWithAWrongClockIsNoVoter(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Second, -20 * time.Second} {
		bubble(t, 3, func(w *world) {
			w.masters.Master(0).SetClock(off, 1)
			w.masters.Take("n", time.Hour)
			cutOff, other := w.peer("cut off"), w.peer("other")
			cutOff.cut(2)
			a := w.call(w.Context(), cutOff.Locker, "n")
			after(100 * time.Millisecond)
			b := w.call(w.Context(), other.Locker, "n")
			after(100 * time.Millisecond)
			w.masters.Free("n")
			k, took := b.gets(30 * time.Second)
			if took > 3*time.Second || a.over() {
				w.Errorf("clock off by %v: the other has it after %v", off, took)
			}
			cutOff.world.wire.block()
			w.masters.Master(0).SetClock(0, 1)
			after(3 * time.Second)
			w.unlock(k)
			k, _ = a.gets(30 * time.Second)
			w.unlock(k)
		})
	}
}

// H89: each attempt has a new lease id, under one ticket. A late release of an attempt, on an old connection, does not
// affect the next one.
func TestVirtualEachAskIsANewGrantOfTheSameWaiter(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("n", time.Hour)
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
		w.delay(100 * time.Microsecond)
		p := w.peer("p")
		c := w.call(w.Context(), p.Locker, "n")
		after(5 * time.Second)
		w.masters.Free("n")
		k, _ := c.gets(5 * time.Second)
		after(10 * time.Millisecond)
		asked, waiters := map[string]int{}, map[string]bool{}
		for _, s := range p.world.wire.sent("acquire") {
			asked[fmt.Sprint(s.master, s.grant())]++
			if s.waiter() != "" {
				waiters[s.waiter()] = true
			}
		}
		if len(asked) < 3*5 || len(waiters) != 1 {
			w.Errorf("%d asks, %d waiters", len(asked), len(waiters))
		}
		for ask, n := range asked {
			if n != 1 {
				w.Errorf("%s was asked for %d times", ask, n)
			}
		}
		for _, s := range p.world.wire.sent("release") {
			w.replay(s)
		}
		if id, on := w.masters.Holder("n"); on != 5 || labelOf(id) != "p" || k.Err() != nil {
			w.Errorf("the late releases have left it on %d masters", on)
		}
		w.delay(0)
		w.unlock(k)
		after(time.Second)
		if on := w.on("n"); on != 0 {
			w.Errorf("it is left on %d masters", on)
		}
	})
}
