package redlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// The bars of a name are ahead of the time by which a waiter reckons, as where clocks differ, and that of one master is
// further ahead: what it says has the waiter forget how far it has gone itself. It asks by a larger ballot each time all the
// same. Else a hold that was written in answer to one ask, and not heard of, would be confirmed by the next as if it had been
// written then, and be believed in when the masters have long given it up.
func TestVirtualEachAskOfAHoldHasALargerBallot(t *testing.T) {
	virtual(t, 5, func(w *world) {
		const ttl = 6 * time.Second
		holder, b, other := w.peer("holder"), w.peer("b"), w.peer("other")
		bar := time.Now().Add(14 * time.Second).UnixMicro()
		w.each(func(i int, m *redlocktest.Master) { m.Set(defaultPrefix.Bar("n"), fmt.Sprint(bar+int64(i/4)*1000)) })
		k := w.taken(holder.Locker, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		w.delay(time.Millisecond, 0, 1, 2, 3) // the last is heard before the round is decided
		c := w.call(w.Context(), b.Locker, "n", redlock.WithTTL(ttl), redlock.WithExtension(false))
		after(7 * time.Second) // it looks rarely by now
		b.hears(func(int, scripts.Notice, string) []string { return nil })
		asks := len(b.world.wire.sent("acquire"))
		for range 10000 {
			if after(time.Millisecond); len(b.world.wire.sent("acquire")) > asks {
				break
			}
		}
		after(10 * time.Millisecond)
		w.unlock(k)
		if n := w.on("n"); n < 3 || c.over() {
			w.Fatalf("it was written on %d masters, so this shows nothing", n)
		}
		next, _ := c.gets(20 * time.Second)
		var left []time.Duration
		w.each(func(_ int, m *redlocktest.Master) {
			_, _, l := m.Holds("n")
			left = append(left, l)
		})
		slices.Sort(left)
		if left[2] < next.Remaining() {
			w.Errorf("it is believed in for %v, and the masters have it for %v", next.Remaining(), left)
		}
		last := map[string]string{}
		for _, s := range b.world.wire.sent("acquire") {
			hold, ballot := fmt.Sprint(s.master, s.hold()), s.args[slices.Index(s.args, s.hold())+2]
			if ballot <= last[hold] {
				w.Errorf("ballot %s after %s", ballot, last[hold])
			}
			last[hold] = ballot
		}
		ctx, cancel := contextFor(w, 5*time.Second)
		defer cancel()
		if _, err := other.Lock(ctx, "n"); err == nil && next.Err() == nil {
			w.Errorf("two holders, the first for another %v", next.Remaining())
		}
		b.tampering(nil)
		w.delay(0)
		_ = next.Unlock(w.Context())
	})
}
