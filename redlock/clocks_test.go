package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Tests of masters and clients with wrong clocks (H176): schedules that the simulator does not draw, because clocks run
// fast, or jump in a state that is rare, and the effects on healthy clients.

// wantOneHolder makes rival try to acquire the name of held, and returns the error. It fails the test if rival gets the
// name while held is valid.
func (w *cluster) wantOneHolder(held *redlock.Lock, rival *redlock.Locker) error {
	w.Helper()
	k, err := rival.TryLock(w.withTimeout(time.Second), held.Name())
	if err == nil && held.Err() == nil {
		w.Errorf("two holders: the locks are valid for %v and %v; tokens %d, %d", held.Remaining(), k.Remaining(),
			held.Token(), k.Token())
	}
	return err
}

// One clock jumps by ten minutes for 10 s, and runs fast meanwhile. A rival polls, and its heartbeats are out of phase:
// the refusals of its attempts do not delay its judgement of that clock.
func TestFastClockIsJudged(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.delay(time.Millisecond, 1, 2, 3, 4)
		holder := w.peer("holder")
		w.wire.block(1)
		rival := w.newLocker(w.pool())
		after(700 * time.Millisecond)
		w.wire.block()
		after(5 * time.Second)
		k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(25*time.Second), redlock.WithExtension(false)))(w)
		after(50 * time.Millisecond)
		w.evict("n", 3, 4)
		after(10 * time.Millisecond)
		holder.kill()
		w.masters.Master(0).SetClock(10*time.Minute, 1.1)
		w.masters.Master(0).Keys() // it expires its keys, as a real server does in the background
		time.AfterFunc(10*time.Second, func() { w.setClocks(0, 0) })
		for ; k.Err() == nil; after(20 * time.Millisecond) {
			_ = w.wantOneHolder(k, rival)
		}
	})
}

// An operator admits the masters while the clock of one is wrong. That takes few messages, and this master votes soon
// after its clock is right.
func TestAdmitWithAWrongClock(t *testing.T) {
	for _, off := range []time.Duration{14 * time.Second, time.Hour, -time.Hour} {
		subtest(t, off.String(), 3, func(w *cluster) {
			w.delay(time.Millisecond)
			w.stop(0)
			w.setClocks(off, 0)
			w.restart(false, 0)
			l, other := w.locker(), w.locker()
			w.wire.clear()
			_ = admin.Of(l).Admit(w.withTimeout(10 * time.Second)) // it may not succeed while the clock is wrong
			atMost(w, len(w.wire.sent("admit")), 100, "calls to admit")
			after(10 * time.Second)
			w.setClocks(0, 0)
			w.votesWithin(2*time.Minute, 0, l, other)
		})
	}
}

// votesWithin waits until master i votes for all Lockers. It fails the test if that takes longer than bound.
func (w *cluster) votesWithin(bound time.Duration, i int, lockers ...*redlock.Locker) {
	w.Helper()
	out := func(l *redlock.Locker) bool { return admin.Of(l).Masters()[i].State != "voting" }
	for start := time.Now(); slices.ContainsFunc(lockers, out); after(time.Second) {
		if time.Since(start) > bound {
			w.Fatalf("master %d does not vote after %v", i, bound)
		}
	}
}

// A client is paused for 20 s together with both of its clocks, so that all masters seem to be ahead, and puts none of
// them into quarantine: neither if its connections are kept, nor if it connects again to one master after the other.
func TestPausedClientQuarantinesNoMaster(t *testing.T) {
	for _, n := range []int{3, 5} {
		for name, gap := range map[string]time.Duration{
			"connected": -1, "connects at once": 0, "5 ms": 5 * time.Millisecond, "500 ms": 500 * time.Millisecond,
		} {
			subtest(t, fmt.Sprint(n, " masters, ", name), n, func(w *cluster) {
				c := newShiftClock(1)
				healthy := w.readyLocker(w.pool(transport.WithClock(c.clock())), redlock.WithClock(c.clock()))
				after(500 * time.Millisecond)
				p := w.peer("paused")
				p.lateBy(func(master int) time.Duration { return time.Duration(master) * gap })
				after(7 * time.Second)
				k := must(healthy.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
				after(time.Second)
				before := w.records()
				w.pause(20 * time.Second)
				c.jump(20*time.Second, 20*time.Second)
				if gap >= 0 {
					p.cut([]int{0, 1, 2, 3, 4}[:n]...)
					p.cluster.wire.block()
				}
				after(20 * time.Second)
				w.wantRecords(before)
				w.noError(k.Err())
			})
		}
	}
}

// H178: correct clocks differ by ten seconds. The clock of the master that forgets is the late one, but behind when the
// quarantine begins; later it is right, and another clock jumps. The quarantine does not end before the lease.
func TestQuarantineEndsByTheEarliestClock(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		holder, rival := w.peer("holder"), w.locker()
		w.noError(rival.WaitReady(w.Context()))
		k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second), redlock.WithExtension(false)))(w)
		after(50 * time.Millisecond) // until all masters have it
		holder.kill()
		w.restart(false, 2)
		after(2 * time.Second)
		w.setClocks(10*time.Second, 1, 2)
		for ; k.Err() == nil; after(20 * time.Millisecond) {
			_ = w.wantOneHolder(k, rival)
		}
	})
}

