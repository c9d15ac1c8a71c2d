package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// H92: a release over the connection of its acquire carries no ballot, and raises no fence. Otherwise a near client
// that tries all the time would keep the ballots of a distant one stale forever.
func TestVirtualReleaseOnSameConnectionRaisesNoFence(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("n", time.Hour)
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
		w.delay(100 * time.Microsecond)
		near := w.peer("near")
		for range 50 { // each is granted on two, and rolled back there
			_, err := near.TryLock(w.Context(), "n")
			w.isError(err, redlock.ErrHeld)
			after(10 * time.Millisecond)
		}
		releases := near.world.wire.sent("release")
		for _, s := range releases {
			if s.ballot() != "0" || s.master < 3 {
				w.Fatalf("a release on master %d with the ballot %s", s.master, s.ballot())
			}
		}
		if len(releases) != 2*50 {
			w.Errorf("%d releases", len(releases))
		}
		w.each(func(i int, m *memory.Master) {
			if fence, there := m.Get(defaultPrefix.Fence("n")); there {
				w.Errorf("master %d, which has refused all, has the fence %s", i, fence)
			}
		}, 0, 1, 2)
	})
}

// H02, H94: a pending release carries the ballot, since the acquire may still arrive, and names no waiter: a late
// release would restore a waiter that has left, or remove one that has tried again.
func TestVirtualAnOwedReleaseNamesNoWaiter(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("n", time.Hour)
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
		w.delay(100 * time.Microsecond)
		p := w.peer("p")
		first := w.call(w.Context(), p.Locker, "other") // the inbox is open, so the first acquire has a ticket
		k, _ := first.gets(time.Second)
		w.masters.Take("queued", time.Hour)
		ctx, cancel := contextFor(w, time.Hour)
		defer cancel()
		waiting := w.call(ctx, p.Locker, "queued")
		after(time.Second)
		p.world.wire.clear()
		w.masters.Master(3).DropReplies(1) // it grants, the reply is lost, and the connection ends
		c := w.call(w.Context(), p.Locker, "n")
		after(3 * time.Second)
		owed := 0
		for _, s := range p.world.wire.sent("release") {
			if s.ballot() == "0" {
				continue
			}
			owed++
			if s.waiter() != "" || s.master != 3 {
				w.Errorf("the release on master %d carries the ballot %s and names the waiter %q", s.master, s.ballot(), s.waiter())
			}
			w.replay(s) // and once more, later still
		}
		if owed == 0 {
			w.Error("no release was pending, so the test proves nothing")
		}
		for i := range 5 {
			if n := len(w.waiters(i, "n")); n != 1 {
				w.Errorf("%d waiters on master %d", n, i)
			}
		}
		w.masters.Free("n")
		next, _ := c.gets(time.Second)
		cancel()
		_ = waiting.fails(time.Second)
		w.masters.Lose("queued")
		w.delay(0)
		w.unlock(next)
		w.unlock(k)
		w.nothingLeft("n", "other", "queued")
	})
}

// H90: masters restart one after the other, each with its data, and the lock is confirmed or repaired in between. Only
// restarts since the last confirmation count, so the lock survives any number of them, and also a restart of all five
// durable masters at once.
func TestVirtualIdentitiesCountSinceTheLastConfirmation(t *testing.T) {
	bubble(t, 5, func(w *world) {
		k := w.take(w.locker(), "a")
		for n := range 15 {
			w.masters.Master(n % 5).Restart(true)
			after(6 * time.Second) // an extension; the quarantine continues
			if on, _ := k.HeldOn(); k.Err() != nil || on != 5 {
				w.Fatalf("restart %d: on %d masters, %v", n, on, k.Err())
			}
		}
	})
	bubble(t, 5, func(w *world) {
		l := w.locker(redlock.WithDurableMasters())
		after(5 * time.Second) // the records say so
		k := w.take(l, "a")
		w.each(func(_ int, m *memory.Master) { m.Restart(true) })
		after(6 * time.Second)
		if on, _ := k.HeldOn(); k.Err() != nil || on != 5 {
			w.Errorf("durable masters: on %d, %v", on, k.Err())
		}
	})
}

// H75: three of five masters restart empty at one instant. The lock ends as soon as the restarts are detected, not when
// its validity expires.
func TestVirtualALockEndsWhenAMajorityHasForgottenIt(t *testing.T) {
	virtual(t, 5, func(w *world) {
		k := w.take(w.locker(), "a")
		ctx := k.Context(w.Context())
		after(time.Second)
		w.stop(0, 2, 4)
		w.each(func(_ int, m *memory.Master) { m.Restart(false) }, 0, 2, 4)
		took, cause := w.ended(ctx, 10*time.Second)
		w.isError(cause, redlock.ErrLost)
		if took > time.Second {
			w.Errorf("it took %v", took)
		}
	})
}
