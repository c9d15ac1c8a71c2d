package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// Tests of clocks that leap while a client does not expect it (H176).

// wantNoRival fails the test if rival acquires the lock "n" while k is valid. It tries in the interval every until k
// ends, but at most for 30 s. After the time right, the clocks of masters are set right.
func (w *cluster) wantNoRival(k *redlock.Lock, rival *redlock.Locker, every, right time.Duration, masters ...int) {
	w.Helper()
	start, back := time.Now(), false
	for k.Err() == nil && time.Since(start) < 30*time.Second {
		if !back && time.Since(start) > right {
			w.each(func(_ int, m *memory.Master) { m.SetClock(0, 1) }, masters...)
			back = true
		}
		b, err := rival.TryLock(w.Context(), "n", redlock.WithTTL(time.Second))
		switch {
		case err == nil:
			if k.Err() == nil {
				w.Errorf("%v: two holders, with %v left of the first; tokens %d %d",
					time.Since(start), k.Remaining(), k.Token(), b.Token())
			}
			return
		case !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum):
			w.Error(err)
		}
		after(every)
	}
}

// One wrong clock jumps by ten minutes for 10 s, and runs fast meanwhile. The rival polls; its heartbeats are out of
// phase.
func TestFastClockIsJudged(t *testing.T) {
	for _, rate := range []float64{1, 1.1} {
		for _, phased := range []bool{false, true} {
			t.Run(fmt.Sprint(rate, phased), func(t *testing.T) {
				virtual(t, 5, func(w *cluster) {
					w.delay(time.Millisecond, 1, 2, 3, 4)
					holder := w.peer("holder")
					if phased {
						w.wire.block(1)
					}
					rival := w.newLocker(w.pool())
					after(700 * time.Millisecond)
					w.wire.block()
					after(5 * time.Second)
					k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(25*time.Second), redlock.WithExtension(false)))(w)
					after(50 * time.Millisecond)
					w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
					after(10 * time.Millisecond)
					holder.kill()
					w.masters.Master(0).SetClock(10*time.Minute, rate)
					w.masters.Master(0).Keys()
					w.wantNoRival(k, rival, 20*time.Millisecond, 10*time.Second, 0)
				})
			})
		}
	}
}

// A leap of the clock during a quarantine, after a repair.
func TestLeapDuringQuarantine(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		holder, rival := w.locker(), w.locker()
		w.must(rival.WaitReady(w.Context()))
		w.restart(false, 0)
		after(11500 * time.Millisecond)
		k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		after(10100 * time.Millisecond) // extended, repaired on 0
		w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
		w.masters.Master(0).SetClock(10*time.Minute, 1)
		w.masters.Master(0).Keys()
		w.wantNoRival(k, rival, 20*time.Millisecond, 7*time.Second, 0)
	})
}

// Two clocks jump while the client doubts them, and are right again when the doubt is over.
func TestLeapDuringDoubt(t *testing.T) {
	for _, jump := range []time.Duration{0, 10 * time.Minute} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			virtual(t, 7, func(w *cluster) {
				w.masters.Master(6).SetClock(-16*time.Second, 1)
				holder := w.peer("holder")
				after(5 * time.Second)
				w.wire.block(2, 3, 4, 5)
				rival := w.newLocker(w.pool())
				after(10 * time.Second)
				k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(29*time.Second), redlock.WithExtension(false)))(w)
				after(10 * time.Millisecond)
				w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 4, 5, 6)
				holder.kill()
				if jump > 0 {
					w.each(func(_ int, m *memory.Master) { m.SetClock(jump, 1); m.Keys() }, 0, 1)
				}
				after(8 * time.Second)
				w.each(func(_ int, m *memory.Master) { m.SetClock(0, 1) }, 0, 1)
				after(4 * time.Second)
				w.wire.block()
				w.wantNoRival(k, rival, 100*time.Millisecond, time.Hour)
			})
		})
	}
}

