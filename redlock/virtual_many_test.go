package redlock_test

import (
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
