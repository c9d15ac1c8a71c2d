package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// H02: the last message of a hold before its export is a repair. If that is still in transit when the new owner has
// taken over and released, it is refused like every late message, even if the new owner's ballots are behind.
func TestALateRepairOfAnExportedGrantIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		behind := newShiftClock(1)
		c, d := newParty(t, m, nil), newParty(t, m, nil, redlock.WithClock(behind.clock()))
		behind.jump(-10*time.Millisecond, 0)
		lock := c.lock()
		passes(20 * time.Millisecond)
		m.Master(2).Evict("x")
		slow(m, time.Millisecond)
		go func() { _ = lock.Extend(t.Context()) }()
		passes(1500 * time.Microsecond)
		m.Master(2).Delay(50 * time.Millisecond)
		passes(time.Millisecond) // the extension was confirmed, and the repair has left
		handle, err := lock.Export()
		if err != nil {
			t.Fatal(err)
		}
		slow(m, 0)
		next, err := d.Import(t.Context(), handle)
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		passes(100 * time.Millisecond)
		if id, on := m.Holder("x"); on > 0 {
			t.Errorf("%s, which was handed on, is on %d masters again", id, on)
		}
	})
}

// A hold is not handed off to a call with a shorter TTL: it would keep the name for longer than that if the new holder
// dies.
func TestAHandedOnLockIsNoLongerThanWasAskedFor(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(redlock.WithTTL(30 * time.Second))
		first := w.take(l, "x")
		got := make(chan *redlock.Lock, 1)
		go func() {
			k, _ := l.Lock(w.Context(), "x", redlock.WithTTL(time.Second), redlock.WithExtension(false))
			got <- k
		}()
		after(time.Millisecond)
		w.unlock(first)
		k := <-got
		if k.Remaining() > time.Second {
			t.Errorf("asked for 1 s without extension, has %v", k.Remaining())
		}
		w.unlock(k)
	})
}
