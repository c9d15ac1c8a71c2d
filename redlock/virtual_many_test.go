package redlock_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// takeMany acquires count locks of a Locker at one instant.
func (w *world) takeMany(l *redlock.Locker, count int) (locks []*redlock.Lock) {
	w.Helper()
	for i := range count {
		locks = append(locks, w.take(l, "held-"+strconv.Itoa(i)))
	}
	return locks
}

// Locks that are due together are each extended as if alone: they stay held, with their depths.
func TestVirtualGrantsThatAreDueTogetherAreAllExtended(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const count = 96
		l := w.locker()
		locks := w.takeMany(l, count)
		inner := w.takeWith(l, locks[7].Context(w.Context()), "held-7")
		w.wire.clear()
		after(time.Minute)
		if n := len(w.wire.sent("extend")); n < 5*17*count || n > 5*19*count { // every 3.3 s
			w.Errorf("%d extensions", n)
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

// H26: a master that lost all leases, and one that lost some, get back those that a majority has confirmed.
func TestVirtualManyGrantsDriftBackToAllMasters(t *testing.T) {
	for _, late := range []time.Duration{0, 50 * time.Millisecond} { // answers with the others, or after them
		bubble(t, 5, func(w *world) {
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

// H20, H24: exactly the locks that a majority has lost are lost, and they are not written again.
func TestVirtualOfManyGrantsTheLostOneIsLost(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		locks := w.takeMany(l, 40)
		after(time.Second) // until they are on all masters
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

// H21, H23: while a majority is away nothing is extended, and every lock ends at the end of its validity and not
// before; a majority that hangs for less than that ends no lock.
func TestVirtualManyGrantsOutliveAShortHang(t *testing.T) {
	for _, c := range []struct {
		hang time.Duration
		lost bool
	}{{5 * time.Second, false}, {12 * time.Second, true}} {
		bubble(t, 5, func(w *world) {
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
