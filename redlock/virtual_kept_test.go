package redlock_test

import (
	"math"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Schedules that once broke minimum holds. See redlock.WithMinHold.

// A call that gives up a re-entry does not give up the minimum hold of the re-entered lock, which was acquired. The
// Unlock of the outer lock ends the context of the inner call, so the two coincide.
func TestVirtualAReentryThatIsGivenUpKeepsTheMinimumHold(t *testing.T) {
	virtual(t, 5, func(w *world) {
		p, other := w.peer("p"), w.peer("other")
		b := w.take(other.Locker, "b")
		until := time.Now().Add(minHold)
		k := w.take(p.Locker, "a", redlock.WithMinHold(minHold))
		failed := make(chan error)
		go func() {
			_, err := p.LockAll(k.Context(w.Context()), []string{"a", "b"}) // re-enters a, and waits for b
			failed <- err
		}()
		after(2 * time.Second)
		if err := k.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		if err := <-failed; err == nil {
			t.Error("the context of an unlocked lock acquired another")
		}
		w.unlock(b)
		next := w.take(other.Locker, "a")
		if early := time.Until(until); early > 0 {
			t.Errorf("acquired %v before the end of the minimum hold", early)
		}
		w.unlock(next)
	})
}

// A lock whose Locker is closed before the call returns is not acquired, so the name is not kept.
func TestVirtualLockEndedByCloseIsNotKept(t *testing.T) {
	for _, when := range []string{"attempt", "acquired"} {
		t.Run(when, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				p := w.peer("p")
				redlock.Interrupt(p.Locker, func(moment string) {
					if moment == when {
						_ = p.Close(deadContext())
					}
				})
				_, err := p.Lock(w.Context(), "n", redlock.WithMinHold(minHold))
				w.isError(err, redlock.ErrClosed)
				w.free("n")
			})
		})
	}
}

// A lock that ended between its grant and the return of the call is not acquired, so the name is not kept.
func TestVirtualALockThatEndsBeforeItIsHadIsNotKept(t *testing.T) {
	for how, c := range map[string]struct {
		boot, wall time.Duration
		opts       []redlock.LockOption
	}{
		"the wall clock was set forward": {0, time.Hour, nil},
		"frozen for longer than it may be held": {
			2 * time.Second, 2 * time.Second, []redlock.LockOption{redlock.WithMaxHold(time.Second)},
		},
		"frozen for so long that too little validity is left": {
			5 * time.Second, 5 * time.Second, []redlock.LockOption{redlock.WithMinValidity(9 * time.Second)},
		},
	} {
		t.Run(how, func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				clock := newShiftClock(1)
				once := false
				l := w.locker(redlock.WithClock(clock.clock()))
				redlock.Interrupt(l, func(moment string) {
					if moment == "acquired" && !once {
						once = true
						clock.jump(c.boot, c.wall)
					}
				})
				_, err := l.TryLock(w.Context(), "n", append(c.opts, redlock.WithMinHold(minHold))...)
				if err == nil {
					t.Fatal("the lock was acquired")
				}
				w.free("n")
			})
		})
	}
}

// A healthy lock is extended even if its minimum hold is so long that the drift of the minimum hold exceeds the TTL.
func TestVirtualALockOutlivesALongMinimumHold(t *testing.T) {
	for _, ttl := range []time.Duration{redlock.MinTTL * 5, 300 * time.Millisecond, 3 * time.Second} {
		bubble(t, 5, func(w *world) {
			p := w.peer("p")
			k := w.take(p.Locker, "n", redlock.WithMinHold(29*time.Second), redlock.WithTTL(ttl))
			after(time.Minute)
			if err := k.Err(); err != nil {
				t.Errorf("TTL %v: after a minute without any fault: %v", ttl, err)
			}
			_ = k.Unlock(w.Context())
		})
	}
}

// A very long minimum hold does not overflow to none.
func TestVirtualTheLongestMinimumHoldIsRefused(t *testing.T) {
	virtual(t, 3, func(w *world) {
		for _, l := range []*redlock.Locker{w.locker(), w.locker(redlock.WithPrefix("other"),
			redlock.WithoutRestartGuard())} {
			for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 100 * 99} {
				_, err := l.TryLock(w.Context(), "n", redlock.WithMinHold(d))
				w.isError(err, redlock.ErrInvalid)
			}
		}
	})
}

// A minimum hold that is the default of a Locker can be combined with every option of a call, and WithMinHold(0)
// removes it.
func TestVirtualAMinimumHoldByDefault(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(redlock.WithMinHold(minHold))
		k, err := l.Lock(w.Context(), "n", redlock.WithTries(3))
		if err != nil {
			t.Fatal(err)
		}
		w.unlock(k)
		if !w.kept(l, "n") {
			t.Error("it is not kept")
		}
		first := w.take(l, "m", redlock.WithMinHold(0))
		next := w.call(w.Context(), l, "m", redlock.WithMinHold(0))
		before := w.count("evalsha")
		w.unlock(first)
		second, _ := next.gets(time.Second)
		if w.count("evalsha") != before {
			t.Error("a lock without a minimum hold was not handed off")
		}
		w.unlock(second)
	})
}

// An acquire that a master reads late keeps the name no longer than any other: even if the Unlock could not reach the
// master, the late acquire is refused once it can.
func TestVirtualAKeptReleaseThatIsLateRefusesALateAsk(t *testing.T) {
	virtual(t, 3, func(w *world) {
		p := w.peer("p")
		w.masters.Master(2).DropRequests(1)
		k := w.take(p.Locker, "n", redlock.WithMinHold(minHold), redlock.WithExtension(false))
		p.world.wire.block(2)
		w.masters.Master(2).CutConnections()
		after(10 * time.Millisecond)
		w.unlock(k)
		p.world.wire.block()
		after(10 * time.Second)
		if !w.kept(p.Locker, "n") {
			t.Error("it is not kept")
		}
		asks := 0
		for _, s := range p.world.wire.sent("acquire") {
			if s.master == 2 {
				asks++
				w.replay(s)
			}
		}
		if asks != 1 || w.on("n") != 2 {
			t.Errorf("after %d late asks it is on %d masters", asks, w.on("n"))
		}
		after(minHold - 9*time.Second)
		w.free("n")
	})
}
