package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// H51: a quorum is one of the configured masters, however few are connected; two Lockers that see different masters
// never both win.
func TestVirtualTheQuorumIsOfTheConfiguredMasters(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.wire.block(2, 3, 4)
		few := w.locker()
		w.wire.block(0, 1)
		many := w.locker()
		_, err := few.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		var e *redlock.LockError
		if !asError(err, &e) || e.N != 5 || e.Quorum != 3 {
			w.Errorf("%#v", e)
		}
		k := w.take(many, "a")
		synctest.Wait()
		if on, n := k.HeldOn(); on != 3 || n != 5 {
			w.Errorf("held on %d of %d", on, n)
		}
		_, err = few.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum)
	})
}

// restartEmpty is the story of H53: a hold stands on three of five masters, one of the three restarts empty, and a
// second program asks as long as the first one's validity lasts. It reports whether both held the name at once.
func restartEmpty(w *world, opts ...redlock.Option) (twice bool) {
	opts = append(opts, redlock.WithExtension(false))
	w.wire.block(3, 4)
	first := w.locker(opts...)
	w.wire.block()
	second := w.locker(opts...)
	k := w.take(first, "a", redlock.WithTTL(30*time.Second))
	synctest.Wait()
	if on := w.on("a"); on != 3 {
		w.Fatalf("held on %d", on)
	}
	w.masters.Master(2).Restart(false)
	for k.Err() == nil {
		after(100 * time.Millisecond)
		if other, err := second.TryLock(w.Context(), "a"); err == nil {
			if k.Err() == nil {
				twice = true
			}
			_ = other.Unlock(w.Context())
		}
	}
	return twice
}

// H53: with the guard a master that restarts empty does not give a held lock away, and without it it does.
func TestVirtualAMasterThatRestartsEmptyDoesNotVote(t *testing.T) {
	virtual(t, 5, func(w *world) {
		if restartEmpty(w) {
			w.Error("two holders at once, with the guard on")
		}
	})
}

// H53: the same without the guard shows what it is for.
func TestVirtualWithoutTheGuardThereAreTwoHolders(t *testing.T) {
	virtual(t, 5, func(w *world) {
		if !restartEmpty(w, redlock.WithoutGuard()) {
			w.Error("the violation was not found: this test cannot fail when the guard is broken")
		}
	})
}

// H55: a re-entry keeps the token, each later hold has a larger one: also after the fences have expired, and after the
// masters have forgotten them.
func TestVirtualTokensGrowWhateverTheMastersForget(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		last := int64(0)
		next := func(when string) {
			w.Helper()
			k := w.take(l, "a")
			if k.Token() <= last || k.Token() >= scripts.MaxBallot {
				w.Errorf("%s: token %d after %d", when, k.Token(), last)
			}
			last = k.Token()
			inner := w.takeWith(l, k.Context(w.Context()), "a")
			if inner.Token() != last || k.Token() != last {
				w.Errorf("%s: the re-entry has token %d, the hold %d, before %d", when, inner.Token(), k.Token(), last)
			}
			_, _ = inner.Unlock(w.Context()), k.Unlock(w.Context())
		}
		for range 50 { // at one instant, all of them
			next("at once")
		}
		after(scripts.FenceKept + time.Second)
		w.each(func(i int, m *redlocktest.Master) {
			if fence, ok := m.Get(defaultPrefix.Fence("a")); ok {
				w.Errorf("master %d still has the fence %s", i, fence)
			}
		})
		next("after the fences have expired")
		w.each(func(_ int, m *redlocktest.Master) { m.Flush() })
		next("after the masters were flushed")
		w.each(func(_ int, m *redlocktest.Master) { m.Restart(false) })
		next("after the masters restarted empty")
		w.each(func(i int, m *redlocktest.Master) { m.SetClock(time.Duration(i-1)*10*time.Second, 1) })
		next("with masters' clocks that differ")
		l = w.locker(redlock.WithClock(newShiftClock(1).clock()))
		next("by another client")
	})
}

// H55: clients whose wall clocks are years apart give growing tokens.
func TestVirtualTokensDoNotDependOnClientsClocks(t *testing.T) {
	virtual(t, 3, func(w *world) {
		var lockers []*redlock.Locker
		for n := range 3 {
			c := newShiftClock(1)
			c.jump(time.Duration(n)*time.Hour, time.Duration(n-1)*20000*time.Hour)
			lockers = append(lockers, w.locker(redlock.WithClock(c.clock())))
		}
		last := int64(0)
		for n := range 30 {
			k := w.take(lockers[n*7%3], "a")
			if k.Token() <= last {
				w.Errorf("token %d after %d", k.Token(), last)
			}
			last = k.Token()
			_ = k.Unlock(w.Context())
			after(time.Duration(n%3) * time.Millisecond)
		}
	})
}

