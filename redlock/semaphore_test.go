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

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// slotsOf returns the names under which the masters know the name "n" and k slots of it.
func slotsOf(k int) (names []string) {
	for i := range k {
		names = append(names, scripts.Slot{Number: i + 1, Of: k}.Name("n"))
	}
	return append(names, "n")
}

// holdSlots makes a separate client hold each of k slots of "n", in their order.
func (w *cluster) holdSlots(k int) []*redlock.Lock {
	w.Helper()
	held := make([]*redlock.Lock, k)
	for i := range k {
		k := must(w.peer(fmt.Sprint("holder ", i)).Semaphore("n", k).Acquire(w.Context(), redlock.WithTTL(30*time.Second)))(w)
		held[k.Slot()-1] = k
	}
	return held
}

// A call that waits for a semaphore is one waiting call, although it waits for each slot.
func TestWaitingForSlotsCountsOnce(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		s := l.Semaphore("n", 4)
		for range 4 {
			must(s.Acquire(w.Context()))(w)
		}
		ctx, cancel := context.WithCancel(w.Context())
		calls := []*call{w.goAcquire(ctx, s), w.goAcquire(ctx, s)}
		after(2 * time.Second)
		if n := l.Stats().Waiting["held"]; n != 2 {
			w.Errorf("%d calls wait, want 2", n)
		}
		cancel()
		for _, c := range calls {
			w.isError(c.mustFail(time.Second), context.Canceled)
		}
		if n := l.Stats().Waiting["held"]; n != 0 {
			w.Errorf("%d calls wait, want 0", n)
		}
	})
}

// A waiter gets the first slot that is released, and leaves the queues of the other slots. No client needs to poll
// for this.
func TestWaiterGetsFirstFreeSlot(t *testing.T) {
	for freed := range 3 {
		bubble(t, 5, func(w *cluster) {
			held := w.holdSlots(3)
			c := w.goAcquire(w.Context(), w.peer("waiter").Semaphore("n", 3), unpolled).mustWait()
			for _, name := range slotsOf(3)[:3] {
				if w.queued(name) == 0 {
					w.Errorf("the waiter is not in the queue of %s", name)
				}
			}
			w.delay(time.Millisecond)
			w.goUnlock(held[freed])
			k, took := c.timed(time.Second)
			if took > 4*time.Millisecond || k.Slot() != freed+1 {
				w.Errorf("the waiter got slot %d after %v, want the slot that was released", k.Slot(), took)
			}
			after(10 * time.Millisecond)
			for _, name := range slotsOf(3) {
				if n := w.queued(name); n != 0 {
					w.Errorf("%d masters have waiters of %s", n, name)
				}
			}
			held[freed] = k
			for _, k := range held {
				w.noError(k.Unlock(w.Context()))
			}
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
				calls = append(calls, w.goAcquire(w.Context(), p.Semaphore("n", 3), append(opts, unpolled)...).mustWait())
			}
			w.delay(time.Millisecond)
			for _, k := range held {
				w.goUnlock(k)
			}
			var slots []int
			for _, c := range calls {
				k := c.mustLock(15 * time.Millisecond)
				slots = append(slots, k.Slot())
				defer func() { w.noError(k.Unlock(w.Context())) }()
			}
			slices.Sort(slots)
			if !slices.Equal(slots, []int{1, 2, 3}) {
				w.Errorf("the waiters have the slots %v, want each slot once", slots)
			}
			w.delay(0)
		})
	}
}

// A call that ends at any moment of its wait leaves nothing: no slot, and no place in a queue.
func TestCancelledWaiterForSlotsLeavesNothing(t *testing.T) {
	for at := time.Duration(0); at < 16*time.Millisecond; at += 250 * time.Microsecond {
		bubble(t, 3, func(w *cluster) {
			waiter := w.peer("waiter").Semaphore("n", 2)
			held := w.holdSlots(2)
			w.delay(time.Millisecond)
			ctx, cancel := context.WithCancel(w.Context())
			c := w.goAcquire(ctx, waiter)
			after(10 * time.Millisecond)
			time.AfterFunc(at, cancel)
			w.goUnlock(held[0])
			after(time.Millisecond)
			w.goUnlock(held[1])
			after(time.Second)
			if !c.returned() {
				w.Fatal("the call has not ended")
			}
			if c.lock != nil {
				w.noError(c.lock.Unlock(w.Context()))
			} else {
				w.isError(c.err, context.Canceled)
			}
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
				done <- l.Semaphore("n", 3).Do(w.Context(), func(context.Context, *redlock.Lock) error {
					count(1)
					time.Sleep(3 * time.Millisecond)
					count(-1)
					return nil
				})
			}()
			synctest.Wait()
		}
		for range 20 {
			w.noError(<-done)
		}
		equal(w, most, 3, "holders at a time")
		w.nothingLeft(slotsOf(3)...)
	})
}

