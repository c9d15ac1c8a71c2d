package redlock_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
)

// H83: a leader with a standby survives any number of restarts of the masters, one after the other: a repair ignores
// the queue, and works in quarantine.
func TestVirtualRepairIgnoresQueueAndQuarantine(t *testing.T) {
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
