package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// admitted makes the admission records of these masters list exactly these masters, as if no others had ever been
// admitted with them.
func (w *cluster) admitted(which ...int) {
	w.Helper()
	names := make([]string, len(which))
	for k, i := range which {
		names[k] = w.masters.Master(i).Addr()
	}
	w.each(func(_ int, m *memory.Master) {
		text, _ := m.Get(defaultPrefix.Admission())
		record := must(scripts.ParseRecord(text))(w)
		record.Masters = scripts.List(names)
		m.Set(defaultPrefix.Admission(), record.String())
	}, which...)
}

// admittedApart calls admitted for the masters of two sets, one after the other.
func (w *cluster) admittedApart(old, next []int) {
	w.admitted(next...)
	w.admitted(old...)
}

func (w *cluster) reconfigure(l *redlock.Locker, s redlock.Configuration) {
	w.Helper()
	w.must(admin.Of(l).Reconfigure(w.withTimeout(time.Minute), s))
	synctest.Wait() // wait for all next masters, not only for a majority
}

var (
	oldFive, nextFive = []int{0, 1, 2, 3, 4}, []int{5, 6, 7, 8, 9}
	oldThree          = []int{0, 1, 2}
)

// states returns the configurations before, during and after a change. It first admits the masters of each set
// separately.
func (w *cluster) states(old, next []int) (first, both, last redlock.Configuration) {
	w.Helper()
	w.admittedApart(old, next)
	first = redlock.Configuration{Masters: w.urls(old...)}
	both = redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: w.urls(next...)}
	return first, both, redlock.Configuration{Epoch: 2, Masters: both.Next}
}

// A client that never receives the next configuration can acquire locks until the epoch is raised. After that the old
// masters grant nothing to the client, and its lock ends with its validity. A client that is started with the old
// configuration is refused, too. Both get ErrOldMasters.
func TestClientWithOldMastersIsRefused(t *testing.T) {
	virtual(t, 10, func(w *cluster) {
		_, both, last := w.states(oldFive, nextFive)
		current, late := w.readyLocker(w.poolOf(oldFive...)), w.readyLocker(w.poolOf(oldFive...))
		w.reconfigure(current, both)
		k := must(late.Lock(w.Context(), "old"))(w) // late uses only the old set, and current uses both
		synctest.Wait()
		w.isError(errOf(current.TryLock(w.Context(), "old")), redlock.ErrHeld)
		synctest.Wait() // the votes of the next masters are rolled back
		if h, err := current.Inspect(w.Context(), "old"); err != nil || h.ID == "" || h.On != 5 {
			w.Errorf("the inspection with both sets returned %+v, %v", h, err)
		}
		after(15 * time.Second)
		if k.Err() != nil {
			w.Fatalf("before the epoch is raised: %v", k.Err())
		}
		w.must(client.SetOf(current).RaiseEpoch(w.Context()))
		w.ends(k.Context(w.Context()), 11*time.Second, redlock.ErrLost)
		again := w.readyLocker(w.poolOf(oldFive...))
		for i, l := range []*redlock.Locker{late, again} {
			_, err := l.TryLock(w.Context(), "other")
			if i == 0 { // a running client learns of the epoch at its first attempt
				synctest.Wait()
				_, err = l.TryLock(w.Context(), "other")
			}
			w.isError(err, redlock.ErrOldMasters, redlock.ErrNoQuorum)
		}
		got := must(current.Lock(w.Context(), "old"))(w)
		w.noError(admin.Of(late).Reconfigure(w.Context(), last))
		w.isError(errOf(late.TryLock(w.Context(), "more")), redlock.ErrIncomplete)
		after(time.Minute)
		w.must(client.SetOf(current).FinishChange(w.Context()))
		after(2 * time.Second)
		w.isError(errOf(late.TryLock(w.Context(), "old")), redlock.ErrHeld)
		w.noError(got.Unlock(w.Context()))
		w.noError(late.Do(w.Context(), "old", nothing))
	})
}

