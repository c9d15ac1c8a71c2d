package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Tests of redlock.WithMinHold.

const minHold = 12 * time.Second // longer than the default TTL, shorter than the default max TTL

// keptUntil fails the test if l acquires name before a given time, or much later.
func (w *world) keptUntil(l *redlock.Locker, name string, until time.Time) {
	w.Helper()
	if _, err := l.TryLock(w.Context(), name); !errors.Is(err, redlock.ErrHeld) {
		w.Errorf("before the minimum hold has ended: %v, want ErrHeld", err)
	}
	lock := w.take(l, name)
	late := time.Since(until)
	if drift := minHold/100 + 2*time.Millisecond; late < 0 || late > drift+10*time.Millisecond {
		w.Errorf("acquired %v after the end of the minimum hold", late)
	}
	w.unlock(lock)
	w.nothingLeft(name)
}

// kept reports whether an inspection shows name as kept.
func (w *world) kept(l *redlock.Locker, name string) bool {
	w.Helper()
	h, err := l.Inspect(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	if h.Kept && (h.Token == 0 || h.Left <= 0) {
		w.Errorf("%+v", h)
	}
	return h.Kept
}

// H126: however a lock ends before its minimum hold, the masters keep the name, and no client acquires it earlier.
func TestVirtualAMinimumHoldKeepsTheName(t *testing.T) {
	for how, end := range map[string]func(w *world, p *peer, k *redlock.Lock){
		"unlocked":         func(w *world, _ *peer, k *redlock.Lock) { w.unlock(k) },
		"its Locker ended": func(w *world, p *peer, _ *redlock.Lock) { _ = p.Close(w.Context()) },
		"its program died": func(_ *world, p *peer, _ *redlock.Lock) { p.kill() },
		"unlocked when only two of five masters hear of it": func(w *world, _ *peer, k *redlock.Lock) {
			w.hang(0, 1, 2)
			_ = k.Unlock(w.Context())
			w.resume(0, 1, 2)
		},
		"a master restarted empty, and was repaired": func(w *world, _ *peer, k *redlock.Lock) {
			w.masters.Master(1).Stop()
			w.masters.Master(1).Restart(false)
			after(4 * time.Second)
			if w.on("n") != 5 {
				w.Error("it was not repaired")
			}
			w.unlock(k)
		},
		"unlocked with a context that has ended": func(w *world, _ *peer, k *redlock.Lock) {
			ctx, cancel := context.WithCancel(w.Context())
			cancel()
			_ = k.Unlock(ctx)
		},
	} {
		t.Run(how, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				p, other := w.peer("p"), w.peer("other")
				until := time.Now().Add(minHold)
				k := w.take(p.Locker, "n", redlock.WithMinHold(minHold), redlock.WithTTL(3*time.Second))
				after(time.Second)
				if w.kept(other.Locker, "n") {
					t.Error("a held name is reported as kept")
				}
				end(w, p, k)
				w.keptUntil(other.Locker, "n", until)
			})
		})
	}
}

// An inspection shows that an unlocked name is kept, and its last holder.
func TestVirtualAKeptNameIsToldAsKept(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p"), w.peer("other")
		k := w.take(p.Locker, "n", redlock.WithMinHold(minHold))
		w.unlock(k)
		h, err := other.Inspect(w.Context(), "n")
		if err != nil || !h.Kept || h.Token != k.Token() || h.On < 3 || h.Left > minHold || h.Left < minHold-time.Second {
			t.Errorf("%+v, %v", h, err)
		}
		who, err := other.Inspect(w.Context(), "n")
		if err != nil || !who.Kept {
			t.Errorf("%+v, %v", who, err)
		}
		w.isError(k.Err(), redlock.ErrReleased)
		w.isError(k.Extend(w.Context()), redlock.ErrReleased)
	})
}

// One master that got the unlock is enough to report it: the others may never get it.
func TestVirtualAKeptNameIsToldByOneMaster(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p"), w.peer("other")
		k := w.take(p.Locker, "n", redlock.WithMinHold(minHold))
		after(time.Second) // all five masters have the lock
		w.hang(1, 2, 3, 4)
		_ = k.Unlock(w.Context())
		w.resume(1, 2)
		if h, err := other.Inspect(w.Context(), "n"); err != nil || !h.Kept {
			t.Errorf("an unlocked name is reported as %+v, %v", h, err)
		}
	})
}

