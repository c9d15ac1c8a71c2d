package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

var (
	oldFive, nextFive = []int{0, 1, 2, 3, 4}, []int{5, 6, 7, 8, 9}
	oldThree          = []int{0, 1, 2}
)

// states returns the configurations of a change, for which it admits the masters.
func (w *world) states(old, next []int) (first, both, last redlock.Configuration) {
	w.Helper()
	w.admittedApart(old, next)
	first = redlock.Configuration{Masters: w.urls(old...)}
	both = redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: w.urls(next...)}
	return first, both, redlock.Configuration{Epoch: 2, Masters: both.Next}
}

// A client that never gets the next configuration goes on until the epoch is raised. Then the old masters grant it
// nothing, and its lock ends with its validity. The same holds for a client that is started with an old file. The error
// says why.
func TestOneWhoIsNotToldIsGrantedNothing(t *testing.T) {
	virtual(t, 10, func(w *world) {
		_, both, last := w.states(oldFive, nextFive)
		told, late := w.some(oldFive), w.some(oldFive)
		w.change(told, both)
		k := w.take(late, "old") // some clients use both sets, this one the old set alone
		synctest.Wait()
		if _, err := told.TryLock(w.Context(), "old"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("client with both sets: %v, want ErrHeld", err)
		}
		if h, err := told.Inspect(w.Context(), "old"); err != nil || h.ID == "" || h.On != 5 {
			t.Errorf("inspection with both sets: %+v, %v", h, err)
		}
		after(15 * time.Second)
		if k.Err() != nil {
			t.Fatalf("before the epoch is raised: %v", k.Err())
		}
		if err := told.RaiseEpoch(w.Context()); err != nil {
			t.Fatal(err)
		}
		if _, cause := w.ended(k.Context(w.Context()), 11*time.Second); !errors.Is(cause, redlock.ErrLost) {
			t.Errorf("the lock of the late client ended with %v", cause)
		}
		again := w.some(oldFive)
		for i, l := range []*redlock.Locker{late, again} {
			_, err := l.TryLock(w.Context(), "other")
			if i == 0 { // it reads the records of its masters
				synctest.Wait()
				_, err = l.TryLock(w.Context(), "other")
			}
			if !errors.Is(err, redlock.ErrOldMasters) || !errors.Is(err, redlock.ErrNoQuorum) {
				t.Errorf("locker %d: %v, want ErrOldMasters", i, err)
			}
		}
		got := w.take(told, "old")
		if err := late.Admin().Reconfigure(w.Context(), last); err != nil {
			t.Errorf("with the last configuration, skipping the missed one: %v", err)
		}
		if _, err := late.TryLock(w.Context(), "more"); !errors.Is(err, redlock.ErrIncomplete) {
			t.Errorf("waiting until the next set is final: %v", err)
		}
		after(time.Minute)
		if err := told.FinishChange(w.Context()); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Second)
		if _, err := late.TryLock(w.Context(), "old"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		w.must(got.Unlock(w.Context()))
		w.must(w.take(late, "old").Unlock(w.Context()))
	})
}

// A client that is started with the last configuration before the change is complete acquires nothing, and recovers by
// itself afterwards.
func TestNextMastersGrantNothingBeforeFinish(t *testing.T) {
	virtual(t, 10, func(w *world) {
		_, both, last := w.states(oldFive, nextFive)
		told := w.some(oldFive)
		early := w.some(nextFive, redlock.WithConfiguration(last))
		_, err := early.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrIncomplete, redlock.ErrNoQuorum)
		w.change(told, both)
		w.must(told.RaiseEpoch(w.Context()))
		after(59 * time.Second)
		if err := told.FinishChange(w.Context()); !errors.Is(err, redlock.ErrIncomplete) {
			t.Errorf("finished too early: %v", err)
		}
		if _, err := early.TryLock(w.Context(), "a"); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("%v, want ErrNoQuorum", err)
		}
		after(2 * time.Second)
		w.must(told.FinishChange(w.Context()))
		w.must(w.take(early, "a").Unlock(w.Context()))
	})
}

