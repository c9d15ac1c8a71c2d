package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
)

// Tests of masters and clients with wrong clocks (H176).

func (w *cluster) recordList() (list []string) {
	w.each(func(_ int, m *memory.Master) {
		text, _ := m.Get(defaultPrefix.Admission())
		list = append(list, text)
	})
	return list
}

// H176: one client's virtual machine is paused for 20 s (both clocks stop). All masters are healthy. No master may lose
// its vote.
func TestPausedClientQuarantinesNoMaster(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, n, func(w *cluster) {
				c := newShiftClock(1)
				healthy := w.readyLocker(w.pool(transport.WithClock(c.clock())), redlock.WithClock(c.clock()))
				after(500 * time.Millisecond)
				w.locker() // the client whose machine is paused
				k := must(healthy.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
				after(time.Second)
				before := w.recordList()
				// The machine is paused for 20 s: 20 s pass for the masters and for the other client.
				w.pause(20 * time.Second)
				c.jump(20*time.Second, 20*time.Second)
				after(10 * time.Second)
				for i, text := range w.recordList() {
					if text != before[i] {
						t.Errorf("the record of master %d has changed to %s", i, text)
					}
				}
				w.must(k.Err())
			})
		})
	}
}

// H176: a client that starts while it reaches only some of the masters, one of which has a slow clock.
func TestClientWithFewMastersQuarantinesNone(t *testing.T) {
	for _, c := range []struct {
		n    int
		slow int
		up   []int
	}{{5, 0, []int{0, 1}}, {5, 0, []int{0, 1, 2}}, {3, 0, []int{0, 1}}, {5, 0, []int{0, 1, 2, 3}}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			virtual(t, c.n, func(w *cluster) {
				w.masters.Master(c.slow).SetClock(-16*time.Second, 1)
				healthy := w.locker()
				k := must(healthy.Lock(w.Context(), "a", redlock.WithTTL(10*time.Second)))(w)
				after(20 * time.Second) // the slow master has lost its vote
				before := w.recordList()
				var not []int
				for i := range c.n {
					if !slices.Contains(c.up, i) {
						not = append(not, i)
					}
				}
				w.wire.block(not...)
				w.newLocker(w.pool())
				for range 200 {
					after(time.Second)
					w.must(healthy.Healthy(w.Context()))
				}
				w.must(k.Err())
				for i, text := range w.recordList() {
					if text != before[i] {
						t.Errorf("the record of master %d has changed to %s", i, text)
					}
				}
			})
		})
	}
}

// H176: one client gets the joint file of a change while only one of three next masters runs, whose clock is 16 s
// behind. The old masters and the clients that use only them must not be affected.
func TestJointClientQuarantinesNoOldMaster(t *testing.T) {
	for _, c := range []struct {
		slow time.Duration
		all  bool // whether all next masters run, with this clock
	}{{0, false}, {-16 * time.Second, false}, {-16 * time.Second, true}} {
		slow := c.slow
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			virtual(t, 8, func(w *cluster) {
				old, next := []int{0, 1, 2, 3, 4}, []int{5, 6, 7}
				w.admittedApart(old, next)
				if !c.all {
					w.stop(6, 7)
				}
				w.each(func(_ int, m *memory.Master) { m.SetClock(slow, 1) }, next...)
				l := w.readyLocker(w.poolOf(old...))
				k := must(l.Lock(w.Context(), "a", redlock.WithTTL(10*time.Second)))(w)
				after(time.Second)
				both := redlock.Configuration{Epoch: 1, Masters: w.urls(old...), Next: w.urls(next...)}
				w.newLocker(w.poolOf(old...), redlock.WithConfiguration(both))
				for range 200 {
					after(time.Second)
					w.must(l.Healthy(w.Context()))
				}
				w.must(k.Err())
			})
		})
	}
}

