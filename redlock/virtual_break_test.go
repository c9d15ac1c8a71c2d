package redlock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
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
