package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// Votes are replies. After any wake-up, however often, a waiter attempts the lock, and the masters decide: a wake-up
// while another client holds the name, or a false one, only costs a round.
func TestVirtualHintsAreNotVotes(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		w.delay(time.Millisecond)
		before := w.count("acquire")
		true5 := w.hintsFor(b, "n")
		for name, false5 := range map[string]func(i int, payload string) string{
			"as they would be":       func(_ int, payload string) string { return payload },
			"of another name":        func(_ int, payload string) string { return strings.Replace(payload, "{n}", "{m}", 1) },
			"for another waiter":     func(_ int, payload string) string { return strings.Replace(payload, ":1:", ":77:", 1) },
			"cut off":                func(_ int, payload string) string { return payload[:len(payload)/2] },
			"with something in them": func(_ int, payload string) string { return payload + "\n1\n1" },
		} {
			for i, hint := range true5 {
				w.replay(sent{master: hint.master, args: []string{"PUBLISH", b.inbox(), false5(i, hint.payload)}})
			}
			after(100 * time.Millisecond)
			if c.over() || k.Err() != nil || w.on("n") != 5 {
				w.Fatalf("hints %s: another has it, or the first holder has lost it: %v", name, k.Err())
			}
		}
		if w.count("acquire") == before {
			w.Error("it has asked no client, so this shows nothing")
		}
		w.unlock(k)
		next, _ := c.gets(5 * time.Second)
		w.publish(b, true5)
		if on := w.on("n"); on != 5 || next.Err() != nil {
			w.Errorf("a late hint ended what it was for: on %d masters, %v", on, next.Err())
		}
		w.delay(0)
		w.unlock(next)
		w.publish(b, true5)
		if on := w.on("n"); on != 0 {
			w.Errorf("a late hint has brought it back on %d masters", on)
		}
		w.nothingLeft("n", "m")
	})
}

// hintsFor are the hints that the masters would give for the first waiter of a peer.
func (w *world) hintsFor(p *peer, name string) (list []heard) {
	w.Helper()
	for i := range w.masters.N() {
		for _, waiter := range w.waiters(i, name) {
			if labelOf(waiter) == p.id {
				list = append(list, heard{i, waiter + "\n" + defaultPrefix.Lock(name)})
			}
		}
	}
	if len(list) == 0 {
		w.Fatalf("%s does not wait for %s", p.id, name)
	}
	return list
}

// waiters are those in the queue of a name on master i, in their order.
func (w *world) waiters(i int, name string) []string {
	w.Helper()
	keys := defaultPrefix.Keys(name)
	reply, err := w.do(i, scripts.NewEncoder(defaultPrefix, 0).Inspect(&keys))
	if err != nil {
		w.Fatal(err)
	}
	seen, err := scripts.DecodeHolding(reply)
	if err != nil || seen.Waiters != len(seen.First) {
		w.Fatalf("%d waiters, %d are shown; %v", seen.Waiters, len(seen.First), err)
	}
	return seen.First
}

// labels are the labels of those who wait for a name on master i, in their order.
func (w *world) labels(i int, name string) (list []string) {
	w.Helper()
	for _, waiter := range w.waiters(i, name) {
		list = append(list, labelOf(waiter))
	}
	return list
}

// H82: the first hint need not become a quorum's. With two of five masters down and the hints of one more lost, a
// waiter asks a little after the first, however long it has waited.
func TestVirtualAWaiterAsksALittleAfterTheFirstHint(t *testing.T) {
	for _, wait := range []time.Duration{1500 * time.Millisecond, 15500 * time.Millisecond} {
		t.Run(wait.String(), func(t *testing.T) { virtual(t, 5, func(w *world) { firstHint(w, wait) }) })
	}
}

func firstHint(w *world, wait time.Duration) {
	w.Helper()
	a, b := w.peer("a"), w.peer("b")
	k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
	c := w.call(w.Context(), b.Locker, "n", unpolled)
	after(wait) // half a second after its last ask, so the subscriptions, which count as hints, are long behind
	b.hears(func(master int, _ scripts.WakeUp, payload string) []string {
		if master == 0 {
			return []string{payload}
		}
		return nil
	})
	w.stop(3, 4)
	w.delay(time.Millisecond, 0, 1, 2)
	go w.unlock(k)
	next, took := c.gets(5 * time.Second)
	if took > 20*time.Millisecond {
		w.Errorf("it took %v", took)
	}
	b.tampering(nil)
	w.delay(0)
	w.each(func(_ int, m *memory.Master) { m.Restart(true) }, 3, 4)
	after(5 * time.Second)
	w.unlock(next)
	w.nothingLeft("n")
}

// H88: a waiter that is first on a minority, if the name is free, and refused by the others wins only those few, rolls
// back, and is woken by its own rollback. Its attempts become rarer: the pause after a first wake-up doubles with each
// lost round, up to a second.
func TestVirtualThePauseAfterAFirstHintDoubles(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("n", time.Hour)
		w.masters.Master(0).Evict("n")
		w.delay(100 * time.Microsecond)
		b := w.peer("b")
		c := w.call(w.Context(), b.Locker, "n")
		times := func() (list []time.Time) {
			for _, s := range b.world.wire.sent("acquire") {
				if s.master == 0 {
					list = append(list, s.at)
				}
			}
			return list
		}
		after(30 * time.Second)
		all := times()
		if n := len(all); n > 12+30 || n < 20 {
			w.Errorf("it has asked %d times in 30 s", n)
		}
		if pause := all[len(all)-1].Sub(all[len(all)-2]); pause < 900*time.Millisecond {
			w.Errorf("the last pause was %v", pause)
		}
		for i := range 5 {
			if got := w.labels(i, "n"); fmt.Sprint(got) != "[b]" {
				w.Errorf("master %d has %q in its queue", i, got)
			}
		}
		w.masters.Free("n")
		k, took := c.gets(5 * time.Second)
		if took > 10*time.Millisecond {
			w.Errorf("when it is free it took %v", took)
		}
		w.delay(0)
		w.unlock(k)
		w.nothingLeft("n")
	})
}
