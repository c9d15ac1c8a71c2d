package redlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// Schedules that were found by reading the code, and that broke a guarantee.

// While Admit waits for the last server to start, the others vote and clients lock. One of those restarts empty: the
// pending Admit must not let it vote. The caller's assertion was true only when it called.
func TestAnAdmitNowThatWaitsAdmitsNoMasterThatForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(3, memory.Fresh())
		t.Cleanup(m.Close)
		m.Master(2).Stop() // this master starts later than the others
		operator := newParty(t, m, nil)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- operator.Admin().Admit(ctx) }()
		passes(time.Second)
		h, p := newParty(t, m, []int{2}), newParty(t, m, nil) // h never reaches the last master
		held, err := h.Lock(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		passes(time.Second)
		m.Master(0).Restart(false)
		passes(time.Second)
		m.Master(2).Restart(false)
		passes(2 * time.Second)
		t.Log(p.Masters())
		p.mustNotTake(held)
		cancel()
		if err := <-done; err == nil {
			t.Error("the call ended before its context, although one master does not vote")
		}
	})
}

// If the script refuses to put a master into quarantine because its clock is off, the caller gets an error.
func TestAQuarantineThatWasRefusedIsAnError(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		m := w.masters.Master(0)
		m.SetClock(time.Minute, 1)
		after(10 * time.Second)
		err := l.Admin().Quarantine(w.Context(), m.Addr())
		after(time.Second)
		if text, _ := m.Get(defaultPrefix.Admission()); err == nil && !strings.Contains(text, "state=quarantine") {
			w.Errorf("no error, and its record is %q; the Locker has it as %+v", text, l.Masters()[0])
		}
	})
}

// A virtual machine stops for a minute after it was refused a lock. Its ballots are a minute old. All masters show that
// by their time, and the client uses it, although the reading from before the freeze was more exact.
func TestAfterAFreezeAFreeNameIsHadAtOnce(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(map[bool]string{false: "fresh from a heartbeat", true: "refused since"}[refused], func(t *testing.T) {
			onStage(t, 3, func(s *stage) {
				s.each(func(m *memory.Master) { m.Delay(200 * time.Microsecond) })
				a, b := s.program(), s.program()
				a.take("n")
				if refused {
					if _, err := b.TryLock(s.Context(), "n"); err == nil {
						s.Fatal("two holders")
					}
				}
				s.freeze(b, time.Minute, false)
				began := time.Now()
				var k *redlock.Lock
				var err error
				fails := 0
				for {
					if k, err = b.TryLock(s.Context(), "free"); err == nil {
						break
					}
					if fails++; fails == 1 {
						s.Logf("%.300v", err)
					}
					<-time.After(100 * time.Millisecond)
				}
				if fails > 0 {
					s.Errorf("%d TryLocks of a free name failed for %v, with all masters well", fails, time.Since(began))
				}
				_ = k.Unlock(s.Context())
			})
		})
	}
}

// H28: an inner lock neither shortens nor ends the outer one, even if the masters are out of memory when it is
// unlocked: they refuse the new depth, but still extend the lock.
func TestAnInnerUnlockOnFullMastersLeavesTheOuterLock(t *testing.T) {
	t.Parallel()
	for _, inner := range []bool{false, true} {
		t.Run(map[bool]string{false: "locked once", true: "with an inner lock"}[inner], func(t *testing.T) {
			t.Parallel()
			servers, _, l := masters(t, 3, redlock.WithTTL(time.Second))
			ctx := bounded(t)
			outer := held(t)(l.Lock(ctx, "x"))
			var in *redlock.Lock
			if inner {
				in = held(t)(l.Lock(outer.Context(ctx), "x"))
			}
			for _, s := range servers {
				c := must[redis.Conn](t)(redis.DialURL(s.URL()))
				if _, err := c.Do("CONFIG", "SET", "maxmemory", "1"); err != nil {
					t.Fatal(err)
				}
				c.Close()
			}
			if inner {
				t.Logf("inner unlock: %.200v", in.Unlock(ctx))
			}
			<-time.After(3 * time.Second)
			if err := outer.Err(); err != nil {
				t.Errorf("the outer lock, which all masters had: %v", err)
			}
		})
	}
}

// An unbounded call has won, and before it returns two of three masters restart empty, or the machine sleeps for half
// of its TTL. The call retries until its context ends.
func TestALockWithoutABoundDoesNotGiveUp(t *testing.T) {
	for _, how := range []string{"restart", "sleep"} {
		t.Run(how, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				var armed atomic.Bool
				armed.Store(true)
				c := newShiftClock(1)
				l := w.locker(redlock.WithClock(c.clock()))
				redlock.Interrupt(l, func(moment string) {
					if moment != "attempt" || !armed.CompareAndSwap(true, false) { // stop the client here once
						return
					}
					if how == "sleep" {
						c.jump(6*time.Second, 6*time.Second)
						return
					}
					w.each(func(_ int, m *memory.Master) { m.Restart(false) }, 0, 1)
					<-time.After(100 * time.Millisecond)
				})
				ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
				defer cancel()
				began := time.Now()
				k, err := l.Lock(ctx, "x")
				if err != nil {
					w.Errorf("after %v of 2 minutes: %v", time.Since(began), err)
					return
				}
				_ = k.Unlock(w.Context()) // if two masters have restarted it may have been lost since
			})
		})
	}
}