// A change is complete when a majority of the old masters has had the epoch for two max TTLs. This time starts when
// the last master of the majority gets the epoch, and starts again for a master that loses its data.
func TestForgetfulMasterRestartsEpoch(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		_, both, _ := w.states(oldThree, []int{2, 3, 4})
		current := w.readyLocker(w.poolOf(oldThree...))
		w.reconfigure(current, both)
		w.must(client.SetOf(current).RaiseEpoch(w.Context()))
		after(20 * time.Second)
		w.stop(1)
		w.restart(false, 1)
		after(35 * time.Second) // the quarantine of master 1
		w.noError(current.Do(w.Context(), "a", nothing))
		w.stop(0)
		after(10 * time.Second)
		is, err := client.SetOf(current).Change(w.Context())
		if err != nil || !is.RaisedAll || is.Complete || is.Left < 10*time.Second || is.Left > 16*time.Second {
			w.Errorf("Change returned %+v, %v; the second master of the majority has had the epoch for 45 s of 60", is, err)
		}
	})
}

// An invalid configuration is rejected before any of its masters is added to the pool.
func TestInvalidConfigurationsAreRejected(t *testing.T) {
	virtual(t, 10, func(w *cluster) {
		first, both, last := w.states(oldFive, nextFive)
		l, unguarded := w.readyLocker(w.poolOf(oldFive...)), w.readyLocker(w.poolOf(oldFive...),
			redlock.WithoutRestartGuard())
		refused := func(l *redlock.Locker, s redlock.Configuration, text string) {
			w.Helper()
			err := admin.Of(l).Reconfigure(w.Context(), s)
			if !errors.Is(err, redlock.ErrInvalid) || !strings.Contains(err.Error(), text) {
				w.Errorf("Reconfigure to %+v returned %v, want an error with %q", s, err, text)
			}
		}
		twice := append(w.urls(5, 6), w.urls(5)...)
		refused(l, redlock.Configuration{Epoch: 1}, "no masters")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters}, "needs next masters")
		refused(l, redlock.Configuration{Epoch: 2, Masters: last.Masters, Next: first.Masters}, "is even")
		refused(l, redlock.Configuration{Epoch: -2, Masters: last.Masters}, "epoch -2")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: twice}, "are the same")
		refused(l, redlock.Configuration{Epoch: 1, Masters: first.Masters, Next: []string{"ftp://x"}}, "ftp")
		refused(l, last, "a step is missing")
		refused(l, redlock.Configuration{Masters: last.Masters}, "other masters")
		refused(l, redlock.Configuration{Epoch: 1, Masters: w.urls(0, 1, 2), Next: last.Masters},
			"must be the masters of epoch")
		refused(unguarded, both, "guard is off")
		w.must(admin.Of(l).Reconfigure(w.Context(), first))
		w.reconfigure(l, both)
		w.reconfigure(l, both)
		refused(l, first, "already have epoch")
		refused(l, redlock.Configuration{Epoch: 2, Masters: w.urls(5, 6, 7)}, "must be the next masters of epoch")
		if is := admin.Of(l).Configuration()[0]; is.Epoch != 1 || len(is.Masters) != 5 || len(is.Next) != 5 {
			w.Errorf("the configuration in use is %+v, want epoch 1", is)
		}
		w.isError(client.SetOf(unguarded).RaiseEpoch(w.Context()), redlock.ErrInvalid)
	})
}

// A lock that was acquired only on the old masters can be imported by a client that uses both sets.
func TestLockOfOldMastersIsImported(t *testing.T) {
	virtual(t, 10, func(w *cluster) {
		_, both, _ := w.states(oldFive, nextFive)
		from, to := w.readyLocker(w.poolOf(oldFive...)), w.readyLocker(w.poolOf(oldFive...))
		w.reconfigure(to, both)
		handle := must(must(from.Lock(w.Context(), "a"))(w).Export())(w)
		k := must(to.Import(w.Context(), handle))(w)
		synctest.Wait()
		equal(w, w.on("a", nextFive...), 5, "next masters with the lock")
		w.isError(errOf(from.TryLock(w.Context(), "a")), redlock.ErrHeld)
		w.noError(k.Unlock(w.Context()))
		w.wantOn("a", 0)
	})
}

