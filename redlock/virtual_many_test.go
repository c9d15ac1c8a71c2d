package redlock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// takeMany takes count locks of a Locker at one instant.
func (w *world) takeMany(l *redlock.Locker, count int) (locks []*redlock.Lock) {
	w.Helper()
	for i := range count {
		locks = append(locks, w.take(l, "held-"+strconv.Itoa(i)))
	}
	return locks
}

// Locks that are due together are extended by few calls, and each as if it were alone: it is held on, and depths stand.
func TestVirtualHoldsThatAreDueTogetherAreExtendedTogether(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		locks := w.takeMany(l, 96)
		inner := w.takeWith(l, locks[7].Context(w.Context()), "held-7")
		w.wire.clear()
		after(time.Minute)
		alone, together := len(w.wire.sent("extend")), len(w.wire.sent("extend many"))
		if alone > 5 /* the inner lock */ || together < 5*17*3 || together > 5*19*3 { // every 3.3 s, 32 in one
			w.Errorf("%d extensions of one, %d of many", alone, together)
		}
		for i, k := range locks {
			if on, n := k.HeldOn(); on != n || k.Err() != nil {
				w.Errorf("lock %d is held on %d of %d: %v", i, on, n, k.Err())
			}
		}
		if _, depth, left := w.masters.Master(0).Holds("held-7"); depth != 2 || left < 6*time.Second {
			w.Errorf("depth %d, %v left on a master", depth, left)
		}
		w.unlock(inner)
		for _, k := range locks {
			w.unlock(k)
		}
		synctest.Wait()
		for i := range locks {
			if on := w.on("held-" + strconv.Itoa(i)); on != 0 {
				w.Errorf("lock %d is left on %d masters", i, on)
			}
		}
	})
}

// A master that lost all, and one that lost some, get the holds back by what the majority has confirmed (H26).
func TestVirtualHoldsExtendedTogetherDriftBackToAllMasters(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * time.Millisecond} { // it answers with the others, or after the majority
		virtual(t, 5, func(w *world) {
			locks := w.takeMany(w.locker(), 40)
			w.delay(late, 0, 1)
			w.masters.Master(0).Flush()
			for i := range 10 {
				w.masters.Master(1).Evict("held-" + strconv.Itoa(i))
			}
			after(6 * time.Second) // the next extension is after 6.7 s
			for i, k := range locks {
				if on, n := k.HeldOn(); on != n || w.on("held-"+strconv.Itoa(i)) != n || k.Err() != nil {
					w.Errorf("%v late: lock %d is held on %d of %d: %v", late, i, on, n, k.Err())
				}
			}
		})
	}
}

// What a majority has lost is lost, and nothing else is, though all go in one call (H20, H24): the hold is asked for by
// itself and is not written anew.
func TestVirtualOfHoldsExtendedTogetherTheLostOneIsLost(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		locks := w.takeMany(l, 40)
		for i := range 3 {
			w.masters.Master(i).Evict("held-5")
		}
		after(4 * time.Second)
		for i, k := range locks {
			if lost := errors.Is(k.Err(), redlock.ErrLost); lost != (i == 5) {
				w.Errorf("lock %d: %v", i, k.Err())
			}
		}
		if on := w.on("held-5"); on > 2 {
			w.Errorf("the lost lock is on %d masters", on)
		}
	})
}

// While a majority is away nothing is extended, and every lock ends at the end of its validity and not before; one that
// hangs for less than that ends none (H21, H23).
func TestVirtualHoldsExtendedTogetherOutliveAShortHang(t *testing.T) {
	for _, c := range []struct {
		hang time.Duration
		lost bool
	}{{5 * time.Second, false}, {12 * time.Second, true}} {
		virtual(t, 5, func(w *world) {
			locks := w.takeMany(w.locker(), 40)
			w.hang(0, 1, 2)
			after(9 * time.Second) // of a validity of 9.9 s
			for i, k := range locks {
				if c.lost && k.Err() != nil {
					w.Errorf("lock %d ended too early: %v", i, k.Err())
				}
			}
			after(c.hang - 9*time.Second)
			w.resume(0, 1, 2)
			after(20 * time.Second)
			for i, k := range locks {
				if lost := errors.Is(k.Err(), redlock.ErrLost); lost != c.lost {
					w.Errorf("hung for %v, lock %d: %v", c.hang, i, k.Err())
				}
			}
		})
	}
}

// H22: no byte of an extension of many follows the release of one of its holds.
func TestVirtualNoExtensionOfManyFollowsTheRelease(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(redlock.WithTTL(time.Second))
		for range 20 {
			locks := w.takeMany(l, 40)
			synctest.Wait()
			w.wire.clear()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; i < len(locks); i += 2 {
					<-time.After(time.Second / 60)
					w.unlock(locks[i])
				}
			}()
			<-done
			synctest.Wait()
			for m := range 3 {
				gone := map[string]bool{}
				for _, s := range w.wire.sent("release", "extend many") {
					switch {
					case s.master != m:
					case s.script() == "release":
						gone[s.hold()] = true
					case slices.ContainsFunc(s.args, func(a string) bool { return gone[a] }):
						w.Fatal("an extension of a hold that was released")
					}
				}
				if len(gone) != len(locks)/2 {
					w.Fatalf("%d releases", len(gone))
				}
			}
			for i := 1; i < len(locks); i += 2 {
				w.unlock(locks[i])
			}
		}
	})
}

// Those who wait for many names look again at few instants together, each as often as if it were alone: no later than five
// seconds after the time before, and no sooner than two.
func TestVirtualThoseWhoWaitForManyNamesAskTogether(t *testing.T) {
	const names, watched = 60, 40 * time.Second
	virtual(t, 5, func(w *world) {
		holder := w.locker()
		locks := w.takeMany(holder, names)
		var mu sync.Mutex
		asked := map[string][]time.Time{}
		waiter := w.locker(redlock.WithTrace(&redlock.Trace{Attempt: func(i redlock.AttemptInfo) {
			mu.Lock()
			defer mu.Unlock()
			asked[i.Name] = append(asked[i.Name], time.Now().Add(-i.Elapsed))
		}}))
		ctx, cancel := context.WithCancel(w.Context())
		var calls []*call
		for i := range names {
			calls = append(calls, w.call(ctx, waiter, "held-"+strconv.Itoa(i)))
			after(7 * time.Millisecond)
		}
		after(10 * time.Second) // the first looks are sooner
		from := time.Now()
		after(watched)
		mu.Lock()
		instants, looks := map[time.Time]int{}, 0
		for name, all := range asked {
			var last time.Time
			for _, at := range all {
				if at.Before(from) {
					last = at
					continue
				}
				instants[at.Truncate(time.Millisecond)]++
				looks++
				if since := at.Sub(last); since > 5*time.Second || since < 2*time.Second {
					w.Errorf("%s is asked for %v after the time before", name, since)
				}
				last = at
			}
		}
		mu.Unlock()
		if least := names * int(watched/(5*time.Second)); looks < least {
			w.Errorf("%d looks in %v, want %d and more", looks, watched, least)
		}
		if most := 4*int(watched/time.Second) + 4; len(instants) > most {
			w.Errorf("%d looks at %d instants, want %d at the most", looks, len(instants), most)
		}
		cancel()
		for _, c := range calls {
			<-c.done
		}
		for _, k := range locks {
			w.unlock(k)
		}
	})
}
