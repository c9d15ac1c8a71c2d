package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H51: a quorum is a majority of the configured masters, however few of them are connected, so two Lockers that
// reach different masters never both win.
func TestQuorumIsOfConfiguredMasters(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		w.wire.block(2, 3, 4)
		few := w.locker()
		w.wire.block(0, 1)
		many := w.locker()
		_, err := few.TryLock(w.Context(), "a")
		w.says(err, redlock.ErrNoQuorum, "of 5 masters can grant a lock, quorum is 3")
		w.notError(err, redlock.ErrHeld)
		k := must(many.Lock(w.Context(), "a"))(w)
		synctest.Wait()
		w.wantHeld(k, 3)
		w.isError(errOf(few.TryLock(w.Context(), "a")), redlock.ErrNoQuorum)
	})
}

// restartEmpty runs the schedule of H53: a lock is on three of five masters, one of the three restarts empty, and a
// second client repeatedly tries to lock the name while the first lock is valid. It reports whether both clients held
// the name at the same time.
func restartEmpty(w *cluster, opts ...redlock.Option) (twice bool) {
	opts = append(opts, redlock.WithExtension(false))
	w.wire.block(3, 4)
	first := w.locker(opts...)
	w.wire.block()
	second := w.locker(opts...)
	k := must(first.Lock(w.Context(), "a", redlock.WithTTL(30*time.Second)))(w)
	synctest.Wait()
	w.wantOn("a", 3)
	w.restart(false, 2)
	for k.Err() == nil {
		after(100 * time.Millisecond)
		if other, err := second.TryLock(w.Context(), "a"); err == nil {
			twice = twice || k.Err() == nil
			_ = other.Unlock(w.Context())
		}
	}
	return twice
}

// H53: with the guard, a master that restarts empty does not vote, so it does not grant a held lock again.
func TestMasterRestartedEmptyDoesNotVote(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		if restartEmpty(w) {
			w.Error("two holders at the same time, with the guard on")
		}
	})
}

// H53: without the guard, the same schedule shows the violation that the guard prevents.
func TestWithoutGuardTwoHolders(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		if !restartEmpty(w, redlock.WithoutRestartGuard()) {
			w.Error("without the guard there were no two holders: the schedule cannot show that the guard works")
		}
		w.noError(admin.Of(w.locker(redlock.WithoutRestartGuard())).Admit(w.Context()))
	})
}

// Without the guard and without the background extension, the loss of a lock on the masters is noticed when the lock
// is used.
func TestLossWithoutGuardIsNoticedByUse(t *testing.T) {
	for name, use := range map[string]func(w *cluster, k *redlock.Lock) error{
		"extend":    func(w *cluster, k *redlock.Lock) error { return k.Extend(w.Context()) },
		"set value": func(w *cluster, k *redlock.Lock) error { return k.SetValue(w.Context(), "v") },
	} {
		subtest(t, name, 3, func(w *cluster) {
			k := must(w.locker(redlock.WithoutRestartGuard(), redlock.WithExtension(false)).Lock(w.Context(), "a"))(w)
			w.restart(false)
			after(3 * time.Second)
			if k.Err() != nil {
				w.Errorf("before the lock is used: %v", k.Err())
			}
			w.isError(use(w, k), redlock.ErrLost)
			w.isError(k.Err(), redlock.ErrLost)
			w.isError(k.Unlock(w.Context()), redlock.ErrLost)
		})
	}
}