// H176 ("an hour forward, until the clients have seen it"), with a master whose clock was ahead when its record was
// written: by 10 s, which is allowed, or, like all masters, by an hour.
func TestJumpAfterRecordFromTheFuture(t *testing.T) {
	for name, c := range map[string]struct{ one, all time.Duration }{
		"right": {0, 0}, "one master 10 s ahead": {10 * time.Second, 0}, "all an hour ahead": {0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(w *cluster) {
				w.each(func(_ int, m *memory.Master) { m.SetClock(c.all, 1) })
				w.masters.Master(0).SetClock(c.all+c.one, 1)
				w.each(func(_ int, m *memory.Master) { m.Readmit() })
				w.each(func(_ int, m *memory.Master) { m.SetClock(0, 1) })
				w.masters.Master(0).SetClock(c.one, 1)
				holder, rival := w.locker(), w.locker()
				w.must(rival.WaitReady(w.Context()))
				after(time.Second)
				k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(8*time.Second), redlock.WithExtension(false)))(w)
				after(50 * time.Millisecond)
				w.each(func(_ int, m *memory.Master) { m.Evict("n") }, 3, 4)
				w.masters.Master(0).SetClock(10*time.Minute, 1)
				w.masters.Master(0).Keys() // like the active expiry of a real server
				wrong := time.Now()
				for i := 0; k.Err() == nil; i++ {
					if time.Since(wrong) > 4500*time.Millisecond {
						w.masters.Master(0).SetClock(c.one, 1)
					}
					b, err := rival.TryLock(w.Context(), "n")
					if err == nil {
						if k.Err() == nil {
							t.Errorf(
								"%d: there are two holders, with %v left of the first; tokens %d %d",
								i,
								k.Remaining(),
								k.Token(),
								b.Token(),
							)
						}
						w.noError(b.Unlock(w.Context()))
						return
					}
					if !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) {
						t.Error(err)
					}
					after(100 * time.Millisecond)
				}
			})
		})
	}
}

// All clocks are an hour ahead, and that of one master another minute. Then all clocks are set right. The master must
// vote again after one quarantine.
func TestClockAheadBeforeAllAreSetBack(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.each(func(_ int, m *memory.Master) { m.SetClock(time.Hour, 1) })
		w.each(func(_ int, m *memory.Master) { m.Readmit() })
		l, other := w.locker(), w.locker()
		after(5 * time.Second)
		w.masters.Master(0).SetClock(time.Hour+time.Minute, 1)
		after(5 * time.Second)
		w.each(func(_ int, m *memory.Master) { m.SetClock(0, 1) })
		start := time.Now()
		for time.Since(start) < 2*time.Hour && (l.Masters()[0].State != "voting" || other.Masters()[0].State != "voting") {
			after(time.Second)
		}
		w.wantSince(start, 2*time.Minute)
	})
}

// The clock of one master is 14.8 s ahead, which is allowed ("more than 15 s off the median"). The other masters are
// farther away in the network: 400 ms in each direction.
func TestMasterInsideTheWindowVotes(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.masters.Master(2).SetClock(14800*time.Millisecond, 1)
		w.each(func(_ int, m *memory.Master) { m.Readmit() })
		w.delay(400*time.Millisecond, 0, 1)
		l := w.locker()
		votes, seconds := 0, 200
		for range seconds {
			after(time.Second)
			if l.Masters()[2].State == "voting" {
				votes++
			}
		}
		if votes < seconds-5 {
			t.Errorf("the master voted in %d of %d seconds", votes, seconds)
		}
	})
}