// H176: a client that starts while it reaches only some of the masters, one of which has a slow clock, puts none of
// them into quarantine.
func TestClientWithFewMastersQuarantinesNone(t *testing.T) {
	for _, c := range []struct {
		n       int
		blocked []int
	}{{5, []int{2, 3, 4}}, {5, []int{3, 4}}, {3, []int{2}}, {5, []int{4}}} {
		subtest(t, fmt.Sprint(c), c.n, func(w *cluster) {
			w.setClocks(-16*time.Second, 0)
			healthy := w.locker()
			k := must(healthy.Lock(w.Context(), "a", redlock.WithTTL(10*time.Second)))(w)
			after(20 * time.Second) // the slow master has lost its vote
			before := w.records()
			w.wire.block(c.blocked...)
			w.newLocker(w.pool())
			for range 200 {
				after(time.Second)
				w.noError(healthy.Healthy(w.Context()))
			}
			w.noError(k.Err())
			w.wantRecords(before)
		})
	}
}

// H176: one client gets the joint file of a change while only one of three next masters runs, or all, with a clock that
// is 16 s behind. The old masters and the clients that use only them are not affected.
func TestJointClientQuarantinesNoOldMaster(t *testing.T) {
	for _, all := range []bool{false, true} {
		subtest(t, fmt.Sprint("all=", all), 8, func(w *cluster) {
			old, next := []int{0, 1, 2, 3, 4}, []int{5, 6, 7}
			w.admittedApart(old, next)
			if !all {
				w.stop(6, 7)
			}
			w.setClocks(-16*time.Second, next...)
			l := w.readyLocker(w.poolOf(old...))
			k := must(l.Lock(w.Context(), "a", redlock.WithTTL(10*time.Second)))(w)
			after(time.Second)
			both := redlock.Configuration{Epoch: 1, Masters: w.urls(old...), Next: w.urls(next...)}
			w.newLocker(w.poolOf(old...), redlock.WithConfiguration(both))
			for range 200 {
				after(time.Second)
				w.noError(l.Healthy(w.Context()))
			}
			w.noError(k.Err())
		})
	}
}

// The clock of one master is 14.8 s ahead, which is allowed ("more than 15 s off the median"). The other masters are
// farther away in the network: 400 ms in each direction.
func TestMasterInsideTheWindowVotes(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.setClocks(14800*time.Millisecond, 2)
		w.each(func(_ int, m *memory.Master) { m.Readmit() })
		w.delay(400*time.Millisecond, 0, 1)
		l := w.locker()
		votes, seconds := 0, 200
		for range seconds {
			after(time.Second)
			if admin.Of(l).Masters()[2].State == "voting" {
				votes++
			}
		}
		if votes < seconds-5 {
			w.Errorf("the master voted in %d of %d seconds", votes, seconds)
		}
	})
}

// The time that is left of a quarantine is that until its end, which the earliest of the correct clocks decides.
func TestTimeLeftWithAClockThatIsBehind(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.setClocks(-10*time.Second, 4)
		w.each(func(_ int, m *memory.Master) { m.Readmit() })
		l := w.locker()
		w.restart(false, 0)
		after(5 * time.Second)
		is, began := admin.Of(l).Masters()[0], time.Now()
		equal(w, is.State, redlockinfo.StateQuarantine, "after the restart")
		w.votesWithin(2*time.Minute, 0, l)
		if took := time.Since(began); took < is.Left || took > is.Left+3*time.Second {
			w.Errorf("the quarantine ended after %v, but %v were left", took, is.Left)
		}
	})
}

// A take acquires a lock of one name.
type take func(context.Context, ...redlock.LockOption) (*redlock.Lock, error)