// H55, H73: a re-entry keeps the token, and each later hold has a larger token, even if the fences have expired after
// a minute, or if the masters have lost the fences.
func TestTokensGrowAfterDataLoss(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		last := int64(0)
		next := func(when string) {
			w.Helper()
			k := must(l.Lock(w.Context(), "a"))(w)
			if k.Token() <= last || k.Token() >= scripts.MaxBallot {
				w.Errorf("%s: the token is %d, want more than %d", when, k.Token(), last)
			}
			last = k.Token()
			inner := must(l.Lock(k.Context(w.Context()), "a", redlock.WithReentry()))(w)
			if inner.Token() != last || k.Token() != last {
				w.Errorf("%s: the re-entry has token %d, the hold %d, before %d", when, inner.Token(), k.Token(), last)
			}
			_, _ = inner.Unlock(w.Context()), k.Unlock(w.Context())
		}
		for range 50 { // no time passes between them
			next("at the same instant")
		}
		after(scripts.FenceKept + redlock.DefaultTTL + time.Second)
		w.each(func(i int, m *memory.Master) {
			if fence := m.Fence("a"); fence != "" {
				w.Errorf("master %d still has the fence %s", i, fence)
			}
		})
		next("after the fences have expired")
		w.flush()
		next("after the masters were flushed")
		w.restart(false)
		next("after the masters restarted empty")
		w.each(func(i int, m *memory.Master) { m.SetClock(time.Duration(i-1)*10*time.Second, 1) })
		next("with masters' clocks that differ")
		l = w.locker(redlock.WithClock(newShiftClock(1).clock()))
		next("by another client")
	})
}

// While no quorum votes, clients send no acquires. If another master loses its data at that time, the loss is still
// detected, so the quarantine of this master begins before the quarantines of the others end.
func TestDataLossWithoutQuorumIsDetected(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		after(time.Second)
		w.restart(false, 0)
		w.restart(false, 1)
		after(5 * time.Second)
		w.masters.Master(2).Flush()
		after(2 * time.Second)
		for i, m := range admin.Of(l).Masters() {
			if m.State != "quarantine" {
				w.Errorf("master %d is %s, want quarantine", i, m.State)
			}
		}
	})
}

// H58: the records that an idle client read long ago do not determine the length of a quarantine.
func TestQuarantineUsesRecentRecords(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		for i, g := range []time.Duration{10 * time.Second, 10 * time.Second, time.Minute} {
			w.masters.Master(i).Admit("redlock", g)
		}
		idle := w.peer("client", redlock.WithMaxTTL(10*time.Second), redlock.WithTTL(5*time.Second))
		b := w.peer("client", forAMinute...)
		w.masters.Master(0).Flush()                                                          // no connection ends
		if _, err := b.TryLock(w.Context(), "y", redlock.WithTTL(time.Second)); err != nil { // b contacts the master
			w.Fatal(err)
		}
		after(65 * time.Second)
		held := must(b.Lock(w.Context(), "x"))(w)
		b.cut(2) // another client must detect the restarted master first
		w.restart(false, 2)
		after(14 * time.Second)
		_ = w.wantOneHolder(held, idle.Locker)
		w.noError(held.Err())
	})
}

// A master that boots before its clock is set is not admitted by a client that sees too few clocks to compare.
func TestWrongClockIsNotMedian(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		h := w.cutOff(1, redlock.WithTTL(30*time.Second), redlock.WithExtension(false))
		held := must(h.Lock(w.Context(), "x"))(w)
		h.cut(0)
		w.setClocks(-10*time.Minute, 0)
		w.restart(false, 0)
		c := w.cutOff(2, redlock.WithTTL(5*time.Second))
		after(4 * time.Second)
		w.setClocks(0, 0) // NTP corrects the clock
		after(5 * time.Second)
		_ = w.wantOneHolder(held, c.Locker)
		w.noError(held.Err())
	})
}

// The following schedules were found by reading the code. Each of them has broken a guarantee.

// While Admit waits for the last server to start, the other servers already vote and clients acquire locks. Then one
// of the voting servers restarts empty. The pending Admit must not admit that server: the caller's assertion was true
// when Admit was called, but is no longer true.
func TestPendingAdmitRejectsForgetfulMaster(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		w.masters.Master(2).Stop() // this master starts later than the others
		operator := w.peer("client")
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() { done <- admin.Of(operator.Locker).Admit(ctx) }()
		after(time.Second)
		h, p := w.cutOff(2), w.peer("client") // h never reaches the last master
		held := must(h.Lock(ctx, "x"))(w)
		after(time.Second)
		w.restart(false, 0)
		after(time.Second)
		w.restart(false, 2)
		after(2 * time.Second)
		w.Log(admin.Of(p.Locker).Masters())
		_ = w.wantOneHolder(held, p.Locker)
		w.noError(held.Err())
		cancel()
		if err := <-done; err == nil {
			w.Error("Admit returned nil, although one master does not vote")
		}
	})
}

