package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Tests of redlock.WithMinHold.

const minHold = 12 * time.Second // longer than the default TTL, shorter than the default max TTL

// keptUntil fails the test if l acquires name before end, or much later than end. If no release has corrected the
// deadlines, they allow for a grant that comes late.
func (w *cluster) keptUntil(l *redlock.Locker, name string, end time.Time, released bool) {
	w.Helper()
	w.isError(errOf(l.TryLock(w.Context(), name)), redlock.ErrHeld)
	lock := must(l.Lock(w.Context(), name))(w)
	late := time.Since(end)
	most := minHold/100 + 12*time.Millisecond // the drift, and a round trip
	if !released {
		most += 1500 * time.Millisecond
	}
	if late < 0 || late > most {
		w.Errorf("acquired %v after the end of the minimum hold", late)
	}
	w.noError(lock.Unlock(w.Context()))
	w.nothingLeft(name)
}

// kept reports whether an inspection shows that name is kept after its unlock.
func (w *cluster) kept(l *redlock.Locker, name string) bool {
	w.Helper()
	h := must(l.Inspect(w.Context(), name))(w)
	if h.Kept && (h.Token == 0 || h.Left <= 0) {
		w.Errorf("the inspection of a kept name lacks the token or the time left: %+v", h)
	}
	return h.Kept
}

// H126: regardless of how a lock ends before the end of its minimum hold, the masters keep the name, and no client
// acquires it before that time.
func TestMinHoldKeepsName(t *testing.T) {
	for how, end := range map[string]func(w *cluster, p *peer, k *redlock.Lock){
		"unlocked":         func(w *cluster, _ *peer, k *redlock.Lock) { w.noError(k.Unlock(w.Context())) },
		"its Locker ended": func(w *cluster, p *peer, _ *redlock.Lock) { _ = p.Close() },
		"its client died":  func(_ *cluster, p *peer, _ *redlock.Lock) { p.kill() },
		"its max hold was reached": func(w *cluster, _ *peer, k *redlock.Lock) { // H169
			after(6 * time.Second)
			w.isError(k.Unlock(w.Context()), redlock.ErrMaxHold)
		},
		"unlocked on only two of five masters": func(w *cluster, _ *peer, k *redlock.Lock) {
			w.hang(0, 1, 2)
			_ = k.Unlock(w.Context())
			w.resume(0, 1, 2)
		},
		"a master restarted empty, and was repaired": func(w *cluster, _ *peer, k *redlock.Lock) {
			w.stop(1)
			w.restart(false, 1)
			after(4 * time.Second)
			if w.on("n") != 5 {
				w.Error("the lock was not repaired on the restarted master")
			}
			w.noError(k.Unlock(w.Context()))
		},
		"unlocked with a context that has ended": func(w *cluster, _ *peer, k *redlock.Lock) {
			_ = k.Unlock(deadContext())
		},
	} {
		subtest(t, how, 5, func(w *cluster) {
			p, other := w.peer("p"), w.peer("other")
			until := time.Now().Add(minHold)
			k := must(p.Lock(w.Context(), "n", redlock.WithMinHold(minHold), redlock.WithTTL(3*time.Second),
				redlock.WithMaxHold(6*time.Second)))(w)
			after(time.Second)
			if w.kept(other.Locker, "n") {
				w.Error("a held name is reported as kept")
			}
			end(w, p, k)
			w.keptUntil(other.Locker, "n", until, how != "its client died")
		})
	}
}

// Inspect shows that an unlocked name is kept, and its last holder. It is enough that one master has received the
// unlock, since the others may never receive it.
func TestInspectShowsKeptName(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p"), w.peer("other")
		k := must(p.Lock(w.Context(), "n", redlock.WithMinHold(minHold)))(w)
		after(time.Second) // all five masters have the lock
		w.hang(1, 2, 3, 4)
		_ = k.Unlock(w.Context())
		w.resume(1, 2)
		h := must(other.Inspect(w.Context(), "n"))(w)
		if !h.Kept || h.Token != k.Token() || h.On < 3 || h.Left > minHold || h.Left < minHold-2*time.Second {
			w.Errorf("Inspect returned %+v", h)
		}
		w.isError(k.Err(), redlock.ErrReleased)
		w.isError(k.Extend(w.Context()), redlock.ErrReleased)
	})
}