// H170: masters that have left are retired after the longest TTL. A change that names them again at that instant gets
// masters that work: those of before, if it was given their numbers first, or else new connections to them.
func TestMastersReturnWhenTheyAreRetired(t *testing.T) {
	for name, pause := range map[string]time.Duration{"no pause": 0, "retired in between": 2 * time.Second} {
		subtest(t, name, 6, func(w *cluster) {
			first, both, last := w.states(oldThree, []int{3, 4, 5})
			l := w.readyLocker(w.poolOf(oldThree...))
			w.reconfigure(l, both)
			w.must(client.SetOf(l).RaiseEpoch(w.Context()))
			after(2 * time.Minute)
			w.must(client.SetOf(l).FinishChange(w.Context()))
			w.reconfigure(l, last)
			after(redlock.DefaultMaxTTL - time.Second) // one second before the old masters are retired
			back := redlock.Configuration{Epoch: 3, Masters: last.Masters, Next: first.Masters}
			w.must(client.SetOf(l).Clients[0].ReconfigureSlowly(w.withTimeout(time.Minute), client.Configuration(back), pause))
			after(time.Minute)
			for i, m := range admin.Of(l).Masters() {
				if m.State != "voting" {
					w.Errorf("master %d is %s: %v", i, m.State, m.Err)
				}
			}
			w.noError(l.Do(w.Context(), "a", nothing))
		})
	}
}

// While the next masters are down the configuration does not change; the change succeeds when they are up.
func TestChangeWaitsForMajorityOfNext(t *testing.T) {
	virtual(t, 10, func(w *cluster) {
		_, both, _ := w.states(oldFive, nextFive)
		l := w.readyLocker(w.poolOf(oldFive...))
		w.stop(5, 6, 7)
		w.isError(admin.Of(l).Reconfigure(w.withTimeout(3*time.Second), both), redlock.ErrNoQuorum)
		w.noError(l.Do(w.Context(), "a", nothing))
		if admin.Of(l).Configuration()[0].Epoch != 0 {
			w.Errorf("the configuration in use is %v, want epoch 0", admin.Of(l).Configuration()[0])
		}
		w.restart(true, 5, 6, 7)
		after(40 * time.Second) // the quarantine, since the servers are new processes
		w.reconfigure(l, both)
		w.noError(l.Do(w.Context(), "a", nothing))
	})
}