// If the script refuses to put a master into quarantine because the master's clock is wrong, the caller gets an error.
func TestRefusedQuarantineIsError(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		l := w.locker()
		m := w.masters.Master(0)
		m.SetClock(time.Minute, 1)
		after(10 * time.Second)
		err := admin.Of(l).Quarantine(w.Context(), m.Addr())
		after(time.Second)
		if text, _ := m.Get(defaultPrefix.Admission()); err == nil && !strings.Contains(text, "state=quarantine") {
			w.Errorf("no error, but the record is %q; the Locker reports %+v", text, admin.Of(l).Masters()[0])
		}
	})
}

// H143: the move of a bucket's slot causes exactly one quarantine. A Locker that is made later over the same
// connections does not begin another.
func TestMoveOfSlotCostsOneQuarantine(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		clk := clock.Runtime()
		p, same := w.pool(transport.WithClock(clk)), redlock.WithClock(clk)
		l := w.readyLocker(p, same)
		w.refuse("MOVED 1 10.0.0.2:7000", 0)
		w.noError(l.Do(w.Context(), "n", nothing))
		after(time.Millisecond) // the reply may come after those of the majority
		w.refuse("", 0)
		after(time.Second)
		w.wantStates(l, "qvv")
		after(time.Second)
		w.wantStates(w.readyLocker(p, same), "qvv")
		after(time.Minute)
		w.wantStates(l, "vvv")
		other := w.readyLocker(p, same)
		after(time.Second)
		w.wantStates(other, "vvv")
		w.wantStates(l, "vvv")
	})
}

// H143: a master cannot begin the quarantine for the move of its slot yet, because its clock is wrong. In the meantime
// an operator changes the max TTL in its record, and the connection on which the move was noticed ends. The master
// must still begin the quarantine before it votes.
func TestOtherNumbersDoNotReplaceQuarantineOfMove(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		clk := clock.Runtime()
		p, same := w.pool(transport.WithClock(clk)), redlock.WithClock(clk)
		l := w.readyLocker(p, same)
		w.setClocks(-time.Minute, 0)
		w.refuse("MOVED 1 10.0.0.2:7000", 0)
		w.noError(l.Do(w.Context(), "n", nothing))
		after(time.Millisecond) // the reply may come after those of the majority
		w.refuse("", 0)
		after(time.Second)
		w.wantStates(l, "bvv")
		w.noError(admin.Of(l).RaiseMaxTTL(w.Context(), time.Minute))
		after(time.Second)
		w.wantStates(l, "bvv")
		w.wantStates(w.readyLocker(p, same), "bvv")
		w.masters.Master(0).CutConnections()
		after(5 * time.Second)
		w.wantStates(l, "bvv")
		w.setClocks(0, 0)
		after(5 * time.Second)
		w.wantStates(l, "qvv")
	})
}

// A client with the restart guard off warns once, in the log and in the trace, if an admission record shows clients
// with the guard on.
func TestGuardOffBesideGuardOn(t *testing.T) {
	for _, on := range []bool{true, false} {
		subtest(t, fmt.Sprint("guard=", on), 3, func(w *cluster) {
			if on {
				w.noError(w.locker().Do(w.Context(), "a", nothing))
			}
			var h logbook
			warnings := 0
			l := w.locker(h.option(), redlock.WithoutRestartGuard(), redlock.WithTrace(&redlockinfo.Trace{
				Event: func(e redlockinfo.Event) {
					if e.Kind == "warning" && strings.Contains(e.Err.Error(), "clients with the guard on") {
						warnings++
					}
				},
			}))
			w.noError(l.Do(w.Context(), "a", nothing))
			after(time.Minute)
			w.restart(true, 0)
			after(time.Minute)
			want := 0
			if on {
				want = 1
			}
			h.wants(w, want, "clients with the guard on")
			equal(w, warnings, want, "warnings in the trace")
		}, memory.Fresh())
	}
}
