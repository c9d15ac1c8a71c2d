package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// pause stops the client's machine with both of its clocks: the clocks of these masters, or of all, are ahead by d.
func (w *world) pause(d time.Duration, which ...int) {
	if len(which) == 0 {
		for i := range w.masters.N() {
			which = append(which, i)
		}
	}
	for _, i := range which {
		m := w.masters.Master(i)
		m.SetClock(time.Until(m.Time())+d, 1)
	}
}

// H118: a machine that has stopped with both of its clocks learns it from the masters' clocks: a lock whose validity
// has passed meanwhile ends by the next heartbeat, long before its next extension.
func TestVirtualFreezeOfBothClocksLosesLock(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l, other := w.locker(), w.locker()
		k := w.take(l, "a", redlock.WithTTL(30*time.Second))
		ctx := k.Context(w.Context())
		after(time.Second)
		w.pause(40 * time.Second)
		after(3200 * time.Millisecond)
		w.isError(k.Err(), redlock.ErrLost)
		if ctx.Err() == nil {
			w.Error("the context of the lock has not ended")
		}
		next := w.take(other, "a")
		if next.Token() <= k.Token() {
			w.Errorf("token %d after %d", next.Token(), k.Token())
		}
	})
}

// H118: less than the validity is taken from it.
func TestVirtualAShortStopOfBothClocksShortensTheValidity(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.locker(redlock.WithExtension(false)), "a", redlock.WithTTL(30*time.Second))
		after(time.Second)
		w.pause(10 * time.Second)
		after(3100 * time.Millisecond)
		if left := k.Remaining(); left > 16*time.Second || left < 15*time.Second || k.Err() != nil {
			w.Errorf("%v of the validity are left, %v", left, k.Err())
		}
	})
}

// H118: a refusal shows it before the heartbeat.
func TestVirtualARefusalShowsThatBothClocksHaveStopped(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l, other := w.locker(redlock.WithExtension(false)), w.locker()
		k := w.take(l, "a", redlock.WithTTL(30*time.Second))
		w.take(other, "b", redlock.WithTTL(30*time.Second))
		_, err := l.TryLock(w.Context(), "b") // from now on the client knows the masters' time well
		w.isError(err, redlock.ErrHeld)
		after(3 * time.Second)
		w.pause(20 * time.Second)
		_, err = l.TryLock(w.Context(), "b")
		w.isError(err, redlock.ErrHeld)
		if left := k.Remaining(); left > 8*time.Second {
			w.Errorf("%v of the validity are left", left)
		}
	})
}

// H118: the clocks of a minority, and those of a majority that are set one after the other, end no lock.
func TestVirtualClocksOfAMinorityEndNoLock(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.locker(), "a", redlock.WithTTL(10*time.Second))
		for step := range 8 {
			i := step % 5
			w.pause(12*time.Second, i)
			if step == 0 {
				w.pause(12*time.Second, 4)
			}
			after(15 * time.Second)
			if k.Err() != nil || k.Remaining() < 5*time.Second {
				w.Error(fmt.Sprint("step ", step, ": "), k.Remaining(), k.Err())
			}
		}
	})
}