// After the Unlock no call of the same client re-enters the lock or gets it by a local hand-off.
func TestVirtualAKeptNameIsForNobodyOfItsProgram(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p := w.peer("p")
		until := time.Now().Add(minHold)
		k := w.take(p.Locker, "n", redlock.WithMinHold(minHold))
		next := w.call(w.Context(), p.Locker, "n")
		inner, err := p.Lock(k.Context(w.Context()), "n")
		if err != nil {
			t.Fatal(err)
		}
		w.unlock(inner)
		if w.kept(p.Locker, "n") {
			t.Error("the Unlock of an inner lock ended it")
		}
		within := context.WithoutCancel(k.Context(w.Context()))
		w.unlock(k)
		if _, err := p.TryLock(within, "n"); !errors.Is(err, redlock.ErrReleased) {
			t.Errorf("a re-entry: %v, want ErrReleased", err)
		}
		if _, err := p.TryLock(w.Context(), "n"); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("another lock of the client: %v, want ErrHeld", err)
		}
		got, _ := next.gets(time.Minute)
		if early := time.Until(until); early > 0 || got.Token() <= k.Token() {
			t.Errorf("the next call of the client had it %v before the end, with token %d after %d", early, got.Token(),
				k.Token())
		}
		w.unlock(got)
	})
}

// A name that the caller does not get is not kept: after a roll-back, and after a LockAll that failed.
func TestVirtualWhatIsNotHadIsNotKept(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p"), w.peer("other")
		free := func(what string, names ...string) {
			t.Helper()
			after(100 * time.Millisecond)
			for _, name := range names {
				if w.on(name) > 0 {
					t.Errorf("%s: %s is on %d masters", what, name, w.on(name))
				}
			}
		}
		b := w.take(other.Locker, "b")
		if _, err := p.TryLockAll(w.Context(), []string{"a", "b", "c"}, redlock.WithMinHold(minHold)); !errors.Is(err,
			redlock.ErrHeld) {
			t.Errorf("LockAll: %v, want ErrHeld", err)
		}
		free("several, one of them held", "a", "c")
		w.unlock(b)

		w.hang(0, 1, 2)
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.TryLock(ctx, "n", redlock.WithMinHold(minHold)); err == nil {
			t.Error("locked with two of five masters")
		}
		w.resume(0, 1, 2)
		free("a minority", "n")

		w.delay(400 * time.Millisecond) // a round trip
		if _, err := p.TryLock(w.Context(), "n", redlock.WithTTL(time.Second), redlock.WithMinHold(minHold),
			redlock.WithMinValidity(900*time.Millisecond)); err == nil {
			t.Error("locked with less than the required validity")
		}
		w.delay(0)
		after(time.Second)
		free("too late", "n")

		locks, err := p.TryLockAll(w.Context(), []string{"a", "b"}, redlock.WithMinHold(minHold))
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		after(10 * time.Millisecond)
		if !w.kept(other.Locker, "a") || !w.kept(other.Locker, "b") {
			t.Error("names of a LockAll that were locked and unlocked are not kept")
		}
	})
}

// The event of a trace reports how long a name is kept.
func TestVirtualATraceIsToldWhatIsKept(t *testing.T) {
	virtual(t, 3, func(w *world) {
		told := make(chan redlockinfo.Event, 3)
		l := w.locker(redlock.WithTrace(redlock.On("released", func(i redlockinfo.Event) { told <- i })))
		end := func(opts ...redlock.LockOption) redlockinfo.Event {
			k := w.take(l, "n", opts...)
			after(time.Second)
			w.unlock(k)
			return <-told
		}
		if i := end(); i.Left > 10*time.Second || i.Held != time.Second {
			t.Errorf("%+v", i)
		}
		if i := end(redlock.WithMinHold(minHold)); i.Left < minHold-time.Second || i.Left > minHold || i.Held != time.Second {
			t.Errorf("%+v", i)
		}
		exported := w.take(l, "m", redlock.WithMinHold(minHold))
		w.export(exported)
		if i := <-told; i.Left > minHold || !errors.Is(i.Err, redlock.ErrExported) {
			t.Errorf("%+v", i)
		}
	})
}

// A minimum hold that the masters cannot keep is refused before anything is sent.
func TestVirtualMinimumHoldsThatCannotBe(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		before := w.count("evalsha")
		for _, d := range []time.Duration{-1, redlock.DefaultMaxTTL, 100 * 365 * 24 * time.Hour} {
			_, err := l.TryLock(w.Context(), "n", redlock.WithMinHold(d))
			w.isError(err, redlock.ErrInvalid)
		}
		if w.count("evalsha") != before {
			t.Error("something was sent")
		}
		w.unlock(w.take(l, "n", redlock.WithMinHold(redlock.DefaultMaxTTL*98/100-2*time.Millisecond)))
	})
}