// An operator admits the masters while the clock of one is an hour ahead.
func TestAdmitWithAWrongClock(t *testing.T) {
	for _, off := range []time.Duration{0, 14 * time.Second, time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			virtual(t, 3, func(w *cluster) {
				w.delay(time.Millisecond)
				w.stop(0)
				w.masters.Master(0).SetClock(off, 1)
				w.restart(false, 0)
				l, other := w.locker(), w.locker()
				w.wire.clear()
				start := time.Now()
				_ = admin.Of(l).Admit(w.withTimeout(10 * time.Second)) // it may not succeed while the clock is wrong
				n := 0
				for _, s := range w.wire.sent() {
					if s.script() == "admit" {
						n++
					}
				}
				if n > 100 {
					t.Errorf("%d calls in %v", n, time.Since(start))
				}
				after(10 * time.Second)
				w.masters.Master(0).SetClock(0, 1)
				start = time.Now()
				for time.Since(start) < time.Hour && (l.Masters()[0].State != "voting" || other.Masters()[0].State != "voting") {
					after(time.Second)
				}
				w.wantSince(start, 2*time.Minute)
			})
		})
	}
}

// A client is paused together with its clocks, and then all its connections are lost. It connects to the masters one
// after the other, and puts none of them into quarantine.
func TestPausedClientThatReconnects(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, gap := range []time.Duration{0, 5 * time.Millisecond, 500 * time.Millisecond} {
			t.Run(fmt.Sprint(n, gap), func(t *testing.T) {
				virtual(t, n, func(w *cluster) {
					c := newShiftClock(1)
					healthy := w.readyLocker(w.pool(transport.WithClock(c.clock())), redlock.WithClock(c.clock()))
					after(500 * time.Millisecond)
					p := w.peer("paused")
					p.lateBy(func(master int) time.Duration { return time.Duration(master) * gap })
					after(7 * time.Second)
					k := must(healthy.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
					after(time.Second)
					before := w.recordList()
					w.pause(20 * time.Second)
					c.jump(20*time.Second, 20*time.Second)
					all := []int{0, 1, 2, 3, 4}[:n]
					p.cut(all...)
					p.cluster.wire.block()
					after(20 * time.Second)
					for i, text := range w.recordList() {
						if text != before[i] {
							t.Errorf("the record of master %d has changed: %s", i, text[strings.Index(text, "state"):])
						}
					}
					w.must(k.Err())
				})
			})
		}
	}
}

// A clock shows a time after 2^53 us (in 2255), for ten seconds. The second: another clock jumps meanwhile, and this
// one stays wrong.
func TestClockThatBallotsCannotFollow(t *testing.T) {
	for _, c := range []struct{ first, other time.Duration }{
		{time.Hour, 0}, {290 * 365 * 24 * time.Hour, 0}, {time.Hour, 290 * 365 * 24 * time.Hour},
		{time.Hour, -40 * 365 * 24 * time.Hour},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			n, jumps := 5, []int{0}
			if c.other != 0 {
				n, jumps = 7, []int{0, 1} // the lease is on 0, 1, 3, 4; the clock of 2 is unusable
			}
			virtual(t, n, func(w *cluster) {
				holder, rival := w.locker(), w.locker()
				after(5 * time.Second)
				w.masters.Master(2).SetClock(c.other, 1)
				after(time.Second)
				k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(25*time.Second), redlock.WithExtension(false)))(w)
				after(50 * time.Millisecond)
				w.each(func(_ int, m *memory.Master) { m.Evict("n") }, n-2, n-1)
				w.each(func(_ int, m *memory.Master) { m.SetClock(c.first, 1); m.Keys() }, jumps...)
				w.wantNoRival(k, rival, 100*time.Millisecond, 10*time.Second, jumps...)
			})
		})
	}
}

// H178: correct clocks differ by ten seconds. The clock of the master that forgets is the late one, but behind when the
// quarantine begins; later it is right, and another clock jumps. The quarantine does not end before the lease.
func TestQuarantineEndsByTheEarliestClock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder, rival := w.peer("holder"), w.locker()
		w.must(rival.WaitReady(w.Context()))
		k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second), redlock.WithExtension(false)))(w)
		after(50 * time.Millisecond) // until all masters have it
		holder.kill()
		w.restart(false, 2)
		after(2 * time.Second)
		w.masters.Master(1).SetClock(10*time.Second, 1)
		w.masters.Master(2).SetClock(10*time.Second, 1)
		w.wantNoRival(k, rival, 20*time.Millisecond, time.Minute)
	})
}