// After the Unlock no call of the same client re-enters the lock, gets it by a local hand-off, or is said to hold it.
func TestKeptNameIsNotHandedOff(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p := w.peer("p")
		until := time.Now().Add(minHold)
		k := must(p.Lock(w.Context(), "n", redlock.WithMinHold(minHold)))(w)
		next := w.goLock(w.Context(), p, "n")
		inner := must(p.Lock(k.Context(w.Context()), "n", redlock.WithReentry()))(w)
		w.noError(inner.Unlock(w.Context()))
		if w.kept(p.Locker, "n") {
			w.Error("the Unlock of an inner lock ended the hold")
		}
		within := context.WithoutCancel(k.Context(w.Context()))
		w.noError(k.Unlock(w.Context()))
		w.isError(errOf(p.TryLock(within, "n")), redlock.ErrReleased)
		err := errOf(p.TryLock(w.Context(), "n"))
		w.isError(err, redlock.ErrHeld)
		if strings.Contains(err.Error(), "another call of this Locker") {
			w.Errorf("the error for a kept name is %v", err)
		}
		got := next.mustLock(time.Minute)
		if early := time.Until(until); early > 0 || got.Token() <= k.Token() {
			w.Errorf("the next call of the client had the lock %v before the end of the minimum hold, with token %d "+
				"after %d", early, got.Token(), k.Token())
		}
		w.noError(got.Unlock(w.Context()))
	})
}

// The masters do not keep a name that a call has not acquired: neither after a roll-back, nor after a LockAll that
// failed.
func TestFailedCallsKeepNothing(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p"), w.peer("other")
		b := must(other.Lock(w.Context(), "b"))(w)
		keep := redlock.WithMinHold(minHold)
		w.isError(errOf(p.TryLockAll(w.Context(), []string{"a", "b", "c"}, keep)), redlock.ErrHeld)
		w.wantFree("a", "c")
		w.noError(b.Unlock(w.Context()))

		w.hang(0, 1, 2)
		w.isError(errOf(p.TryLock(w.withTimeout(100*time.Millisecond), "n", keep)), context.DeadlineExceeded)
		w.resume(0, 1, 2)
		w.wantFree("n")

		w.delay(200 * time.Millisecond)
		w.isError(errOf(p.TryLock(w.Context(), "n", redlock.WithTTL(2*time.Second), redlock.WithMinHold(2*time.Second),
			redlock.WithMinValidity(1800*time.Millisecond))), redlock.ErrTooSlow)
		w.delay(0)
		after(500 * time.Millisecond) // the roll-back was slow
		w.wantFree("n")

		locks := must(p.TryLockAll(w.Context(), []string{"a", "b"}, keep))(w)
		w.noError(locks.Unlock(w.Context()))
		after(10 * time.Millisecond)
		if !w.kept(other.Locker, "a") || !w.kept(other.Locker, "b") {
			w.Error("names of a LockAll that were locked and unlocked are not kept")
		}
	})
}

// The event that reports the end of a lock contains the time for which the name is still kept.
func TestTraceHasMinHold(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		events := make(chan redlockinfo.Event, 3)
		l := w.locker(redlock.WithTrace(redlock.On("released", func(i redlockinfo.Event) { events <- i })))
		end := func(opts ...redlock.LockOption) redlockinfo.Event {
			k := must(l.Lock(w.Context(), "n", opts...))(w)
			after(time.Second)
			w.noError(k.Unlock(w.Context()))
			return <-events
		}
		if i := end(); i.Left > 10*time.Second || i.Held != time.Second {
			w.Errorf("the event is %+v", i)
		}
		if i := end(redlock.WithMinHold(minHold)); i.Left < minHold-time.Second || i.Left > minHold || i.Held != time.Second {
			w.Errorf("the event is %+v", i)
		}
		exported := must(l.Lock(w.Context(), "m", redlock.WithMinHold(minHold)))(w)
		must(exported.Export())(w)
		if i := <-events; i.Left > minHold || !errors.Is(i.Err, redlock.ErrExported) {
			w.Errorf("the event is %+v", i)
		}
	})
}

// Schedules that once broke minimum holds. See redlock.WithMinHold.