// A slot that lingers at one client is given to another client that waits for a slot. The client at which a slot
// lingers can acquire that slot again without sending a message.
func TestSlotLingers(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		a, b := w.peer("a").Semaphore("n", 2), w.peer("b").Semaphore("n", 2)
		opts := []redlock.LockOption{redlock.WithLinger(time.Minute), redlock.WithTTL(20 * time.Second)}
		w.noError(a.Do(w.Context(), nothing, opts...)) // this subscribes a
		after(time.Second)
		first := must(a.Acquire(w.Context(), opts...))(w)
		w.noError(first.Unlock(w.Context()))
		after(time.Millisecond) // until the last master has executed its acquire
		before := w.count("slot acquire")
		again := must(a.Acquire(w.Context(), opts...))(w)
		if n := w.count("slot acquire"); n != before || again.Slot() != first.Slot() {
			w.Errorf("slot %d lingered, but the client got %d with %d acquires", first.Slot(), again.Slot(), n-before)
		}
		w.noError(again.Unlock(w.Context()))
		other, both := must(b.Acquire(w.Context()))(w), must(b.Acquire(w.Context()))(w)
		if other.Slot() == both.Slot() {
			w.Errorf("two locks have the slot %d", both.Slot())
		}
		w.noError(other.Unlock(w.Context()), both.Unlock(w.Context()))
		w.nothingLeft(slotsOf(2)...)
	})
}

// H167: the slots of a dead client, whose locks may be lingering, do not delay a call that finds a free slot. A call
// that finds none is refused after half a second or its wait limit, however many slots there are.
func TestSlotsOfDeadClientCostOneLimit(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		const k = 10
		p, other := w.peer("p"), w.peer("other").Semaphore("n", k)
		for range k - 1 {
			must(p.Semaphore("n", k).Acquire(w.Context(), redlock.WithTTL(30*time.Second), redlock.WithLinger(time.Second)))(w)
		}
		p.tampering(lost)
		after(time.Second)
		w.delay(time.Millisecond)
		try := func(opts ...redlock.LockOption) (*redlock.Lock, time.Duration, error) {
			began := time.Now()
			l, err := other.TryAcquire(w.Context(), opts...)
			return l, time.Since(began), err
		}
		for range 10 {
			l, took, err := try()
			w.must(err)
			atMost(w, took, 2*k*time.Millisecond, "time for a free slot")
			w.noError(l.Unlock(w.Context()))
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
		c := w.goAcquire(w.Context(), other, unpolled) // it waits in the queues after one pass
		after(2 * (k + 1) * time.Millisecond)
		w.noError(last.Unlock(w.Context()))
		w.noError(c.mustLock(10 * time.Millisecond).Unlock(w.Context()))
	})
}

// H103, H167: of simultaneous calls for slots that do not wait, as many win as there are slots, each another slot.
func TestSimultaneousTryLocksOfSlots(t *testing.T) {
	for k, text := range map[int]string{
		1: "held by another", 2: "each of 2 slots is held", 3: "each of 3 slots is held",
	} {
		subtest(t, fmt.Sprint(k), 5, func(w *cluster) {
			var lockers []*peer
			for i := range 10 {
				p := w.peer(fmt.Sprint("host-", i))
				p.lateUpTo(3*time.Millisecond, uint64(i))
				lockers = append(lockers, p)
			}
			for range rounds(100, 10) {
				shots := atOneInstant(len(lockers), func(i int) (*redlock.Lock, error) {
					return lockers[i].Semaphore("n", k).TryAcquire(w.Context())
				})
				var slots []int
				for _, s := range shots {
					atMost(w, s.took, 500*time.Millisecond, "time of a call")
					if s.err == nil {
						equal(w, s.lock.Name(), "n", "name")
						slots = append(slots, s.lock.Slot())
						w.noError(s.lock.Unlock(w.Context()))
					} else {
						w.says(s.err, redlock.ErrHeld, `"n": `+text)
					}
				}
				slices.Sort(slots)
				if !slices.Equal(slots, []int{1, 2, 3}[:k]) {
					w.Errorf("the winners have the slots %v, want each of %d slots once", slots, k)
				}
				after(100 * time.Millisecond)
			}
			w.nothingLeft(slotsOf(k)...)
		})
	}
}

