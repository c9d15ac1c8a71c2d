package redlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// H01, H28: the depth on the masters is that of the hold; an inner lock neither shortens nor ends the outer.
func TestVirtualAnInnerUnlockDoesNotShortenTheOuter(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		ctx := k.Context(w.Context())
		depth := func(want int, least time.Duration) {
			w.Helper()
			synctest.Wait()
			w.each(func(i int, m *memory.Master) {
				if _, depth, left := m.Holds("a"); depth != want || left < least {
					w.Errorf("master %d: depth %d, %v left; want %d, %v", i, depth, left, want, least)
				}
			})
		}
		long := w.takeWith(l, ctx, "a", redlock.WithTTL(28*time.Second))
		depth(2, 28*time.Second)
		until := k.Until()
		short := w.takeWith(l, ctx, "a", redlock.WithTTL(time.Second))
		depth(3, 28*time.Second)
		for i, inner := range []*redlock.Lock{short, long} {
			if err := inner.Unlock(w.Context()); err != nil {
				w.Error(err)
			}
			depth(2-i, 28*time.Second)
			if k.Until().Before(until) || k.Err() != nil {
				w.Errorf("valid until %v, before %v; %v", k.Until(), until, k.Err())
			}
		}
		after(time.Minute)
		depth(1, 15*time.Second)
		err := k.Unlock(w.Context())
		synctest.Wait()
		if err != nil || w.on("a") != 0 {
			w.Errorf("%v, on %d", err, w.on("a"))
		}
	})
}

// H28: an inner lock that fails leaves the outer as it was.
func TestVirtualAFailedInnerLockLeavesTheOuter(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.over(w.pool(pool.WithTimeout(5 * time.Second)))
		k := w.take(l, "a")
		after(time.Second)
		until := k.Until()
		w.hang()
		ctx, cancel := context.WithTimeout(k.Context(w.Context()), time.Second)
		defer cancel()
		inner, err := l.TryLock(ctx, "a")
		w.isError(err, context.DeadlineExceeded)
		if inner != nil || k.Err() != nil || k.Until().Before(until) {
			w.Errorf("%v; the outer: %v until %v", inner, k.Err(), k.Until())
		}
		w.resume()
		after(10 * time.Second)
		w.each(func(i int, m *memory.Master) {
			if _, depth, _ := m.Holds("a"); depth != 1 {
				w.Errorf("master %d: depth %d", i, depth)
			}
		})
		if err := k.Unlock(w.Context()); err != nil {
			w.Error(err)
		}
	})
}

// H29: ownership is the context's. Another goroutine without it waits, and one with it does not.
func TestVirtualOwnershipIsOnlyThroughTheContext(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		_, err := l.TryLock(w.Context(), "a")
		w.isError(err, redlock.ErrHeld)
		ctx := k.Context(w.Context())
		var got, waited *redlock.Lock
		var all sync.WaitGroup
		all.Go(func() { got, _ = l.Lock(ctx, "a") })
		all.Go(func() { waited, _ = l.Lock(w.Context(), "a") })
		after(time.Minute)
		if got == nil {
			w.Error("the goroutine with the context did not get in")
		} else if err := got.Unlock(ctx); err != nil {
			w.Error(err)
		}
		free := time.Now()
		if err := k.Unlock(ctx); err != nil {
			w.Error(err)
		}
		all.Wait()
		if waited == nil || waited.Token() <= k.Token() || time.Since(free) > time.Second {
			w.Errorf("the other got %v after %v", waited, time.Since(free))
		}
	})
}
