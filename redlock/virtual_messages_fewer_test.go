package redlock_test

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// A caller that is refused by the masters that decide sends no roll-back to those that have not answered yet, unless
// one of them grants the lock after all.
func TestVirtualARefusedAttemptIsRolledBackOnlyWhereItIsGranted(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		w.delay(20*time.Millisecond, 3, 4)
		refused := func(releases, on int) {
			w.Helper()
			before := len(b.world.wire.sent("release"))
			_, err := b.Locker.TryLock(w.Context(), "n")
			w.isError(err, redlock.ErrHeld)
			after(100 * time.Millisecond)
			if n := len(b.world.wire.sent("release")) - before; n != releases {
				w.Errorf("%d roll-backs, want %d", n, releases)
			}
			if n := w.on("n"); n != on {
				w.Errorf("on %d masters, want %d", n, on)
			}
		}
		refused(0, 5)
		w.replay(sent{master: 4, args: []string{"DEL", defaultPrefix.Lock("n")}})
		refused(1, 4)
		w.unlock(k)
		w.delay(0)
		w.nothingLeft("n")
	})
}

// A wake-up that comes while its call has the lock is not answered: the release takes the waiter out of the queues.
func TestVirtualAWakeUpOfTheHolderIsNotAnswered(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		wakeUps := w.hintsFor(b, "n")
		w.unlock(k)
		k, _ = c.gets(5 * time.Second)
		after(100 * time.Millisecond)
		before := len(b.world.wire.sent("release"))
		w.publish(b, wakeUps)
		after(100 * time.Millisecond)
		if n := len(b.world.wire.sent("release")) - before; n != 0 {
			w.Errorf("%d messages", n)
		}
		w.unlock(k)
		w.nothingLeft("n")
	})
}