// Invalid names, sizes and options are refused before anything is sent.
func TestInvalidUsesOfSemaphoreAreRefused(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		before := len(w.wire.sent())
		retry := redlock.WithTries(3)
		for _, err := range []error{
			errOf(l.Semaphore("n", 0).Acquire(w.Context())),
			errOf(l.Semaphore("n", 101).Acquire(w.Context())),
			errOf(l.Semaphore("", 3).Acquire(w.Context())),
			errOf(l.Semaphore(strings.Repeat("n", scripts.MaxName+1), 3).TryAcquire(w.Context())),
			errOf(l.Semaphore("n", 3).Acquire(w.Context(), retry)),
			errOf(l.Semaphore("n", 3).TryAcquire(w.Context(), redlock.WithTTL(0))),
			l.Semaphore("n", 3).Do(w.Context(), func(context.Context, *redlock.Lock) error { return nil }, retry),
			errOf(l.Lock(w.Context(), slotsOf(3)[0])), // the name of a slot inside a client
			errOf(l.RWLock(slotsOf(3)[0]).RLock(w.Context())),
			errOf(l.Semaphore(slotsOf(3)[0], 3).Acquire(w.Context())),
			errOf(l.Inspect(w.Context(), slotsOf(3)[0])),
		} {
			w.isError(err, redlock.ErrInvalid)
		}
		equal(w, len(w.wire.sent()), before, "commands")
	})
}

// If a wait for slots ends at its limit, the error describes the slot that may become free first. Without a quorum the
// error is not ErrHeld.
func TestErrorOfWaitForSlots(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder, waiter := w.peer("holder").Semaphore("n", 2), w.peer("waiter").Semaphore("n", 2)
		must(holder.Acquire(w.Context(), redlock.WithTTL(20*time.Second), redlock.WithExtension(false)))(w)
		must(holder.Acquire(w.Context(), redlock.WithTTL(10*time.Second), redlock.WithExtension(false)))(w)
		_, err := waiter.Acquire(w.Context(), redlock.WithWaitLimit(time.Second))
		w.isError(err, redlock.ErrHeld)
		w.notError(err, context.DeadlineExceeded)
		var e *redlock.LockError
		if !errors.As(err, &e) || e.Op != "acquire" || e.Name != "n" || e.Left > 11*time.Second || e.Left < 5*time.Second {
			w.Errorf("the error is %v", err)
		}
		w.stop(0, 1)
		_, err = waiter.TryAcquire(w.Context())
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
	})
}

// A slot that is repaired on a master, imported, or won on a majority only, has the mark of its kind there too.
func TestMarkFollowsSlot(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l, other := w.locker(), w.locker()
		k := must(l.Semaphore("n", 2).Acquire(w.Context()))(w)
		marked := func(what string) {
			w.Helper()
			after(time.Millisecond)
			w.each(func(i int, m *memory.Master) {
				if kind := m.Kind("n"); kind != "semaphore 2" {
					w.Errorf("%s: on master %d the kind is %q", what, i, kind)
				}
			})
		}
		marked("after an acquire")
		w.restart(false, 0, 1)
		after(time.Minute) // the masters vote again
		marked("after a repair")
		w.isError(errOf(other.Lock(w.Context(), "n")), redlock.ErrKind)
		after(time.Millisecond)
		handle := must(k.Export())(w)
		w.each(func(_ int, m *memory.Master) { m.EvictKey(defaultPrefix.Lock("n")) })
		imported := must(other.Import(w.Context(), handle))(w)
		if imported.Name() != "n" || imported.Slot() != k.Slot() {
			w.Errorf("the imported lock is slot %d of %s", imported.Slot(), imported.Name())
		}
		marked("after an import")
		w.each(func(_ int, m *memory.Master) { m.EvictKey(defaultPrefix.Lock("n")) })
		w.must(imported.Extend(w.Context()))
		synctest.Wait()
		marked("after an extension")
		w.noError(imported.Unlock(w.Context()))
	})
}