// H58: the guard time belongs to the fleet. A program with a shorter one gives a master that forgot the longer
// quarantine, and one whose TTL is above the fleet's is refused, with a sentence that quotes both.
func TestVirtualTheGuardTimeBelongsToTheFleet(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Master(2).Restart(false)
		short := w.locker(redlock.WithGuardTime(5*time.Second), redlock.WithTTL(3*time.Second))
		after(time.Second)
		left := short.Masters()[2].Left
		if left < 55*time.Second || left > time.Minute {
			w.Errorf("the quarantine lasts another %v, want the fleet's minute", left)
		}
		long := w.locker(redlock.WithGuardTime(2*time.Minute), redlock.WithTTL(90*time.Second))
		_, err := long.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrGuardTime)
		if !strings.Contains(fmt.Sprint(err), "1m0s") || !strings.Contains(fmt.Sprint(err), "1m30s") {
			w.Errorf("the values are not quoted: %v", err)
		}
		k := w.take(long, "a", redlock.WithTTL(59*time.Second))
		_ = k.Unlock(w.Context())
	}, redlocktest.Guard(time.Minute))
}

// H58: the story that was reproduced: under the longer guard time's hold, the program with the shorter one must not get
// in through a master that forgot.
func TestVirtualTheShorterGuardTimeDoesNotAdmitUnderTheLongerLock(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.wire.block(3, 4)
		first := w.locker(redlock.WithGuardTime(time.Minute), redlock.WithExtension(false))
		w.wire.block()
		second := w.locker(redlock.WithGuardTime(5*time.Second), redlock.WithTTL(3*time.Second))
		k := w.take(first, "a", redlock.WithTTL(55*time.Second))
		w.masters.Master(2).Restart(false)
		for k.Err() == nil {
			after(200 * time.Millisecond)
			if other, err := second.TryLock(w.Context(), "a"); err == nil && k.Err() == nil {
				w.Fatalf("a second holder, token %d, while the first has %v left", other.Token(), k.Remaining())
			}
		}
	}, redlocktest.Guard(time.Minute))
}

// H59: one master whose fence of a name is near the end of the numbers moves neither that name's tokens nor another's.
func TestVirtualOnePoisonedFenceMovesNoToken(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		w.masters.Master(1).Set(defaultPrefix.Fence("a"), fmt.Sprint(int64(scripts.MaxBallot)-1))
		for n := range 20 {
			name := []string{"a", "b"}[n%2]
			k := w.take(l, name, redlock.WithTries(1))
			synctest.Wait()
			want := 5 - (n+1)%2
			if on, _ := k.HeldOn(); on != want || k.Token() > time.Now().Add(time.Second).UnixMicro() {
				w.Errorf("%s: held on %d, token %d", name, on, k.Token())
			}
			if err := k.Unlock(w.Context()); err != nil {
				w.Error(err)
			}
			after(time.Second)
		}
	})
}

// H59: a program that has just started knows three of five masters, one of them with a fence near the end of the
// numbers. The other two may be well, so that fence is not believed.
func TestVirtualAPoisonedFenceIsNotBelievedWhileMastersConnect(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.masters.Take("a", time.Minute)
		w.masters.Master(0).Set(defaultPrefix.Fence("a"), fmt.Sprint(int64(scripts.MaxBallot)-1))
		w.delay(300*time.Millisecond, 3, 4)
		l, err := redlock.New(w.pool(), redlock.WithClock(clock.Runtime()))
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = l.Close(context.WithoutCancel(w.Context())) })
		for range 3 {
			_, err := l.TryLock(w.Context(), "a")
			w.isError(err, redlock.ErrHeld)
			after(time.Millisecond)
		}
		w.delay(0)
		after(time.Second)
	})
}

// A fresh fleet votes after 30 s, by the clients alone; Lock waits for it, TryLock says how long.
func TestVirtualFreshMastersVoteAfterTheirQuarantine(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		_, err := l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrNoQuorum, redlock.ErrQuarantine)
		if !strings.Contains(fmt.Sprint(err), "AdmitNow") {
			w.Errorf("no way out is named: %v", err)
		}
		start := time.Now()
		w.take(l, "a")
		if took := time.Since(start); took < 29*time.Second || took > 32*time.Second {
			w.Errorf("it took %v", took)
		}
		after(2 * time.Second)
		for _, m := range l.Masters() {
			if m.State != "voting" {
				w.Errorf("%+v", m)
			}
		}
	}, redlocktest.Fresh())
}