// A majority of the old masters counts from the time at which its last member got the epoch, and a master that loses
// its data starts again.
func TestAMasterThatForgetsHasTheEpochAnew(t *testing.T) {
	virtual(t, 5, func(w *world) {
		_, both, _ := w.states(oldThree, []int{2, 3, 4})
		told := w.some(oldThree)
		w.change(told, both)
		w.must(told.RaiseEpoch(w.Context()))
		after(20 * time.Second)
		w.stop(1)
		w.masters.Master(1).Restart(false)
		after(35 * time.Second) // its quarantine
		w.must(w.take(told, "a").Unlock(w.Context()))
		w.stop(0)
		after(10 * time.Second)
		is, err := told.Change(w.Context())
		if err != nil || !is.RaisedAll || is.Complete || is.Left < 10*time.Second || is.Left > 16*time.Second {
			t.Errorf("%+v, %v; the second master of the majority has had the epoch for 45 s of 60", is, err)
		}
	})
}

// An invalid configuration is rejected before any master is added to the pool.
func TestChangesThatCannotBeRight(t *testing.T) {
	virtual(t, 10, func(w *world) {
		first, both, last := w.states(oldFive, nextFive)
		l, unguarded := w.some(oldFive), w.some(oldFive, redlock.WithoutRestartGuard())
		refused := func(l *redlock.Locker, s redlock.Configuration, text string) {
			t.Helper()
			err := l.Admin().Reconfigure(w.Context(), s)
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", s, err, text)
			}
		}
		twice := append(w.urls(5, 6), w.urls(5)...)
		refused(l, redlock.Configuration{Epoch: 1}, "no masters")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters}, "needs next masters")
		refused(l, redlock.Configuration{Epoch: 2, Masters: last.Masters, Next: first.Masters}, "is even")
		refused(l, redlock.Configuration{Epoch: -2, Masters: last.Masters}, "epoch -2")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: twice}, "are the same")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: []string{"ftp://x"}}, "ftp")
		refused(l, last, "left out")
		refused(l, redlock.Configuration{Masters: last.Masters}, "other masters")
		refused(l, redlock.Configuration{Epoch: 1, Masters: w.urls(0, 1, 2), Next: last.Masters}, "as the old ones")
		refused(unguarded, both, "guard is off")
		w.must(l.Admin().Reconfigure(w.Context(), first))
		w.change(l, both)
		w.change(l, both)
		refused(l, first, "already, later than")
		refused(l, redlock.Configuration{Epoch: 2, Masters: w.urls(5, 6, 7)}, "names others")
		if is := l.Set(); is.Epoch != 1 || len(is.Masters) != 5 || len(is.Next) != 5 {
			t.Errorf("configuration in use: %+v", is)
		}
		if err := unguarded.RaiseEpoch(w.Context()); !errors.Is(err, redlock.ErrInvalid) {
			t.Errorf("raising epoch 0: %v", err)
		}
	})
}

// A lock that was acquired on the old masters alone is exported to a client that uses both sets.
func TestALockOfTheOldMastersIsImportedByBoth(t *testing.T) {
	virtual(t, 10, func(w *world) {
		_, both, _ := w.states(oldFive, nextFive)
		from, to := w.some(oldFive), w.some(oldFive)
		w.change(to, both)
		handle, err := w.take(from, "a").Export()
		if err != nil {
			t.Fatal(err)
		}
		k, err := to.Import(w.Context(), handle)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := w.onOf("a", nextFive...); n != 5 {
			t.Errorf("the lock is on %d of the next masters", n)
		}
		if _, err := from.TryLock(w.Context(), "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%v, want ErrHeld", err)
		}
		w.must(k.Unlock(w.Context()))
		synctest.Wait()
		if n := w.on("a"); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// While the next masters are down nothing changes; the change continues when they are up.
func TestTheChangeWaitsForAMajorityOfTheNext(t *testing.T) {
	virtual(t, 10, func(w *world) {
		_, both, _ := w.states(oldFive, nextFive)
		l := w.some(oldFive)
		w.stop(5, 6, 7)
		ctx, cancel := contextFor(w, 3*time.Second)
		defer cancel()
		err := l.Admin().Reconfigure(ctx, both)
		w.isError(err, redlock.ErrNoQuorum)
		w.must(w.take(l, "a").Unlock(w.Context()))
		if l.Set().Epoch != 0 {
			t.Errorf("configuration in use: %v", l.Set())
		}
		for _, i := range []int{5, 6, 7} {
			w.masters.Master(i).Restart(true)
		}
		after(40 * time.Second) // its quarantine, since it is another process
		w.change(l, both)
		w.must(w.take(l, "a").Unlock(w.Context()))
	})
}