// An inspection of a semaphore shows its slots and the waiters. A lease of a slot can be released by force, and its
// holder be asked.
func TestInspectSemaphore(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		a, b := w.peer("a"), w.peer("b")
		first := must(a.Semaphore("n", 3).Acquire(w.Context()))(w)
		after(time.Millisecond) // attempts at one instant have the same ballot
		second := must(b.Semaphore("n", 3).Acquire(w.Context()))(w)
		w.must(first.SetValue(w.Context(), "value"))
		after(10 * time.Millisecond)
		look := func() redlockinfo.Inspection {
			w.Helper()
			i := must(w.locker().Inspect(w.Context(), "n"))(w)
			if len(i.Slots) != 3 || i.ID != "" {
				w.Fatalf("the inspection is %+v", i)
			}
			return i
		}
		i := look()
		for _, k := range []*redlock.Lock{first, second} {
			slot := i.Slots[k.Slot()-1]
			if slot.Token != k.Token() || slot.On != 5 || slot.Free {
				w.Errorf("slot %d is %+v", k.Slot(), slot)
			}
		}
		equal(w, i.Slots[first.Slot()-1].Value, "value", "value")
		equal(w, i.Free, false, "free")
		third := must(b.Semaphore("n", 3).Acquire(w.Context()))(w)
		c := w.goAcquire(w.Context(), w.peer("waiter").Semaphore("n", 3)).mustWait()
		i = look()
		if i.WaiterCount != 1 || i.Waiters[0].Label != "waiter" {
			w.Errorf("the waiters are %d, %+v", i.WaiterCount, i.Waiters)
		}
		after(2 * time.Second) // the holders are subscribed
		heard := must(admin.Of(b.Locker).RequestRelease(w.Context(), "n"))(w)
		equal(w, heard, 3, "holders that were asked")
		n := must(admin.Of(a.Locker).ForceRelease(w.Context(), "n", i.Slots[second.Slot()-1].ID))(w)
		equal(w, n, 5, "masters that have released")
		w.noError(c.mustLock(time.Second).Unlock(w.Context()))
		w.isError(second.Unlock(w.Context()), redlock.ErrLost)
		w.noError(first.Unlock(w.Context()), third.Unlock(w.Context()))
		i = look()
		equal(w, i.Free, true, "free")
		equal(w, len(a.Stats().Held), 0, "held locks")
	})
}

// No waiter starves: while busy clients, each with several waiting calls, acquire and release slots, a waiter of
// another client is overtaken on each slot by at most one turn of hand-offs of each busy client, of at most 100 ms.
// With WithFair on all calls, no later call is served first.
func TestNoWaiterForSlotStarves(t *testing.T) {
	const hold, clients, each, k = 5 * time.Millisecond, 6, 5, 2
	for _, opts := range [][]redlock.LockOption{nil, {redlock.WithFair()}} {
		bubble(t, 5, func(w *cluster) {
			w.delay(time.Millisecond)
			ctx, stop := context.WithCancel(w.Context())
			var wg sync.WaitGroup
			var mu sync.Mutex
			var began []time.Time // start of each served call
			for i := range clients {
				p := w.peer(fmt.Sprint("busy", i))
				for range each {
					wg.Go(func() {
						for ctx.Err() == nil {
							called := time.Now()
							_ = p.Semaphore("n", k).Do(ctx, func(context.Context, *redlock.Lock) error {
								mu.Lock()
								began = append(began, called)
								mu.Unlock()
								time.Sleep(hold)
								return nil
							}, opts...)
						}
					})
				}
			}
			victim := w.peer("victim").Semaphore("n", k)
			worst, overtaken := time.Duration(0), 0
			for range 20 {
				after(137 * time.Millisecond)
				mu.Lock()
				began = nil
				mu.Unlock()
				called := time.Now()
				lock := must(victim.Acquire(w.Context(), opts...))(w)
				worst = max(worst, time.Since(called))
				mu.Lock()
				later := 0
				for _, at := range began {
					if at.After(called) {
						later++
					}
				}
				mu.Unlock()
				overtaken = max(overtaken, later)
				w.noError(lock.Unlock(w.Context()))
			}
			stop()
			wg.Wait()
			const trips = 10 * time.Millisecond // release and acquire
			bound, most := clients*(100*time.Millisecond+hold+trips), clients*k*32
			if opts != nil {
				bound, most = (clients*each/k+1)*(hold+trips), 0
			}
			atMost(w, worst, bound, "the longest wait")
			atMost(w, overtaken, most, "later calls that were served first")
		})
	}
}

// A call that waits notices slots that become free after it has tried them: the first pass over many slots ends early.
func TestWaiterNoticesSlotsAlreadyTried(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		const k = 100
		held := w.holdSlots(k)
		p := w.peer("waiter")
		w.noError(p.Do(w.Context(), "warm", nothing))
		w.delay(30 * time.Millisecond)
		call := w.goAcquire(w.Context(), p.Semaphore("n", k), redlock.WithWaitLimit(5*time.Second))
		after(time.Second)
		for _, h := range held[:50] {
			go func() { _ = h.Unlock(w.Context()) }()
		}
		after(10 * time.Second)
		if call.err != nil {
			w.Errorf("50 slots were free, but the call failed after %v: %v", call.took, call.err)
		}
	})
}