// A backoff panics in an import, in a program that recovers: the shares already taken over are released.
func TestAPanicInAnImportLeavesNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		giver := w.locker()
		text := w.export(w.take(giver, "x", redlock.WithTTL(30*time.Second)))
		w.stop(1, 2)
		l := w.locker(redlock.WithRetry(redlock.Retry{Pause: func(int) time.Duration { panic("a policy") }}))
		if !recovered(func() { _, _ = l.Import(w.Context(), text) }) {
			t.Error("nothing panicked")
		}
		after(2 * time.Second)
		if id, _, left := w.masters.Master(0).Holds("x"); id != "" {
			t.Errorf("the name stays locked for no client for %v", left)
		}
	})
}

// Two clients import one handle at once (a job that was delivered twice), while one of three masters is down. Each gets
// one master. They give up when the exported lock must have expired, and others get the name.
func TestTwoImportsOfOneHandleEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		giver, a, b, other := newParty(t, m, nil), newParty(t, m, nil), newParty(t, m, nil), newParty(t, m, nil)
		text, err := giver.lock().Export()
		if err != nil {
			t.Fatal(err)
		}
		m.Master(2).Stop()
		passes(time.Second)
		a.pause(1).Store(int64(2 * time.Millisecond))
		b.pause(0).Store(int64(2 * time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		var took [2]time.Duration
		var errs [2]error
		var wg sync.WaitGroup
		for i, f := range []*party{a, b} {
			wg.Go(func() {
				_, errs[i] = f.Import(ctx, text)
				took[i] = time.Since(began)
			})
		}
		got := make(chan error, 1)
		go func() {
			k, err := other.Lock(ctx, "x")
			if err == nil {
				_ = k.Unlock(ctx)
			}
			got <- err
		}()
		wg.Wait()
		if errs[0] != nil && errs[1] != nil && took[0] > time.Minute && took[1] > time.Minute {
			t.Errorf("with two of three masters up the imports ended after %v: %v; and %v: %v", took[0], errs[0],
				took[1], errs[1])
		}
		if err := <-got; err != nil {
			t.Errorf("waiter: %v", err)
		}
	})
}

// An import comes late, while one of three masters is down: the first master still has the lock, and on the second it
// has expired. The import is neither won nor lost, and keeps its share for at most the max TTL.
func TestALateImportEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, 3)
		giver, a, other := newParty(t, m, nil), newParty(t, m, nil), newParty(t, m, nil)
		m.Master(2).Stop()
		passes(time.Second)
		text, err := giver.lock().Export()
		if err != nil {
			t.Fatal(err)
		}
		a.pause(1).Store(int64(20 * time.Millisecond))
		passes(redlock.DefaultTTL - 10*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began, late := time.Now(), make(chan error, 1)
		go func() {
			_, err := a.Import(ctx, text)
			late <- err
		}()
		_, err = other.Lock(ctx, "x")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("waiter waited for %v: %v", took, err)
		}
		cancel()
		t.Log("the import:", <-late)
	})
}

// When the wait limit expires, a call fails with ErrHeld or ErrNoQuorum and not with context.DeadlineExceeded, even if
// it is in no queue.
func TestTheWaitLimitOfCallsThatDoNotStandInLine(t *testing.T) {
	virtual(t, 3, func(w *world) {
		holder, l := w.locker(), w.locker()
		k := w.take(holder, "x")
		own := w.take(l, "own")
		limit := redlock.WithWaitLimit(300 * time.Millisecond)
		check := func(what string, want error, call func() error) {
			began := time.Now()
			err := call()
			if !errors.Is(err, want) || errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("%s: after %v: %v; want %v", what, time.Since(began), err, want)
			}
		}
		check("Lock with tries, held", redlock.ErrHeld, func() error {
			_, err := l.Lock(w.Context(), "x", limit, redlock.WithTries(1000))
			return err
		})
		check("Lock with a backoff, held", redlock.ErrHeld, func() error {
			_, err := l.Lock(w.Context(), "x", limit, redlock.WithRetry(redlock.Retry{
				Pause: func(int) time.Duration { return 50 * time.Millisecond },
			}))
			return err
		})
		w.hang(0, 1, 2)
		check("TryLock, no answer", redlock.ErrNoQuorum, func() error {
			_, err := l.TryLock(w.Context(), "free", limit)
			return err
		})
		w.resume(0, 1, 2)
		after(5 * time.Second)
		w.hang(0, 1, 2)
		check("re-entry, no answer", redlock.ErrNoQuorum, func() error {
			_, err := l.Lock(own.Context(w.Context()), "own", limit)
			return err
		})
		w.resume(0, 1, 2)
		after(5 * time.Second)
		_ = k.Unlock(w.Context())
		_ = own.Unlock(w.Context())
	})
}

// WithWaitLimit also bounds an import.
func TestTheWaitLimitOfAnImport(t *testing.T) {
	virtual(t, 3, func(w *world) {
		text := w.export(w.take(w.locker(), "x"))
		l := w.locker()
		w.stop(0, 1)
		after(time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		_, err := l.Import(ctx, text, redlock.WithWaitLimit(time.Second))
		if took := time.Since(began); took > 2*time.Second {
			w.Errorf("a limit of 1 s, and it ended after %v: %v", took, err)
		}
	})
}