// A call that gives up a re-entry does not end the minimum hold of the lock that it re-entered. Here the Unlock of the
// outer lock ends the context of the inner call, so the end of the hold and the end of the call coincide.
func TestAbandonedReentryKeepsMinHold(t *testing.T) {
	virtual(t, 5, func(w *cluster) {
		p, other := w.peer("p"), w.peer("other")
		b := must(other.Lock(w.Context(), "b"))(w)
		until := time.Now().Add(minHold)
		k := must(p.Lock(w.Context(), "a", redlock.WithMinHold(minHold)))(w)
		failed := make(chan error)
		go func() {
			_, err := p.LockAll(k.Context(w.Context()), []string{"a", "b"}, redlock.WithReentry())
			failed <- err
		}()
		after(2 * time.Second)
		w.noError(k.Unlock(w.Context()))
		if err := <-failed; err == nil {
			w.Error("LockAll succeeded with the context of an unlocked lock")
		}
		w.noError(b.Unlock(w.Context()))
		next := must(other.Lock(w.Context(), "a"))(w)
		atMost(w, time.Until(until), 0, "time until the end of the minimum hold")
		w.noError(next.Unlock(w.Context()))
	})
}

// A lock that ended before the call returned, because the Locker was closed or a clock jumped, is not acquired, so the
// name is not kept for the minimum hold.
func TestLockEndedBeforeReturnIsNotKept(t *testing.T) {
	for how, c := range map[string]struct {
		moment     string
		boot, wall time.Duration // how far the clocks jump at this moment; 0: the Locker is closed
		opts       []redlock.LockOption
	}{
		"closed during the attempt":      {"attempt", 0, 0, nil},
		"closed after the grant":         {"acquired", 0, 0, nil},
		"the wall clock was set forward": {"acquired", 0, time.Hour, nil},
		"frozen for longer than it may be held": {
			"acquired", 2 * time.Second, 2 * time.Second, []redlock.LockOption{redlock.WithMaxHold(time.Second)},
		},
		"frozen for so long that too little validity is left": {
			"acquired", 5 * time.Second, 5 * time.Second, []redlock.LockOption{redlock.WithMinValidity(9 * time.Second)},
		},
	} {
		subtest(t, how, 5, func(w *cluster) {
			clock, once := newShiftClock(1), false
			l := w.locker(redlock.WithClock(clock.clock()))
			redlock.Interrupt(l, func(moment string) {
				switch {
				case moment != c.moment || once:
				case c.wall > 0:
					once = true
					clock.jump(c.boot, c.wall)
				default:
					go l.Close()
					synctest.Wait()
				}
			})
			_, err := l.TryLock(w.Context(), "n", append(c.opts, redlock.WithMinHold(minHold))...)
			if err == nil || errors.Is(err, redlock.ErrClosed) != (c.wall == 0) {
				w.Errorf("TryLock returned %v", err)
			}
			w.wantFree("n")
		})
	}
}

// A healthy lock is extended even if its minimum hold is so long that the drift of the minimum hold exceeds the TTL.
func TestLockOutlivesLongMinHold(t *testing.T) {
	for _, ttl := range []time.Duration{redlock.MinTTL * 5, 300 * time.Millisecond, 3 * time.Second} {
		bubble(t, 5, func(w *cluster) {
			p := w.peer("p")
			k := must(p.Lock(w.Context(), "n", redlock.WithMinHold(29*time.Second), redlock.WithTTL(ttl)))(w)
			after(time.Minute)
			w.noError(k.Err())
			_ = k.Unlock(w.Context())
		})
	}
}

// H177: a minimum hold counts from the grant, also for the deadline in ballots, which is the only one that counts on a
// master whose clock jumps. The holder's client dies, and a third master has lost the key.
func TestMinHoldCountsFromTheGrant(t *testing.T) {
	virtual(t, 3, func(w *cluster) {
		const d = 5 * time.Second
		w.delay(200*time.Millisecond, 0, 1, 2)
		holder, rival := w.peer("holder"), w.locker()
		w.must(rival.WaitReady(w.Context()))
		must(holder.Lock(w.Context(), "n", redlock.WithMinHold(d), redlock.WithTTL(d)))(w)
		granted := time.Now()
		holder.kill()
		w.setClocks(12*time.Second, 0)
		w.masters.Master(2).Evict("n")
		w.delay(0, 0, 1, 2)
		for ; time.Since(granted) < d; after(10 * time.Millisecond) {
			if _, err := rival.Lock(w.Context(), "n", redlock.WithTries(1)); err == nil {
				w.Fatalf("a rival acquired the name %v after the grant, before the minimum hold of %v", time.Since(granted), d)
			}
		}
		must(rival.Lock(w.Context(), "n"))(w)
	})
}
