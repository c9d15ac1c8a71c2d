package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// inOrder releases k and then the lock of each call as it is acquired, and fails the test if the order differs from
// that of the list.
func (w *world) inOrder(k *redlock.Lock, calls []*call) {
	w.Helper()
	for i, c := range calls {
		after(5 * time.Millisecond) // the next one of the same Locker joins the queues only now
		go w.unlock(k)
		last := k
		k, _ = c.gets(2 * time.Second)
		if k.Token() <= last.Token() {
			w.Errorf("token %d after %d", k.Token(), last.Token())
		}
		for j, later := range calls[i+1:] {
			if later.over() {
				w.Fatalf("number %d got it before, or together with, number %d", i+1+j, i)
			}
		}
	}
	w.unlock(k)
}

// With healthy masters fair waiters of many processes get the lock in the order in which they called, and no newcomer
// overtakes them while it passes from one to the next.
func TestVirtualFairWaitersGetItInTheOrderOfTheirCalls(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.peer("holder").Locker, "n", redlock.WithTTL(30*time.Second))
		random := seeded(1)
		w.each(func(_ int, m *memory.Master) { m.Delay(time.Duration(100+random.IntN(400)) * time.Microsecond) })
		var calls []*call
		for i := range 12 {
			p := w.peer(fmt.Sprintf("p%02d", 99-i))
			calls = append(calls, w.call(w.Context(), p.Locker, "n", redlock.WithFair(), unpolled))
			after(5 * time.Millisecond)
		}
		w.inOrder(k, calls)
		w.delay(0)
		w.nothingLeft("n")
	})
}

// A name becomes free without a release, since its holder was killed. A fair newcomer does not get it: the masters
// grant it to the first waiter.
func TestVirtualFairCallWaitsBehindEarlierOne(t *testing.T) {
	virtual(t, 5, func(w *world) {
		holder, a, b := w.peer("holder"), w.peer("a"), w.peer("b")
		w.take(holder.Locker, "n", redlock.WithExtension(false))
		w.delay(time.Millisecond)
		after(9 * time.Second)
		first := w.call(w.Context(), a.Locker, "n", redlock.WithFair())
		after(100 * time.Millisecond)
		a.hang() // it cannot poll when the TTL has expired, but its inbox is subscribed
		holder.kill()
		after(time.Second)
		if n := w.on("n"); n != 0 {
			w.Fatalf("still held on %d", n)
		}
		second := w.call(w.Context(), b.Locker, "n", redlock.WithFair())
		after(3 * time.Millisecond)
		if second.over() {
			w.Fatal("the newcomer took it")
		}
		a.wake()
		k, took := first.gets(time.Second)
		if took > 100*time.Millisecond {
			w.Errorf("it took %v", took)
		}
		w.inOrder(k, []*call{second})
		w.delay(0)
		w.nothingLeft("n")
	})
}

// A waiter of a higher priority gets the lock before all queued waiters of a lower one, of any process, and waiters of
// the same priority keep their order.
func TestVirtualAHigherPriorityGoesFirst(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.peer("holder").Locker, "n", redlock.WithTTL(30*time.Second))
		peers := []*peer{w.peer("a"), w.peer("b"), w.peer("c")}
		byPriority := map[int][]*call{}
		w.delay(time.Millisecond)
		for i, priority := range []int{0, -5, 3, 0, 7, 3, -5, 7, 1000} {
			c := w.call(w.Context(), peers[i%3].Locker, "n", redlock.WithPriority(priority), unpolled)
			after(20 * time.Millisecond)
			byPriority[priority] = append(byPriority[priority], c)
		}
		var calls []*call
		for _, priority := range []int{1000, 7, 3, 0, -5} {
			calls = append(calls, byPriority[priority]...)
		}
		w.inOrder(k, calls)
		w.delay(0)
		w.nothingLeft("n")
	})
}
