package redlock_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// While one goroutine cancels the many contexts of a lost lock, the Err of another context already reports the loss.
func TestVirtualEveryContextOfALostLockSaysSoAtOnce(t *testing.T) {
	virtual(t, 3, func(w *world) {
		c := newShiftClock(1)
		l := w.locker(redlock.WithClock(c.clock()))
		k := w.take(l, "x")
		first := k.Context(w.Context())
		for range 300_000 {
			_, cancel := context.WithCancel(first)
			defer cancel()
		}
		second := k.Context(w.Context())
		c.jump(time.Hour, time.Hour)
		done := make(chan struct{})
		go func() { defer close(done); _ = k.Err() }()
		for range 1_000_000_000 {
			select {
			case <-k.Done():
				if err := second.Err(); err == nil {
					t.Errorf("the lock has ended (%v), and its context says nil", k.Err())
				}
				<-done
				return
			default:
			}
		}
	})
}

// A trace that hangs when Close releases a lock does not delay Close beyond its context, and does not prevent any
// release.
func TestVirtualCloseDoesNotWaitForATraceOfItsReleases(t *testing.T) {
	virtual(t, 3, func(w *world) {
		hang := make(chan struct{})
		l := w.locker(redlock.WithTrace(redlock.On("released", func(redlockinfo.Event) { <-hang })))
		w.take(l, "x")
		w.take(l, "y")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.Close(ctx) }()
		after(time.Minute)
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
		default:
			t.Error("a minute later Close is still there")
		}
		if on := w.on("x") + w.on("y"); on != 0 {
			t.Errorf("there are %d keys of locks", on)
		}
		close(hang)
	})
}

// A call that began before any master could be reached does not go before earlier calls.
func TestVirtualACallBeforeTheFirstConnectionDoesNotJumpTheQueue(t *testing.T) {
	virtual(t, 3, func(w *world) {
		holder := w.locker()
		k := w.take(holder, "x")
		order := make(chan string, 2)
		wait := func(l *redlock.Locker, who string) {
			go func() {
				got, err := l.Lock(w.Context(), "x", redlock.WithFair())
				if err != nil {
					t.Error(err)
					return
				}
				order <- who
				_ = got.Unlock(w.Context())
			}()
			after(time.Second)
		}
		wait(w.locker(), "first")
		var reachable atomic.Bool
		p := w.pool(pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !reachable.Load() {
				return nil, errBlocked
			}
			return w.wire.dial(ctx, network, addr)
		}))
		l, err := redlock.New(p, redlock.WithClock(clock.Runtime()))
		if err != nil {
			t.Fatal(err)
		}
		w.Cleanup(func() { _ = l.Close(context.WithoutCancel(w.Context())) })
		after(5 * time.Second)
		wait(l, "second")
		reachable.Store(true)
		after(20 * time.Second)
		w.unlock(k)
		if who := <-order; who != "first" {
			t.Errorf("%s has got it first", who)
		}
		<-order
	})
}

// A call that Close ends leaves the queues, although the pool is closed immediately afterwards.
func TestVirtualClosedCallsLeaveTheQueues(t *testing.T) {
	virtual(t, 3, func(w *world) {
		w.take(w.locker(), "x")
		p := w.pool()
		l := w.over(p)
		go func() { _, _ = l.Lock(w.Context(), "x") }()
		after(5 * time.Second)
		if err := l.Close(w.Context()); err != nil {
			t.Error(err)
		}
		_ = p.Close()
		synctest.Wait()
		if n := w.queued("x"); n != 0 {
			t.Errorf("it is in the queues of %d masters", n)
		}
	})
}

// A change of the masters during Close causes no data race. Run it with -race.
func TestVirtualCloseDuringAChangeOfTheMasters(t *testing.T) {
	virtual(t, 6, func(w *world) {
		for d := range 5 {
			l := w.some([]int{0, 1, 2})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = l.Admin().Reconfigure(w.Context(), redlock.Configuration{Epoch: 1, Masters: w.urls(0, 1, 2), Next: w.urls(3, 4,
					5)})
			}()
			for range d {
				runtime.Gosched()
			}
			_ = l.Close(w.Context())
			<-done
		}
	})
}
