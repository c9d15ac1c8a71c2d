package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// slotsOf returns the names of k slots of "n".
func slotsOf(k int) (names []string) {
	for i := range k {
		names = append(names, fmt.Sprint("n:", i+1))
	}
	return names
}

// holdSlots makes a separate client hold each of k slots of "n".
func (w *cluster) holdSlots(k int) (held []*redlock.Lock) {
	w.Helper()
	for _, name := range slotsOf(k) {
		held = append(held, w.take(w.peer("holder of "+name), name, redlock.WithTTL(30*time.Second)))
	}
	return held
}

// If several clients try to acquire one of three slots at the same instant, each wins a different slot, and clients
// without a slot get ErrHeld.
func TestEachSlotHasOneHolder(t *testing.T) {
	for _, clients := range []int{1, 3, 8} {
		bubble(t, 5, func(w *cluster) {
			w.delay(time.Millisecond)
			var peers []*peer
			for i := range clients {
				peers = append(peers, w.peer(fmt.Sprint("p", i)))
			}
			var names []string
			var held []*redlock.Lock
			for _, r := range atOneInstant(clients, func(i int) (*redlock.Lock, error) {
				return peers[i].TryLock(w.Context(), "n", redlock.WithSlots(3))
			}) {
				if r.err == nil {
					names, held = append(names, r.lock.Name()), append(held, r.lock)
				} else {
					w.says(r.err, redlock.ErrHeld, "each of 3 slots is held")
				}
			}
			slices.Sort(names)
			if len(slices.Compact(names)) != min(clients, 3) || len(held) != min(clients, 3) {
				w.Errorf("%d clients have the slots %q", clients, names)
			}
			w.unlockAll(held...)
			w.delay(0)
			w.nothingLeft(slotsOf(3)...)
		})
	}
}

// A waiter gets the first slot that is released, and leaves the queues of the other slots. No client needs to poll
// for this.
func TestWaiterGetsFirstFreeSlot(t *testing.T) {
	for freed := range 3 {
		bubble(t, 5, func(w *cluster) {
			held := w.holdSlots(3)
			c := w.peer("waiter").waits("n", redlock.WithSlots(3), unpolled)
			for _, name := range slotsOf(3) {
				if w.queued(name) == 0 {
					w.Errorf("the waiter is not in the queue of %s", name)
				}
			}
			w.delay(time.Millisecond)
			go w.unlock(held[freed])
			k, took := c.timed(time.Second)
			if took > 4*time.Millisecond || k.Name() != slotsOf(3)[freed] {
				w.Errorf("the waiter got %s after %v, want the slot that was released", k.Name(), took)
			}
			after(10 * time.Millisecond)
			for _, name := range slotsOf(3) {
				if n := w.queued(name); n != 0 {
					w.Errorf("%d masters have waiters of %s", n, name)
				}
			}
			held[freed] = k
			w.delay(0)
			w.unlockAll(held...)
			w.nothingLeft(slotsOf(3)...)
		})
	}
}

// All slots become free at the same instant. The first waiter may win several slots. This waiter keeps one slot and
// releases the others immediately, so each waiter has a slot after at most two releases.
func TestSlotsWonTogetherAreReleasedAtOnce(t *testing.T) {
	for _, opts := range [][]redlock.LockOption{nil, {redlock.WithFair()}, {redlock.WithMinHold(2 * time.Second)}} {
		bubble(t, 5, func(w *cluster) {
			held := w.holdSlots(3)
			var calls []*call
			for i := range 3 {
				p := w.peer(fmt.Sprint("waiter", i))
				calls = append(calls, p.waits("n", append(opts, redlock.WithSlots(3), unpolled)...))
			}
			w.delay(time.Millisecond)
			for _, k := range held {
				go w.unlock(k)
			}
			var names []string
			for _, c := range calls {
				k := c.gets(15 * time.Millisecond)
				names = append(names, k.Name())
				defer w.unlock(k)
			}
			slices.Sort(names)
			if !slices.Equal(names, slotsOf(3)) {
				w.Errorf("the waiters have the slots %q, want each slot once", names)
			}
			w.delay(0)
		})
	}
}

// Fair waiters are served in the order of their calls, regardless of which slot becomes free.
func TestFairWaitersForSlotsAreServedInOrder(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		held := w.holdSlots(2)
		w.delay(time.Millisecond)
		var calls []*call
		for i := range 8 {
			p := w.peer(fmt.Sprintf("p%02d", 99-i))
			calls = append(calls, w.call(w.Context(), p, "n", redlock.WithFair(), redlock.WithSlots(2), unpolled))
			after(20 * time.Millisecond)
		}
		random := seeded(1)
		for i, c := range calls {
			n := random.IntN(2)
			go w.unlock(held[n])
			held[n] = c.gets(time.Second)
			after(20 * time.Millisecond)
			for j, later := range calls[i+1:] {
				if later.over() {
					w.Fatalf("waiter %d was served before waiter %d", i+1+j, i)
				}
			}
		}
		w.delay(0)
		w.unlockAll(held...)
		w.nothingLeft(slotsOf(2)...)
	})
}

