package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// H117: Drain waits for a function of Do, which may lock more names meanwhile, and lets no other call in.
func TestVirtualDrainWaitsForDo(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		started, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- l.Do(w.Context(), "a", func(ctx context.Context) error {
				close(started)
				after(5 * time.Second)
				if _, err := l.Lock(w.Context(), "c"); !errors.Is(err, redlock.ErrClosed) {
					w.Errorf("a new call: %v", err)
				}
				k, err := l.Lock(ctx, "b")
				if err != nil {
					return err
				}
				after(5 * time.Second)
				return errors.Join(ctx.Err(), k.Unlock(ctx))
			})
		}()
		<-started
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		if err := l.Drain(ctx); err != nil {
			w.Error(err)
		}
		if took := time.Since(began); took < 10*time.Second {
			w.Errorf("it took %v", took)
		}
		if err := <-result; err != nil {
			w.Errorf("Do: %v", err)
		}
	})
}

// H117: when its context ends, Drain ends the remaining locks.
func TestVirtualDrainEndsWithItsContext(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		k := w.take(l, "a")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := l.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Drain: %v", err)
		}
		if err := k.Err(); !errors.Is(err, redlock.ErrClosed) {
			w.Errorf("the lock: %v", err)
		}
		if err := l.Close(w.Context()); err != nil {
			w.Error(err)
		}
	})
}