// H147: the next masters may already grant locks without the old masters, and a client that holds such a lock is cut
// off. Two of these three masters lose their data, so they may have forgotten both the lock and this permission. The
// change must not be aborted before their quarantine has ended, because the old masters would grant the lock again.
func TestAbortAfterNextMastersHaveForgotten(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		urls := w.masters.URLs()
		both := redlock.Configuration{Epoch: 1, Masters: urls[:3], Next: urls[3:]}
		l, first := w.newLocker(w.poolOf(0, 1, 2)), w.newLocker(w.poolOf(3, 4, 5))
		w.must(errors.Join(admin.Of(l).Admit(w.withTimeout(time.Minute)), admin.Of(first).Admit(w.withTimeout(time.Minute)),
			first.Close(), admin.Of(l).Reconfigure(w.withTimeout(2*time.Minute), both),
			client.SetOf(l).RaiseEpoch(w.withTimeout(time.Minute))))
		after(2 * time.Minute)
		w.masters.Master(5).Stop()
		operator := w.newLocker(w.poolOver(urls), redlock.WithConfiguration(both), client.AsObserver())
		w.must(client.SetOf(operator).FinishChange(w.withTimeout(time.Minute)), operator.Close())
		ahead := w.configured(redlock.Configuration{Epoch: 2, Masters: urls[3:]})
		k := must(ahead.Lock(w.Context(), "n", redlock.WithTTL(30*time.Second)))(w)
		ahead.kill()
		w.restart(false, 3, 4)
		w.restart(true, 5)
		after(2 * time.Second)
		w.says(client.SetOf(l).AbortChange(w.withTimeout(5*time.Second)), redlock.ErrNoQuorum, "quarantine")
		_ = w.wantOneHolder(k, l)
		after(time.Minute)
		if err := client.SetOf(l).AbortChange(w.withTimeout(time.Minute)); err != nil || k.Err() == nil {
			w.Errorf("after the quarantine AbortChange returned %v; the lock ended with %v", err, k.Err())
		}
		w.wantLocks("the client", l)
		late := w.newLocker(w.poolOver(urls[3:]),
			redlock.WithConfiguration(redlock.Configuration{Epoch: 2, Masters: urls[3:]}))
		w.says(errOf(late.TryLock(w.Context(), "n")), redlock.ErrIncomplete, "it was cancelled",
			"use the file of epoch 2, with the masters ["+w.masters.Master(0).Addr())
	}, memory.Fresh())
}

// H98: a client prepares a change of two of three masters, which nobody has admitted by hand. A client that already has
// the URLs of the next masters, without the epoch, acquires nothing beside clients of the old masters.
func TestPlainListOfNextMastersIsRefused(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		current := w.newLocker(w.poolOf(0, 1, 2))
		w.must(admin.Of(current).Admit(w.withTimeout(time.Minute)))
		old := w.readyLocker(w.poolOf(0, 1, 2))
		w.reconfigure(current, redlock.Configuration{Epoch: 1, Masters: w.urls(0, 1, 2), Next: w.urls(2, 3, 4)})
		early := w.readyLocker(w.poolOf(2, 3, 4))
		k := must(old.Lock(w.Context(), "n"))(w)
		w.isError(errOf(early.TryLock(w.withTimeout(time.Minute), "n")), redlock.ErrMasterList)
		w.noError(k.Err())
	}, memory.Fresh())
}

// H183: two of three next masters have been allowed to act without the old masters, and a client has a lock on these
// three. One of the two loses its data. The client that starts its quarantine and the operator cannot reach the other
// one, so after this quarantine they may cancel the change. The lock must have ended by then: extensions and repairs do
// not keep it on masters that no longer allow it.
func TestLockEndsWithItsPermission(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		first, both, last := w.states(oldThree, []int{3, 4, 5})
		start := func(c redlock.Configuration, unreachable ...int) *peer {
			p := w.newPeer("client")
			p.cluster.wire.block(unreachable...)
			return p.open(slices.Concat(c.Masters, c.Next), redlock.WithConfiguration(c)).ready()
		}
		early := w.readyLocker(w.poolOver(first.Masters))
		w.reconfigure(early, both)
		w.must(client.SetOf(early).RaiseEpoch(w.Context()))
		after(2 * time.Minute)
		operator := start(both, 5)
		w.must(client.SetOf(operator).FinishChange(w.Context()), operator.Close(), early.Close())
		ahead := start(last)
		k := must(ahead.Lock(w.Context(), "n"))(w)
		after(10 * time.Second)
		w.noError(k.Err())
		ahead.cut(3)
		w.restart(false, 3)
		late := start(both, 4)
		after(2 * time.Second) // late starts the quarantine
		ahead.cluster.wire.block()
		after(30 * time.Second)
		w.must(client.SetOf(late).AbortChange(w.Context()))
		after(2 * time.Second)
		w.noError(w.wantOneHolder(k, late.Locker))
		w.isError(k.Err(), redlock.ErrLost)
	})
}