// A call that ends at any moment of its wait leaves nothing: no slot, and no place in a queue.
func TestCancelledWaiterForSlotsLeavesNothing(t *testing.T) {
	for at := time.Duration(0); at < 16*time.Millisecond; at += 250 * time.Microsecond {
		bubble(t, 3, func(w *cluster) {
			holder, waiter := w.peer("holder"), w.peer("waiter")
			held := []*redlock.Lock{w.take(holder, "n:1"), w.take(holder, "n:2")}
			w.delay(time.Millisecond)
			ctx, cancel := context.WithCancel(w.Context())
			c := w.call(ctx, waiter, "n", redlock.WithSlots(2))
			after(10 * time.Millisecond)
			time.AfterFunc(at, cancel)
			go w.unlock(held[0])
			after(time.Millisecond)
			go w.unlock(held[1])
			after(time.Second)
			if !c.over() {
				w.Fatal("the call has not ended")
			}
			if c.lock != nil {
				w.unlock(c.lock)
			} else {
				w.isError(c.err, context.Canceled)
			}
			w.delay(0)
			w.nothingLeft(slotsOf(2)...)
		})
	}
}

// The calls of one Locker hand slots off to each other locally, also while all of them wait, and each slot has one
// holder at a time.
func TestCallsOfOneLockerShareSlots(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		w.delay(time.Millisecond)
		var mu sync.Mutex
		holders, most, done := 0, 0, make(chan error)
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			holders += n
			most = max(most, holders)
		}
		for range 20 {
			go func() {
				done <- l.Do(w.Context(), "n", func(context.Context, *redlock.Lock) error {
					count(1)
					time.Sleep(3 * time.Millisecond)
					count(-1)
					return nil
				}, redlock.WithSlots(3))
			}()
			synctest.Wait()
		}
		for range 20 {
			w.noError(<-done)
		}
		equal(w, most, 3, "holders at a time")
		w.delay(0)
		w.nothingLeft(slotsOf(3)...)
	})
}

// A call with the context of a slot re-enters that slot, and does not acquire a second one. For a call with k slots,
// the context of a slot whose number is above k belongs to none of them.
func TestSlotIsReentered(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		k := w.take(l, "n", redlock.WithSlots(3))
		again, err := l.TryLock(k.Context(w.Context()), "n", redlock.WithSlots(3))
		if err != nil || again.Name() != k.Name() || again.Token() != k.Token() {
			w.Fatalf("the re-entry returned %v, %v", again, err)
		}
		w.unlock(again)
		w.unlock(k)
		w.isError(errOf(l.Lock(k.Context(context.WithoutCancel(w.Context())), "n", redlock.WithSlots(3))),
			redlock.ErrReleased)
		third := w.take(l, "n:3")
		two, err := l.TryLock(third.Context(w.Context()), "n", redlock.WithSlots(2))
		if err != nil || two.Name() == third.Name() {
			w.Fatalf("TryLock with two slots returned %v, %v", two, err)
		}
		w.unlockAll(two, third)
		w.nothingLeft(slotsOf(3)...)
	})
}

// A slot that lingers at one client is given to another client that waits for a slot. The client at which a slot
// lingers can acquire that slot again without sending a message.
func TestSlotLingers(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		a, b := w.peer("a"), w.peer("b")
		opts := []redlock.LockOption{redlock.WithSlots(2), redlock.WithLinger(time.Minute), redlock.WithTTL(20 * time.Second)}
		w.unlock(w.take(a, "n", opts...)) // this subscribes a
		after(time.Second)
		first := w.take(a, "n", opts...)
		w.unlock(first)
		after(time.Millisecond) // until the last master has executed its acquire
		before := w.count("acquire")
		again := w.take(a, "n", opts...)
		if n := w.count("acquire"); n != before || again.Name() != first.Name() {
			w.Errorf("slot %s lingered, but the client got %s with %d acquires", first.Name(), again.Name(), n-before)
		}
		w.unlock(again)
		other := w.take(b, "n", redlock.WithSlots(2))
		both := w.take(b, "n", redlock.WithSlots(2))
		if other.Name() == both.Name() {
			w.Errorf("two locks have the slot %s", both.Name())
		}
		w.unlockAll(other, both)
		w.nothingLeft(slotsOf(2)...)
	})
}