// Programs that each live for a moment finish the quarantine among them.
func TestVirtualShortLivedLockersAloneFinishTheQuarantine(t *testing.T) {
	virtual(t, 3, func(w *world) {
		start := time.Now()
		for {
			p := w.pool()
			l, err := redlock.New(p, redlock.WithClock(clock.Runtime()))
			if err != nil {
				w.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
			_, err = l.Lock(ctx, "a")
			cancel()
			_ = l.Close(w.Context())
			_ = p.Close()
			if err == nil {
				break
			}
			if time.Since(start) > 2*time.Minute {
				w.Fatalf("not over after %v: %v", time.Since(start), err)
			}
			after(1700 * time.Millisecond)
		}
		if took := time.Since(start); took < 30*time.Second || took > 40*time.Second {
			w.Errorf("it took %v", took)
		}
	}, redlocktest.Fresh())
}

// Two Lockers that both want to end the quarantine do not hinder each other, whichever is first.
func TestVirtualTwoLockersEndTheQuarantine(t *testing.T) {
	virtual(t, 3, func(w *world) {
		start := time.Now()
		one := w.locker()
		after(3 * time.Second)
		two := w.locker()
		w.take(one, "a")
		w.take(two, "b")
		if took := time.Since(start); took > 32*time.Second {
			w.Errorf("it took %v", took)
		}
	}, redlocktest.Fresh())
}

// A quarantine begins when the clocks of a quorum can be compared, and ends when a quorum has been asked for what the
// fleet needs: until then no master votes.
func TestVirtualWithTooFewOthersNoQuarantineEnds(t *testing.T) {
	virtual(t, 5, func(w *world) {
		w.stop(1, 2, 3, 4)
		l := w.locker()
		after(6 * time.Minute)
		if m := l.Masters()[0]; m.State == "voting" {
			w.Errorf("alone: %+v", m)
		}
		w.each(func(_ int, m *redlocktest.Master) { m.Restart(true) }, 1, 2)
		start := time.Now()
		after(5 * time.Second)
		if m := l.Masters()[0]; m.State != "quarantine" || m.Left < 20*time.Second || m.Left > redlock.DefaultGuardTime {
			w.Errorf("with two of four others: %+v", m)
		}
		w.stop(2)
		after(time.Minute)
		if m := l.Masters()[0]; m.State == "voting" {
			w.Errorf("with one of four others: %+v", m)
		}
		w.masters.Master(2).Restart(true)
		w.take(l, "a")
		if took := time.Since(start); took < 90*time.Second || took > 110*time.Second { // the last one began its own anew
			w.Errorf("it took %v", took)
		}
	}, redlocktest.Fresh())
}

// A master whose clock differs by more than 15 s is not admitted before it is set right.
func TestVirtualAWrongClockIsNotAdmitted(t *testing.T) {
	virtual(t, 3, func(w *world) {
		w.masters.Master(0).SetClock(-20*time.Second, 1)
		l := w.locker()
		after(2 * time.Minute)
		states := l.Masters()
		if states[0].State != "blocked" || !strings.Contains(fmt.Sprint(states[0].Err), "clock") {
			w.Errorf("%+v", states[0])
		}
		if k := w.take(l, "a"); k.Err() != nil {
			w.Error(k.Err())
		}
		w.masters.Master(0).SetClock(0, 1)
		after(45 * time.Second)
		if m := l.Masters()[0]; m.State != "voting" {
			w.Errorf("with the right clock: %+v", m)
		}
	}, redlocktest.Fresh())
}

// Those who know that nothing is held admit the masters at once.
func TestVirtualAdmitNowEndsTheQuarantine(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		start := time.Now()
		if err := l.AdmitNow(w.Context()); err != nil {
			w.Fatal(err)
		}
		w.take(l, "a", redlock.WithTries(1))
		other := w.locker()
		w.take(other, "b", redlock.WithTries(1))
		if took := time.Since(start); took > time.Second {
			w.Errorf("it took %v", took)
		}
		w.stop(2)
		ctx, cancel := contextFor(w, 5*time.Second) // it tries until then
		defer cancel()
		err := l.AdmitNow(ctx)
		w.isError(err, context.DeadlineExceeded)
		var m *redlock.MasterError
		if !asError(err, &m) || m.Addr == "" {
			w.Errorf("the master that is down is not named: %v", err)
		}
	}, redlocktest.Fresh())
}

// H57: a master that was a replica in between has another replication id, and pauses.
func TestVirtualAFailbackIsAQuarantine(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.locker()
		w.masters.Master(0).SetRole("slave")
		w.masters.Master(0).Flush()
		after(4 * time.Second)
		if m := l.Masters()[0]; m.State == "voting" {
			w.Errorf("as a replica: %+v", m)
		}
		w.masters.Master(0).SetRole("master")
		after(4 * time.Second)
		if m := l.Masters()[0]; m.State != "quarantine" {
			w.Errorf("afterwards: %+v", m)
		}
		after(31 * time.Second)
		if m := l.Masters()[0]; m.State != "voting" {
			w.Errorf("at last: %+v", m)
		}
	})
}

// While no quorum votes nobody asks. A master that loses its data then is noticed all the same, so that its quarantine
// does not begin when those of the others are over.
func TestVirtualALossWhileNoQuorumVotesIsNoticed(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		after(time.Second)
		w.masters.Master(0).Restart(false)
		w.masters.Master(1).Restart(false)
		after(5 * time.Second)
		w.masters.Master(2).Flush()
		after(2 * time.Second)
		for i, m := range l.Masters() {
			if m.State != "quarantine" {
				t.Errorf("master %d is %s", i, m.State)
			}
		}
	})
}
