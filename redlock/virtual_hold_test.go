package redlock_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// H14: a client was suspended for an hour. Its timers stopped, but one of the clocks went on. The context ends within a
// tenth of a second of waking, and nothing is sent for the hold before that.
func TestVirtualASuspendedClientHearsOfItsLossOnWaking(t *testing.T) {
	for name, by := range map[string][2]time.Duration{
		"both clocks":             {time.Hour, time.Hour},
		"the boot clock alone":    {time.Hour, 0},
		"the wall clock alone":    {0, time.Hour},
		"the TTL, not the hour":   {10 * time.Second, 0},
		"wall back, boot forward": {time.Hour, -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				c := newShiftClock(1)
				l := w.locker(redlock.WithClock(c.clock()))
				ctx := w.take(l, "a").Context(w.Context())
				after(1234 * time.Millisecond)
				c.jump(by[0], by[1])
				took, cause := w.ended(ctx, time.Minute)
				w.isError(cause, redlock.ErrLost)
				if took > 100*time.Millisecond {
					w.Errorf("it took %v after waking", took)
				}
				if n := len(w.wire.sent("extend")); n != 0 {
					w.Errorf("%d extensions were sent", n)
				}
			})
		})
	}
}

// H20: masters that another client has acquired are not repaired.
func TestVirtualRepairLeavesTheLockOfAnother(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.locker(), "a")
		w.each(func(_ int, m *memory.Master) { m.Evict("a") }, 0, 1)
		after(time.Millisecond) // for a larger ballot
		// Another client's attempt got two of five, and has not been rolled back.
		stranger := w.locker(redlock.WithOwner("stranger"))
		w.each(func(_ int, m *memory.Master) { m.DropReplies(1) }, 0, 1)
		w.wire.block(0, 1) // its pending releases cannot be sent
		_, err := stranger.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrHeld)
		after(3 * time.Second)
		w.wire.block()
		for i := range 2 {
			if id, _, _ := w.masters.Master(i).Holds("a"); id == "" {
				w.Fatalf("master %d is not the stranger's", i)
			}
		}
		after(30 * time.Second)
		if on, n := k.HeldOn(); on != 5 || n != 5 || k.Err() != nil {
			w.Errorf("held on %d of %d, %v", on, n, k.Err())
		}
	})
}

// H24: a timer reports the loss at the end of the validity, before the key is gone on any master.
func TestVirtualTheLossIsHeardBeforeTheKeyIsGone(t *testing.T) {
	for _, rate := range []float64{1, 0.996, 1.004} {
		t.Run(fmt.Sprint("client clock ", rate), func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				c := newShiftClock(rate)
				l := w.locker(redlock.WithClock(c.clock()))
				w.each(func(_ int, m *memory.Master) { m.SetClock(0, 2-rate) })
				k := w.take(l, "a")
				ctx := k.Context(w.Context())
				after(5 * time.Second)
				until := k.Until()
				w.hang()
				_, cause := w.ended(ctx, time.Minute)
				w.isError(cause, redlock.ErrLost)
				if late := time.Since(until); rate == 1 && late.Abs() > time.Millisecond || late > 100*time.Millisecond {
					w.Errorf("heard %v after the end", late)
				}
				w.each(func(i int, m *memory.Master) {
					if _, _, left := m.Holds("a"); left <= 0 {
						w.Errorf("the key is gone on master %d", i)
					}
				})
				select {
				case <-k.Done():
				default:
					w.Error("Done is not closed")
				}
				w.resume()
			})
		})
	}
}

// H25: a limit ends the hold: its context ends first, and then extensions stop.
func TestVirtualMaxHoldEndsTheContextAndTheExtending(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a", redlock.WithMaxHold(25*time.Second))
		took, cause := w.ended(k.Context(w.Context()), time.Minute)
		w.isError(cause, redlock.ErrMaxHold, redlock.ErrLost)
		if took != 25*time.Second {
			w.Errorf("after %v", took)
		}
		n := len(w.wire.sent("extend"))
		if n == 0 || w.on("a") != 3 {
			w.Errorf("%d extensions, on %d masters at the end", n, w.on("a"))
		}
		after(11 * time.Second)
		if m := len(w.wire.sent("extend")); m != n || w.on("a") != 0 {
			w.Errorf("%d extensions after the end, on %d masters", m-n, w.on("a"))
		}
	})
}

// H26: a master that restarted empty gets the complete hold back, and HeldOn shows the loss and the repair.
func TestVirtualALockDriftsBackToAllMasters(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		token := k.Token()
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		for i := range 5 { // a rolling restart of all masters, one within each TTL
			m := w.masters.Master(i)
			m.Stop()
			after(4 * time.Second)
			if on, n := k.HeldOn(); on != 4 || n != 5 {
				w.Errorf("master %d is down: held on %d of %d", i, on, n)
			}
			m.Restart(false)
			after(8 * time.Second)
			on, _ := k.HeldOn()
			if id, depth, _ := m.Holds("a"); on != 5 || id == "" || depth != 2 {
				w.Errorf("master %d is back: held on %d; there by %q, depth %d", i, on, id, depth)
			}
		}
		if k.Err() != nil || k.Token() != token {
			w.Errorf("%v; token %d, before %d", k.Err(), k.Token(), token)
		}
		after(40 * time.Second) // the quarantines
		_, _ = inner.Unlock(w.Context()), k.Unlock(w.Context())
		next := w.take(w.locker(), "a")
		if on, _ := next.HeldOn(); next.Token() <= token || on < 3 {
			w.Errorf("the next token is %d after %d", next.Token(), token)
		}
	})
}

// The error of a failed extension says why for each master: which were down, and how many answered but did not have the
// hold.
func TestVirtualFailedExtensionCountsMissing(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.locker(redlock.WithExtension(false)), "a")
		synctest.Wait()
		w.masters.Master(0).Evict("a")
		w.each(func(_ int, m *memory.Master) { m.Stop() }, 1, 2)
		err := k.Extend(w.Context())
		w.isError(err, redlock.ErrNoQuorum)
		var e *redlock.LockError
		if !errors.As(err, &e) || e.Missing() != 1 || len(e.FailedMasters()) != 2 {
			w.Errorf("got %v, %+v", err, e)
		}
	})
}

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