// H167: the slots of a dead client, whose locks may be lingering, do not delay a call that finds a free slot. A call
// that finds none is refused after half a second or its wait limit, however many slots there are.
func TestSlotsOfDeadClientCostOneLimit(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		const k = 10
		slots := redlock.WithSlots(k)
		p, other := w.peer("p"), w.peer("other")
		for range k - 1 {
			w.take(p, "n", slots, redlock.WithTTL(30*time.Second), redlock.WithLinger(time.Second))
		}
		p.tampering(lost)
		after(time.Second)
		w.delay(time.Millisecond)
		try := func(opts ...redlock.LockOption) (*redlock.Lock, time.Duration, error) {
			began := time.Now()
			l, err := other.TryLock(w.Context(), "n", append(opts, slots)...)
			return l, time.Since(began), err
		}
		for range 10 {
			l, took, err := try()
			w.must(err)
			atMost(w, took, 2*k*time.Millisecond, "time for a free slot")
			w.unlock(l)
		}
		last, _, err := try()
		w.must(err)
		for limit, opts := range map[time.Duration][]redlock.LockOption{
			500 * time.Millisecond: nil, 2 * time.Second: {redlock.WithWaitLimit(2 * time.Second)},
		} {
			_, took, err := try(opts...)
			w.says(err, redlock.ErrHeld, "each of 10 slots is held")
			if took > limit || took < limit/2 {
				w.Errorf("a call without a free slot took %v, want %v", took, limit)
			}
		}
		c := w.call(w.Context(), other, "n", slots, unpolled) // waits in the queues after one pass
		after(2 * (k + 1) * time.Millisecond)
		w.unlock(last)
		w.unlock(c.gets(10 * time.Millisecond))
	})
}

// H103, H167: of simultaneous calls for slots that do not wait, as many win as there are slots.
func TestSimultaneousTryLocksOfSlots(t *testing.T) {
	for _, k := range []int{1, 2, 3} {
		subtest(t, fmt.Sprint(k), 5, func(w *cluster) {
			var lockers []*peer
			for i := range 10 {
				p := w.peer(fmt.Sprint("host-", i))
				p.lateUpTo(3*time.Millisecond, uint64(i))
				lockers = append(lockers, p)
			}
			for range rounds(100, 10) {
				shots := atOneInstant(len(lockers), func(i int) (*redlock.Lock, error) {
					return lockers[i].TryLock(w.Context(), "n", redlock.WithSlots(k))
				})
				won := 0
				for _, s := range shots {
					atMost(w, s.took, 500*time.Millisecond, "time of a call")
					if s.err == nil {
						won++
						w.unlock(s.lock)
					} else {
						w.isError(s.err, redlock.ErrHeld)
					}
				}
				equal(w, won, k, "winners")
				after(100 * time.Millisecond)
			}
		})
	}
}

// Options and calls that cannot be combined with slots are refused before anything is sent.
func TestInvalidUsesOfSlotsAreRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		p := w.pool()
		l, slots := w.over(p), redlock.WithSlots(3)
		before := w.count("acquire")
		for _, err := range []error{
			errOf(l.Lock(w.Context(), "n", redlock.WithSlots(0))),
			errOf(l.Lock(w.Context(), "n", redlock.WithSlots(101))),
			errOf(l.Lock(w.Context(), "n", slots, redlock.WithRetry(redlock.Retry{Tries: 3}))),
			errOf(l.TryLock(w.Context(), strings.Repeat("n", scripts.MaxName-1), slots)),
			errOf(l.LockAll(w.Context(), []string{"n"}, slots)),
			errOf(l.RWLock("n").RLock(w.Context(), slots)),
			errOf(l.RWLock("n").Lock(w.Context(), slots)),
			errOf(redlock.New(p, slots)),
		} {
			w.isError(err, redlock.ErrInvalid)
		}
		equal(w, w.count("acquire"), before, "acquires")
	})
}

// If a wait for slots ends at its limit, the error names the slot that may become free first. Without a quorum the
// error is not ErrHeld.
func TestErrorOfWaitForSlots(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder, l := w.peer("holder").Locker, w.peer("waiter").Locker
		w.take(holder, "n:1", redlock.WithTTL(20*time.Second), redlock.WithExtension(false))
		w.take(holder, "n:2", redlock.WithTTL(10*time.Second), redlock.WithExtension(false))
		_, err := l.Lock(w.Context(), "n", redlock.WithSlots(2), redlock.WithWaitLimit(time.Second))
		w.isError(err, redlock.ErrHeld)
		w.notError(err, context.DeadlineExceeded)
		var e *redlock.LockError
		if !errors.As(err, &e) || e.Name != "n:2" || e.Left > 11*time.Second || e.Left < 5*time.Second {
			w.Errorf("the error is %v", err)
		}
		w.stop(0, 1)
		_, err = l.TryLock(w.Context(), "n", redlock.WithSlots(2))
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
	})
}
