package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/redlock"
)

func TestVirtualTryDo(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l, other := w.locker(), w.locker()
		k := w.take(other, "n")
		ran := 0
		f := func(ctx context.Context) error { ran++; return ctx.Err() }
		start := time.Now()
		err := l.TryDo(w.Context(), "n", f)
		if !errors.Is(err, redlock.ErrHeld) || ran != 0 || time.Since(start) > time.Second {
			t.Errorf("a held name: %v, %d runs, after %v", err, ran, time.Since(start))
		}
		w.unlock(k)
		w.must(l.TryDo(w.Context(), "n", f))
		w.must(other.TryDo(w.Context(), "n", f)) // it was released
		if ran != 2 {
			t.Errorf("%d runs", ran)
		}
	})
}

func TestVirtualErrorsForPeople(t *testing.T) {
	virtual(t, 3, func(w *world) {
		l := w.locker()
		_, err := l.Lock(w.Context(), "n", redlock.WithWaitLimit(0))
		w.isError(err, redlock.ErrInvalid)

		err = l.Do(w.Context(), "n", func(ctx context.Context) error {
			for i := range 3 {
				w.masters.Master(i).Evict("n")
			}
			<-ctx.Done()
			return errors.New("half done")
		})
		w.isError(err, redlock.ErrLost)
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "half done; redlock: do") {
			t.Errorf("the error of Do: %q", text)
		}

		k := w.take(l, "m")
		w.unlock(k)
		err = k.Unlock(w.Context())
		if !errors.Is(err, redlock.ErrReleased) || !strings.Contains(err.Error(), "released before") {
			t.Errorf("a second Unlock: %v", err)
		}

		w.stop(0, 1)
		_, err = l.TryLock(w.Context(), "m")
		var all *multierror.Error
		if !errors.As(err, &all) || len(all.Errors) != 2 {
			t.Errorf("the errors of the masters: %v", err)
		}
	})
}