// takes returns how l acquires name as each kind of lock: with a wait, and without.
func takes(l *redlock.Locker, name string) map[string][2]take {
	one, rw := l.Semaphore(name, 1), l.RWLock(name)
	return map[string][2]take{
		"plain": {func(ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
			return l.Lock(ctx, name, opts...)
		}, func(ctx context.Context, opts ...redlock.LockOption) (*redlock.Lock, error) {
			return l.TryLock(ctx, name, opts...)
		}},
		"slot": {one.Acquire, one.TryAcquire}, "writer": {rw.Lock, rw.TryLock},
		"reader": {rw.RLock, rw.TryLock}, // a reader excludes writers
	}
}

// H180: all clocks were an hour ahead while a name was used, and have been set right. So the fence of the name is
// ahead, and so are the ballots that follow it. Then the clock of one master jumps by 12 s. No client gets the name
// before the lock of its holder, which is on exactly three of five masters, has ended; afterwards one does.
func TestOneClockThatJumpsAfterAllWereAhead(t *testing.T) {
	for _, kind := range []string{"plain", "slot", "writer", "reader"} {
		subtest(t, kind, 5, func(w *cluster) {
			w.setClocks(time.Hour)
			l := w.locker()
			lock, other := takes(l, "x")[kind][0], takes(w.locker(), "x")[kind]
			w.noError(must(other[0](w.Context()))(w).Unlock(w.Context()))
			w.setClocks(0)
			after(2 * time.Minute)
			w.wantStates(l, "vvvvv")
			k := must(lock(w.Context(), redlock.WithTTL(8*time.Second), redlock.WithExtension(false)))(w)
			after(50 * time.Millisecond)
			w.evict("x", 3, 4)
			w.setClocks(12*time.Second, 0)
			for ; k.Err() == nil; after(100 * time.Millisecond) {
				if b, err := other[1](w.Context()); err == nil { // now, or the first lock has ended meanwhile
					if k.Err() == nil {
						w.Errorf("two holders, with %v left of the first; tokens %d, %d", k.Remaining(), k.Token(), b.Token())
					}
					w.noError(b.Unlock(w.Context()))
					return
				}
			}
			after(time.Second)
			w.noError(must(other[1](w.Context()))(w).Unlock(w.Context()))
		})
	}
}

// H163: a lock is on exactly three of five masters, and the clock of one of these jumps by 12 s. The name is not free.
// When the lock has expired, it is.
func TestOneClockThatJumpsFreesNoName(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		l, other := w.locker(), w.locker()
		held := map[string]*redlock.Lock{}
		for _, kind := range []string{"plain", "slot", "writer", "reader"} {
			lock := takes(l, kind)[kind][0]
			held[kind] = must(lock(w.Context(), redlock.WithTTL(8*time.Second), redlock.WithExtension(false)))(w)
		}
		after(50 * time.Millisecond)
		for name := range held {
			w.evict(name, 3, 4)
		}
		w.setClocks(12*time.Second, 0)
		for range 2 {
			for name, k := range held {
				i := must(other.Inspect(w.Context(), name))(w)
				shown := i.ID != "" || i.ReaderCount > 0 || slices.ContainsFunc(i.Slots, func(s redlockinfo.Inspection) bool {
					return s.ID != ""
				})
				if holds := k.Err() == nil; i.Free == holds || shown != holds {
					t.Errorf("the inspection of %q, whose lock has the error %v, is %+v", name, k.Err(), i)
				}
			}
			after(20 * time.Second)
		}
	})
}

// A client has been paused for ten minutes, and acquires before it has read the clocks again. Its clock is fast by
// 100 ppm, so its estimate of the masters' time is late by 60 ms.
func TestAcquireAfterALongPause(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		fast := newShiftClock(1.0001).clock()
		rival := w.readyLocker(w.pool(transport.WithClock(fast), transport.WithHeartbeat(time.Hour)), redlock.WithClock(fast))
		holder := w.locker()
		after(10 * time.Minute)
		k := must(holder.Lock(w.Context(), "n", redlock.WithTTL(time.Second), redlock.WithExtension(false)))(w)
		after(10 * time.Millisecond)
		w.evict("n", 2)
		w.setClocks(14*time.Second, 0)
		after(k.Remaining() - 20*time.Millisecond)
		if _, err := rival.TryLock(w.Context(), "n"); err == nil && k.Err() == nil {
			w.Errorf("two clients hold the name; the first lock is valid for %v", k.Remaining())
		}
	})
}
