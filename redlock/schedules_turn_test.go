package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

// A call whose options can never be satisfied does not keep other calls of its process from the name.
func TestHopelessCallBlocksNoOther(t *testing.T) {
	virtual(t, 3, func(w *world) {
		for i := range 3 {
			w.masters.Master(i).Admit("redlock", 10*time.Second)
		}
		l := w.locker()
		ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := l.Lock(ctx, "x", redlock.WithTTL(20*time.Second))
			done <- err
		}()
		after(time.Second)
		soon, stop := context.WithTimeout(w.Context(), 30*time.Second)
		defer stop()
		k, err := l.Lock(soon, "x", redlock.WithTTL(5*time.Second))
		if err != nil {
			t.Fatalf("the name is free, and %v", err)
		}
		if err := k.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("the call that cannot win has got the name")
		}
	})
}

// A client that does not know the masters' time yet does not go before all others.
func TestAFairCallOfANewProgramGoesToTheEnd(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.locker(), w.locker()
		held := w.take(a, "x")
		order := make(chan string, 2)
		var all sync.WaitGroup
		wait := func(l *redlock.Locker, who string) {
			k, err := l.Lock(w.Context(), "x", redlock.WithFair())
			if err != nil {
				t.Error(err)
				return
			}
			order <- who
			<-time.After(time.Millisecond)
			_ = k.Unlock(w.Context())
		}
		all.Go(func() { wait(b, "old") })
		after(time.Second)
		p := w.pool()
		fresh, err := redlock.New(p, redlock.WithClock(clock.Runtime()))
		if err != nil {
			t.Fatal(err)
		}
		w.Cleanup(func() { _ = fresh.Close(context.WithoutCancel(w.Context())) })
		all.Go(func() { wait(fresh, "new") }) // at once, before it knows anything
		after(2 * time.Second)
		if err := held.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		if first := <-order; first != "old" {
			t.Errorf("the %s one came first", first)
		}
		all.Wait()
	})
}

// A fair call of a client without waiters does not overtake queued waiters if the name is free because its holder is
// dead.
func TestAFairCallThatIsNotHeardYetDoesNotOvertake(t *testing.T) {
	virtual(t, 3, func(w *world) {
		a, b := w.locker(), w.locker()
		w.masters.Take("x", 2*time.Second)
		order := make(chan string, 2)
		var all sync.WaitGroup
		wait := func(l *redlock.Locker, who string) {
			k, err := l.Lock(w.Context(), "x", redlock.WithFair())
			if err != nil {
				t.Error(err)
				return
			}
			order <- who
			<-time.After(time.Millisecond)
			_ = k.Unlock(w.Context())
		}
		w.delay(10 * time.Microsecond)
		all.Go(func() { wait(a, "old") })
		for w.on("x") > 0 {
			after(100 * time.Microsecond)
		}
		all.Go(func() { wait(b, "new") })
		if first := <-order; first != "old" {
			t.Errorf("the %s one came first", first)
		}
		all.Wait()
	})
}

// A fair call whose context ends before the masters are known does not block the queue.
func TestFairCallCancelledEarlyLeavesQueue(t *testing.T) {
	virtual(t, 3, func(w *world) {
		w.hang()
		l, err := redlock.New(w.pool(), redlock.WithClock(clock.Runtime()))
		if err != nil {
			t.Fatal(err)
		}
		w.Cleanup(func() { _ = l.Close(context.WithoutCancel(w.Context())) })
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Millisecond)
		defer cancel()
		_, err = l.Lock(ctx, "x", redlock.WithFair())
		w.isError(err, context.DeadlineExceeded)
		w.resume()
		long, stop := context.WithTimeout(w.Context(), time.Minute)
		defer stop()
		k, err := l.Lock(long, "x")
		if err != nil {
			t.Fatal(err)
		}
		w.unlock(k)
	})
}