// All clients adopt the old masters of a cancelled change by themselves, and at once, so there is no warning about it.
// If only one master has a later epoch, there is one, after a second.
func TestCancelledChangeIsNoWarning(t *testing.T) {
	virtual(t, 4, func(w *cluster) {
		first, both, _ := w.states(oldThree, []int{0, 1, 3})
		var books [2]logbook
		var lockers [2]*redlock.Locker
		for i := range lockers {
			lockers[i] = w.newLocker(w.poolOver(first.Masters), books[i].option())
			w.reconfigure(lockers[i], both)
		}
		k := must(lockers[0].Lock(w.Context(), "x"))(w) // the other client is idle
		operator := w.newLocker(w.poolOver(w.masters.URLs()), redlock.WithConfiguration(both), client.AsObserver())
		w.must(client.SetOf(operator).RaiseEpoch(w.withTimeout(time.Minute)))
		after(50 * time.Second)
		w.masters.Master(0).CutConnections() // from then on its record is read at other times than those of the others
		after(10 * time.Second)
		w.must(client.SetOf(operator).AbortChange(w.withTimeout(time.Minute)))
		after(time.Minute)
		for i, l := range lockers {
			equal(t, books[i].logged("level=WARN"), 0, "warnings")
			equal(t, admin.Of(l).Configuration()[0].Epoch, 2, "epoch")
		}
		w.noError(k.Err())
		text, _ := w.masters.Master(2).Get(defaultPrefix.Admission())
		record := must(scripts.ParseRecord(text))(w)
		record.Epoch, record.Final = 4, 4
		w.masters.Master(2).Set(defaultPrefix.Admission(), record.String())
		after(time.Minute)
		equal(t, books[0].logged("level=WARN", "which this client adopts"), 1, "warnings about the master with a later epoch")
	})
}

// H184: a client whose change is cancelled forgets the clocks of the masters that it does not use any more. They are
// stopped, so their times become less exact, and ballots that followed them would be too old for the other masters.
func TestLocksLongAfterACancelledChange(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		_, both, _ := w.states(oldThree, []int{3, 4, 5})
		l := w.readyLocker(w.poolOf(oldThree...))
		w.reconfigure(l, both)
		w.must(client.SetOf(l).RaiseEpoch(w.Context()), client.SetOf(l).AbortChange(w.Context()))
		after(time.Minute)
		w.stop(3, 4, 5)
		after(time.Hour)
		w.noError(l.Do(w.withTimeout(time.Minute), "n", nothing))
	})
}

// H184: a master is down while a change is cancelled, and starts again with its data when all clients have adopted the
// old masters. It votes again, with the epoch that the others have.
func TestMasterReturnsAfterACancelledChange(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		_, both, _ := w.states(oldThree, []int{3, 4, 5})
		l := w.readyLocker(w.poolOf(oldThree...))
		w.reconfigure(l, both)
		w.must(client.SetOf(l).RaiseEpoch(w.Context()))
		w.stop(2)
		w.must(client.SetOf(l).AbortChange(w.Context()))
		after(2 * time.Second)
		equal(w, admin.Of(l).Configuration()[0].Epoch, 2, "epoch of the client")
		w.restart(true, 2)
		w.votesWithin(2*time.Minute, 2, l)
	})
}

// H184: the cancellation of a change is interrupted when one of the old masters has its epoch, and the others restart
// with their data. A client that still uses both sets puts these into quarantine, and the cancellation can be repeated.
func TestInterruptedCancellationAfterRestarts(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		_, both, _ := w.states(oldThree, []int{3, 4, 5})
		l := w.readyLocker(w.poolOf(oldThree...))
		w.reconfigure(l, both)
		w.must(client.SetOf(l).RaiseEpoch(w.Context()))
		w.delay(20 * time.Millisecond)
		w.isError(client.SetOf(l).AbortChange(w.withTimeout(190*time.Millisecond)), context.DeadlineExceeded)
		w.delay(0)
		for i := range 6 {
			has := strings.Contains(recordOf(w.masters.Master(i)), "epoch=2")
			equal(w, has, i == 0 || i > 2, fmt.Sprint("epoch of master ", i))
		}
		w.stop(1, 2)
		w.restart(true, 1, 2)
		after(10 * time.Second)
		w.must(client.SetOf(l).AbortChange(w.withTimeout(time.Minute)))
		w.votesWithin(2*time.Minute, 1, l)
	})
}