// The masters' clocks were an hour ahead, and have been set right before any of these locks was acquired. From then on
// a name must not stay locked for longer than its TTL or its minimum hold.
func TestFenceAheadDoesNotKeepName(t *testing.T) {
	for _, kind := range []string{"min hold", "dead holder", "value of ttl"} {
		t.Run(kind, func(t *testing.T) {
			virtual(t, 3, func(w *cluster) {
				for i := range 3 {
					w.masters.Master(i).SetClock(time.Hour, 1)
				}
				l := w.locker()
				w.noError(l.Do(w.Context(), "cron", nothing))
				for i := range 3 {
					w.masters.Master(i).SetClock(0, 1)
				}
				after(20 * time.Second)
				other := w.locker()
				switch kind {
				case "min hold":
					w.noError(l.Do(w.Context(), "cron", nothing, redlock.WithMinHold(5*time.Second)))
				case "dead holder":
					dead := w.locker()
					must(dead.Lock(w.Context(), "cron", redlock.WithTTL(5*time.Second), redlock.WithExtension(false)))(w)
					after(6 * time.Second)
				default:
					k := must(l.Lock(w.Context(), "cron", redlock.WithTTL(5*time.Second)))(w)
					w.noError(k.Unlock(w.Context()))
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(w.Context(), 2*time.Hour)
				defer cancel()
				k, err := other.Lock(ctx, "cron")
				w.must(err)
				w.wantSince(start, 30*time.Second)
				w.noError(k.Unlock(w.Context()))
			})
		})
	}
}

// "One wrong clock, the master's or the client's, ends no lease early" (scripts.Term). Two of five masters are down,
// and the clock of one of the others jumps by 12 s, which is allowed.
func TestOneWrongClockEndsNoLease(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.stop(3, 4)
		l, rival := w.locker(), w.locker()
		k := must(l.Lock(w.Context(), "x", redlock.WithTTL(8*time.Second)))(w)
		after(time.Second)
		w.masters.Master(0).SetClock(12*time.Second, 1)
		w.isError(errOf(rival.TryLock(w.Context(), "x")), redlock.ErrHeld)
		after(20 * time.Second)
		if k.Err() != nil {
			t.Errorf("the lock was lost: %v", k.Err())
		}
	})
}

// The same, with the restart of one master after the other replaced by a writer of an RWLock.
func TestOneWrongClockEndsNoShare(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.stop(3, 4)
		l := w.locker()
		k := must(l.RWLock("x").Lock(w.Context(), redlock.WithTTL(8*time.Second)))(w)
		after(time.Second)
		w.masters.Master(0).SetClock(12*time.Second, 1)
		after(20 * time.Second)
		if k.Err() != nil {
			t.Errorf("the lock was lost: %v", k.Err())
		}
	})
}

// The same situation as H176 (TestOneClockThatJumps, "forward within the window"), for a writer of an RWLock: the
// writer is on exactly three of five masters, and the clock of one of these jumps by 12 s. Two other writers wait, and
// one of them gives up.
func TestOneClockThatJumpsEndsNoShare(t *testing.T) {
	for _, gives := range []bool{false, true} {
		name := "nobody gives up"
		if gives {
			name = "a waiter gives up"
		}
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(w *cluster) {
				first, second, third := w.locker(), w.locker(), w.locker()
				k, err := first.RWLock("x").Lock(w.Context(), redlock.WithTTL(8*time.Second), redlock.WithExtension(false))
				w.must(err)
				after(50 * time.Millisecond)
				w.each(func(_ int, m *memory.Master) { m.Evict("x") }, 3, 4) // as in H176: the lock is on three masters
				w.masters.Master(0).SetClock(12*time.Second, 1)
				got := make(chan *redlock.Lock, 1)
				go func() {
					b, err := second.RWLock("x").Lock(w.Context())
					if err != nil {
						t.Error(err)
					}
					got <- b
				}()
				after(100 * time.Millisecond)
				if gives {
					ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
					_, _ = third.RWLock("x").Lock(ctx)
					cancel()
				}
				b := <-got
				if k.Err() == nil {
					t.Errorf("there are two writers, with %v left of the first; tokens %d, %d", k.Remaining(), k.Token(), b.Token())
				}
				w.noError(b.Unlock(w.Context()))
			})
		})
	}
}
