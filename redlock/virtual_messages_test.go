package redlock_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A picture is the state of a name on one master.
type picture struct {
	id, fence string
	depth     int
	left      time.Duration
	keys      []string
}

func pictureOf(m *memory.Master, name string) (p picture) {
	p.id, p.depth, p.left = m.Holds(name)
	p.fence, _ = m.Get(defaultPrefix.Fence(name))
	p.keys = m.Keys()
	return p
}

// H01: a message that is delivered twice changes neither the state nor the answer, at any depth.
func TestVirtualARepeatedMessageChangesNothing(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker(redlock.WithTTL(9 * time.Second))
		repeat := func(script string, answer string) {
			w.Helper()
			synctest.Wait()
			all := w.wire.sent(script)
			if len(all) == 0 {
				w.Fatalf("no %s was sent", script)
			}
			for _, s := range all[len(all)-3:] {
				m := w.masters.Master(s.master)
				before := pictureOf(m, "a")
				for range 2 {
					if got := fmt.Sprint(w.replay(s)); got != answer {
						w.Errorf("%s repeated on master %d: %s, want %s", script, s.master, got, answer)
					}
				}
				if now := pictureOf(m, "a"); !reflect.DeepEqual(now, before) {
					w.Errorf("%s repeated on master %d: %+v, before %+v", script, s.master, now, before)
				}
			}
		}
		k := w.take(l, "a")
		repeat("acquire", "1")
		after(3 * time.Second)
		repeat("extend", "1")
		inner := w.takeWith(l, k.Context(w.Context()), "a")
		repeat("extend", "1") // depth 2
		repeat("acquire", "1")
		if err := inner.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
		repeat("extend", "1") // depth 1
		if err := k.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
		repeat("release", "0")
		if n := w.on("a"); n != 0 {
			w.Errorf("still on %d masters", n)
		}
	})
}

// takeWith locks name with the context of the caller.
func (w *world) takeWith(
	l *redlock.Locker, ctx context.Context, name string, opts ...redlock.LockOption,
) *redlock.Lock {
	w.Helper()
	k, err := l.Lock(ctx, name, opts...)
	if err != nil {
		w.Fatalf("lock %s: %v", name, err)
	}
	return k
}

// H02, H03: masters hang when an attempt reaches them. Messages in their old connections are executed when they resume,
// before or after the pending release on the new ones: none of them holds the name.
func TestVirtualRollbackReachesMastersThatHungAndResume(t *testing.T) {
	for hung := 1; hung <= 3; hung++ {
		t.Run(fmt.Sprint(hung, " of 3"), func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				l := w.locker(redlock.WithTTL(30 * time.Second))
				for i := range hung {
					w.hang(i)
				}
				ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
				defer cancel()
				k, err := l.TryLock(ctx, "a")
				if hung > 1 {
					w.isError(err, context.DeadlineExceeded)
				} else if err != nil {
					w.Fatal(err)
				} else if err := k.Unlock(w.Context()); err != nil {
					w.Error(err)
				}
				after(3 * time.Second)
				w.resume()
				after(5 * time.Second)
				if n := w.on("a"); n != 0 {
					w.Errorf("5 s after the masters are back the name is held on %d", n)
				}
				if _, err := w.locker().TryLock(w.Context(), "a"); err != nil {
					w.Error(err)
				}
			})
		})
	}
}

// H10: a quorum that is reached too late is ErrTooSlow and is rolled back. The start is measured for each attempt, so
// that the next one, when the masters are fast again, has its full validity.
func TestVirtualTooLittleValidityIsTooSlowAndRolledBack(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.over(w.pool(pool.WithTimeout(20 * time.Second)))
		w.delay(3 * time.Second)
		start := time.Now()
		_, err := l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrTooSlow)
		w.isError(err, redlock.ErrNoQuorum)
		w.notError(err, redlock.ErrHeld)
		if took := time.Since(start); took != 6*time.Second {
			w.Errorf("it took %v", took)
		}
		after(6 * time.Second)
		if n := w.on("a"); n != 0 {
			w.Errorf("still on %d masters", n)
		}
		timer := time.AfterFunc(5*time.Second, func() { w.delay(0) }) // during the first attempt: its replies are late
		defer timer.Stop()
		w.wire.clear()
		k := w.take(l, "a")
		first := w.wire.sent("acquire")[0].at
		if age := time.Since(first); age < 5*time.Second {
			w.Errorf("the first attempt began only %v ago", age)
		}
		if left := k.Remaining(); left < 9*time.Second {
			w.Errorf("only %v of validity: the start is that of an earlier attempt", left)
		}
	})
}

