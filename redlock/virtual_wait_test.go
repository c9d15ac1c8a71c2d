package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// unpolled are delays longer than any test: a client that makes progress was woken.
var unpolled = redlock.WithDelays(redlock.Delays{Fixed: time.Hour})

// A release wakes the next waiter. It has the lock two round trips after Unlock was called: half for the release, half
// for the hint, and one for its acquire.
func TestVirtualAReleaseWakesTheNextWaiter(t *testing.T) {
	for name, opts := range map[string][]redlock.Option{"guarded": nil, "unguarded": {redlock.WithoutRestartGuard()}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				a, b := w.peer("a", opts...), w.peer("b", opts...)
				k := w.taken(a.Locker)
				c := w.call(w.Context(), b.Locker, "n", unpolled)
				after(500 * time.Millisecond)
				before := w.count("acquire")
				w.delay(time.Millisecond)
				go w.unlock(k)
				next, took := c.gets(time.Second)
				if took != 4*time.Millisecond {
					w.Errorf("it took %v after Unlock, want two round trips of 2ms", took)
				}
				if next.Token() <= k.Token() {
					w.Errorf("token %d after %d", next.Token(), k.Token())
				}
				after(10 * time.Millisecond)
				if n := w.count("acquire") - before; n != 5 {
					w.Errorf("%d acquires after the release, want one on each master", n)
				}
				if on, _ := next.HeldOn(); on != 5 || w.on("n") != 5 {
					w.Errorf("known to be held on %d, held on %d", on, w.on("n"))
				}
				w.delay(0)
				w.unlock(next)
				w.nothingLeft("n")
			})
		})
	}
}

// With every subscription cut, from the start or later, waiting still ends: by polling if the holder releases, and by
// the TTL if it is killed.
func TestVirtualWaitEndsWithoutSubscriptions(t *testing.T) {
	for _, when := range []string{"before", "while waiting"} {
		bubble(t, 5, func(w *world) {
			a, b := w.peer("a"), w.peer("b")
			if when == "before" {
				b.deafen()
			}
			k := w.take(a.Locker, "n")
			c := b.waits("n")
			b.deafen()
			after(time.Duration(rounds(60, 15)) * time.Second)
			if c.over() {
				w.Fatal("two holders")
			}
			w.unlock(k)
			next, took := c.gets(time.Minute)
			longest := redlock.DefaultDelays.Cap + redlock.DefaultDelays.Random
			if took > longest && when == "before" || took > 5*time.Second {
				w.Errorf("%s: %v after the release", when, took)
			}
			w.unlock(next)

			k = w.take(a.Locker, "n")
			left := k.Remaining()
			c = w.call(w.Context(), b.Locker, "n", unpolled)
			a.kill()
			next, took = c.gets(time.Minute)
			if took < left || took > redlock.DefaultTTL+50*time.Millisecond {
				w.Errorf("%s: %v after the holder was killed, with %v of validity left", when, took, left)
			}
			w.unlock(next)
			w.nothingLeft("n")
		})
	}
}

// All hints are lost in transit, although the masters count their receivers: the first and the second waiter try again
// within a second, the others within five.
func TestVirtualWithAllMessagesLostWaitingEndsByPoll(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.peer("holder").Locker, "n")
		var calls []*call
		for i := range 3 {
			p := w.peer(fmt.Sprint("p", i))
			p.tampering(lost)
			calls = append(calls, p.waits("n"))
		}
		after(time.Minute)
		for i, c := range calls {
			w.unlock(k)
			start := time.Now()
			var first *call
			for first == nil && time.Since(start) < 10*time.Second {
				after(50 * time.Millisecond)
				for _, c := range calls {
					if c.over() && c.lock.Err() == nil {
						first = c
					}
				}
			}
			if first == nil {
				w.Fatalf("no client has it after 10 s, with %d waiting, the next is %p", len(calls)-i, c)
			}
			if took := time.Since(start); took > 5100*time.Millisecond {
				w.Errorf("after hand-over %d it took %v", i, took)
			}
			k = first.lock
		}
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// A waiter that leaves after it got a hint passes the name to the next, at once.
func TestVirtualTheTurnOfOneThatHasLeftGoesToTheNext(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder := w.take(w.peer("holder").Locker, "n")
		first, second := w.peer("first"), w.peer("second")
		ctx, cancel := context.WithCancel(w.Context())
		a := w.call(ctx, first.Locker, "n", unpolled)
		after(time.Second)
		b := second.waits("n", unpolled)
		w.delay(10 * time.Millisecond)
		go w.unlock(holder)
		after(15 * time.Millisecond) // the masters have sent the hint, which the first has not received yet
		cancel()
		w.isError(a.fails(time.Second), context.Canceled, redlock.ErrHeld)
		k, took := b.gets(time.Second)
		if took > 100*time.Millisecond {
			w.Errorf("the second waiter got it after %v", took)
		}
		w.delay(0)
		w.unlock(k)
		w.nothingLeft("n")
	})
}

// A hint about one name wakes no client that waits for another name.
func TestVirtualAWordAboutOneNameWakesNobodyElse(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k, other := w.take(a.Locker, "n"), w.take(a.Locker, "m")
		c, d := b.waits("n", unpolled), b.waits("m", unpolled)
		before := w.count("acquire")
		w.unlock(k)
		next, _ := c.gets(time.Second)
		after(500 * time.Millisecond)
		if n := w.count("acquire") - before; n != 3 || d.over() {
			w.Errorf("%d acquires on 3 masters", n)
		}
		w.unlock(other)
		last, _ := d.gets(time.Second)
		w.unlock(next)
		w.unlock(last)
		w.nothingLeft("n", "m")
	})
}

// While nothing happens, waiting costs the masters next to nothing: no new subscription, and one acquire per master and
// second.
func TestVirtualWaitingCostsNextToNothing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.peer("a").Locker, "n")
		b := w.peer("b")
		c := b.waits("n")
		for range 99 {
			w.call(w.Context(), b.Locker, "n")
		}
		after(time.Minute)
		acquires, subscribes := w.count("acquire"), w.count("SUBSCRIBE")
		after(time.Minute)
		if n := w.count("acquire") - acquires; n > 5*61 {
			w.Errorf("a hundred goroutines that wait cost 5 masters %d acquires a minute", n)
		}
		if n := w.count("SUBSCRIBE") - subscribes; n != 0 {
			w.Errorf("%d subscriptions", n)
		}
		w.unlock(k)
		c.gets(time.Second)
		w.each(func(_ int, m *memory.Master) { m.Evict("n") })
	})
}