// H184: a client has begun to admit the next masters of a change, which is then given up. When it gets the old list
// again, it leaves these masters. Otherwise their clocks would count, also long after they have been stopped, and no
// master that restarts would vote again.
func TestAbandonedChangeLeavesTheNextMasters(t *testing.T) {
	virtual(t, 6, func(w *cluster) {
		first, both, _ := w.states(oldThree, []int{3, 4, 5})
		l := w.readyLocker(w.poolOver(first.Masters))
		w.stop(3, 5)
		w.isError(admin.Of(l).Reconfigure(w.withTimeout(3*time.Second), both), redlock.ErrNoQuorum)
		w.must(admin.Of(l).Reconfigure(w.withTimeout(time.Minute), first))
		after(time.Minute)
		before := w.masters.Master(4).Commands()["heartbeat"]
		after(time.Minute)
		equal(w, w.masters.Master(4).Commands()["heartbeat"], before, "heartbeats of a master of the abandoned change")
	})
}

// Two of five masters have a later epoch with the masters of this client, and the others are down. The client reads the
// records of the two at intervals, not one because of the other without a pause.
func TestLaterEpochOfAMinorityIsReadAtIntervals(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.delay(time.Millisecond)
		var book logbook
		w.readyLocker(w.poolOver(w.masters.URLs()), book.option())
		w.each(func(_ int, m *memory.Master) {
			record := must(scripts.ParseRecord(recordOf(m)))(w)
			record.Epoch, record.Final = 2, 2
			m.Set(defaultPrefix.Admission(), record.String())
		}, 0, 1)
		w.stop(2, 3, 4)
		after(time.Minute)
		before := w.count("admit")
		after(20 * time.Second)
		if n := w.count("admit") - before; n > 100 {
			w.Errorf("the client has sent %d admit calls in 20 s", n)
		} else if n == 0 {
			w.Error("the client reads no records, or they are not counted")
		}
		down := book.logged("master is down", w.masters.Master(0).Addr())
		w.stop(0) // it was logged that this master does not vote
		after(5 * time.Second)
		equal(w, book.logged("master is down", w.masters.Master(0).Addr()), down+1, "records that the master is down")
	})
}

// H58: a next master that the operator cannot reach during the first RaiseEpoch gets the max TTL of the old masters by
// the next one, and with it the quarantine that other masters need after a loss of data.
func TestNextMasterGetsMaxTTLLate(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		_, both, last := w.states(oldThree, []int{2, 3, 4})
		operator := w.readyLocker(w.poolOf(oldThree...), redlock.WithMaxTTL(time.Minute))
		w.must(admin.Of(operator).RaiseMaxTTL(w.Context(), time.Minute))
		w.reconfigure(operator, both)
		w.wire.block(4)
		w.cutConnections(4)
		after(5 * time.Second)
		w.must(client.SetOf(operator).RaiseEpoch(w.Context()))
		w.wire.block()
		after(2 * time.Minute)
		w.must(client.SetOf(operator).FinishChange(w.Context()))
		w.reconfigure(operator, last)
		w.must(client.SetOf(operator).RaiseEpoch(w.Context()))
		w.each(func(_ int, m *memory.Master) {
			text, _ := m.Get(defaultPrefix.Admission())
			record := must(scripts.ParseRecord(text))(w)
			equal(w, record.MaxTTL, time.Minute, "max TTL of "+m.Addr())
			equal(w, record.Quarantine, time.Minute, "quarantine of "+m.Addr())
		}, 2, 3, 4)
	})
}
