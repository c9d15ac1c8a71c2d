package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// inOrder releases k, and then the lock of each call when that call has acquired it. It fails the test if the calls
// acquire the lock in another order.
func (w *cluster) inOrder(k *redlock.Lock, calls []*call) {
	w.Helper()
	for i, c := range calls {
		after(5 * time.Millisecond) // the next call of the same Locker joins the queues only now
		w.goUnlock(k)
		last := k
		k = c.mustLock(2 * time.Second)
		w.wantLater(k, last)
		for j, later := range calls[i+1:] {
			if later.returned() {
				w.Fatalf("call %d got the lock before call %d, or together with it", i+1+j, i)
			}
		}
	}
	w.noError(k.Unlock(w.Context()))
}

// With healthy masters, fair waiters of many processes get the lock in the order in which they called, and no later
// call overtakes them while the lock passes from one waiter to the next.
func TestFairWaitersAreServedInOrder(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.peer("holder").Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		random := seeded(1)
		w.each(func(_ int, m *memory.Master) { m.Delay(time.Duration(100+random.IntN(400)) * time.Microsecond) })
		var calls []*call
		for i := range 12 {
			p := w.peer(fmt.Sprintf("p%02d", 99-i))
			calls = append(calls, w.goLock(w.Context(), p, "n", redlock.WithFair(), unpolled))
			after(5 * time.Millisecond)
		}
		w.inOrder(k, calls)
		w.nothingLeft("n")
	})
}

// A lock is not handed off to a later call of its own Locker if that call or the holder is fair.
func TestFairnessExcludesHandoffs(t *testing.T) {
	fair := redlock.WithFair()
	for what, opts := range map[string]struct{ holder, local []redlock.LockOption }{
		"a fair waiter": {nil, []redlock.LockOption{fair, unpolled}},
		"a fair holder": {[]redlock.LockOption{fair}, nil},
	} {
		subtest(t, what, 5, func(w *cluster) {
			p := w.peer("p")
			k := must(p.Lock(w.Context(), "n", opts.holder...))(w)
			w.delay(time.Millisecond)
			first := w.goLock(w.Context(), w.peer("other"), "n", fair, unpolled)
			after(20 * time.Millisecond)
			second := w.goLock(w.Context(), p, "n", opts.local...)
			w.inOrder(k, []*call{first, second})
		})
	}
}

// A name becomes free without a release, because its holder was killed. A fair call that comes later does not get
// the lock: the masters grant it to the first waiter.
func TestFairCallWaitsBehindEarlierOne(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		holder, a, b := w.peer("holder"), w.peer("a"), w.peer("b")
		must(holder.Lock(w.Context(), "n", redlock.WithExtension(false)))(w)
		w.delay(time.Millisecond)
		after(9 * time.Second)
		first := w.goLock(w.Context(), a, "n", redlock.WithFair())
		after(100 * time.Millisecond)
		a.hang() // a cannot poll when the TTL has expired, but its inbox is subscribed
		holder.kill()
		after(time.Second)
		w.wantOn("n", 0)
		second := w.goLock(w.Context(), b, "n", redlock.WithFair())
		after(3 * time.Millisecond)
		if second.returned() {
			w.Fatal("the later call got the lock")
		}
		a.wake()
		k := first.mustLock(100 * time.Millisecond)
		w.inOrder(k, []*call{second})
		w.nothingLeft("n")
	})
}

// A waiter of a higher priority gets the lock before all queued waiters of lower priorities, also before those of
// other processes. Waiters of the same priority keep their order.
func TestHigherPriorityGoesFirst(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		k := must(w.peer("holder").Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		peers := []*peer{w.peer("a"), w.peer("b"), w.peer("c")}
		byPriority := map[int][]*call{}
		w.delay(time.Millisecond)
		for i, priority := range []int{0, -5, 3, 0, 7, 3, -5, 7, 1000} {
			c := w.goLock(w.Context(), peers[i%3], "n", redlock.WithPriority(priority), unpolled)
			after(20 * time.Millisecond)
			byPriority[priority] = append(byPriority[priority], c)
		}
		var calls []*call
		for _, priority := range []int{1000, 7, 3, 0, -5} {
			calls = append(calls, byPriority[priority]...)
		}
		w.inOrder(k, calls)
		w.nothingLeft("n")
	})
}

// A fair call of a client that does not know the masters' time yet does not overtake earlier fair calls.
func TestFairCallOfNewClientQueuesLast(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		held := must(w.locker().Lock(w.Context(), "x"))(w)
		old := w.goLock(w.Context(), w.locker(), "x", redlock.WithFair())
		after(time.Second)
		late := w.goLock(w.Context(), w.newLocker(w.pool()), "x", redlock.WithFair()) // does not know the time yet
		after(2 * time.Second)
		w.inOrder(held, []*call{old, late})
	})
}