// H11: the validity is never more than TTL - elapsed - drift, for any delays, and the keys of a majority outlive it.
func TestVirtualValidityIsTTLLessElapsedLessDrift(t *testing.T) {
	virtual(t, 5, func(w *world) {
		l := w.over(w.pool(pool.WithTimeout(20*time.Second)), redlock.WithExtension(false))
		random := seeded(11)
		for n := range rounds(300, 60) {
			ttl := 100*time.Millisecond + time.Duration(random.Int64N(int64(20*time.Second)))
			w.each(func(_ int, m *memory.Master) { m.Delay(time.Duration(random.Int64N(int64(ttl) / 4))) })
			w.wire.clear()
			k, err := l.TryLock(w.Context(), "a", redlock.WithTTL(ttl))
			if err != nil {
				w.notError(err, redlock.ErrHeld)
			} else {
				elapsed := time.Since(w.wire.sent("acquire")[0].at)
				drift := ttl/100 + 2*time.Millisecond
				if left := k.Remaining(); left > ttl-elapsed-drift {
					w.Fatalf("case %d: %v left of %v after %v", n, left, ttl, elapsed)
				}
				outlive := 0
				w.each(func(_ int, m *memory.Master) {
					if _, _, left := m.Holds("a"); left > k.Remaining() {
						outlive++
					}
				})
				if outlive < 3 {
					w.Fatalf("case %d: the keys of only %d masters outlive the validity", n, outlive)
				}
				_ = k.Unlock(w.Context())
			}
			w.delay(0)
			after(ttl)
			after(20 * time.Second)
		}
	})
}

// H15: the validity of an extension counts from its start, not from its answer, and an answer after the end does not
// revive the lock.
func TestVirtualLateExtensionReplyCountsFromStart(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.over(w.pool(pool.WithTimeout(20*time.Second)), redlock.WithTTL(3*time.Second))
		k := w.take(l, "a")
		ctx := k.Context(w.Context())
		start := time.Now()
		w.delay(500 * time.Millisecond)
		after(2100 * time.Millisecond) // extension sent at 1 s, answered at 2 s
		if until, want := k.Until().Sub(start), 4*time.Second-32*time.Millisecond; until != want {
			w.Errorf("the lock is valid until %v after its start, want %v", until, want)
		}
		w.delay(3 * time.Second)
		_, cause := w.ended(ctx, 10*time.Second)
		w.isError(cause, redlock.ErrLost)
		lost := time.Now()
		after(10 * time.Second)
		w.isError(k.Err(), redlock.ErrLost)
		if left := k.Remaining(); left > 0 || k.Until().After(time.Now()) {
			w.Errorf("%v left of a lock that was lost %v ago", left, time.Since(lost))
		}
		w.delay(0)
	})
}

// A caller that is refused by the masters that decide sends no roll-back to those that have not answered yet, unless
// one of them grants the lock after all.
func TestVirtualRollbackOnlyWhereGranted(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		w.delay(20*time.Millisecond, 3, 4)
		refused := func(releases, on int) {
			w.Helper()
			before := len(b.world.wire.sent("release"))
			_, err := b.Locker.TryLock(w.Context(), "n")
			w.isError(err, redlock.ErrHeld)
			after(100 * time.Millisecond)
			if n := len(b.world.wire.sent("release")) - before; n != releases {
				w.Errorf("%d roll-backs, want %d", n, releases)
			}
			if n := w.on("n"); n != on {
				w.Errorf("on %d masters, want %d", n, on)
			}
		}
		refused(0, 5)
		w.replay(sent{master: 4, args: []string{"DEL", defaultPrefix.Lock("n")}})
		refused(1, 4)
		w.unlock(k)
		w.delay(0)
		w.nothingLeft("n")
	})
}

// A wake-up that comes while its call has the lock is not answered: the release takes the waiter out of the queues.
func TestVirtualAWakeUpOfTheHolderIsNotAnswered(t *testing.T) {
	virtual(t, 5, func(w *world) {
		a, b := w.peer("a"), w.peer("b")
		k := w.taken(a.Locker, redlock.WithTTL(30*time.Second))
		c := w.call(w.Context(), b.Locker, "n", unpolled)
		after(300 * time.Millisecond)
		wakeUps := w.hintsFor(b, "n")
		w.unlock(k)
		k, _ = c.gets(5 * time.Second)
		after(100 * time.Millisecond)
		before := len(b.world.wire.sent("release"))
		w.publish(b, wakeUps)
		after(100 * time.Millisecond)
		if n := len(b.world.wire.sent("release")) - before; n != 0 {
			w.Errorf("%d messages", n)
		}
		w.unlock(k)
		w.nothingLeft("n")
	})
}
