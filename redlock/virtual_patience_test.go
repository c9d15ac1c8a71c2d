package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// H146: while LockAll waits for one name it holds those before it. With any options these locks last as long as the
// wait, and the call keeps its turn.
func TestVirtualLockAllWaitsWithAnyOptions(t *testing.T) {
	for name, opts := range map[string][]redlock.LockOption{
		"none":              nil,
		"a longest hold":    {redlock.WithMaxHold(4 * time.Second)},
		"no extension":      {redlock.WithExtension(false), redlock.WithTTL(8 * time.Second)},
		"nearly all of TTL": {redlock.WithTTL(10 * time.Second), redlock.WithMinValidity(9800 * time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(w *world) {
				ctx, cancel := context.WithCancel(w.Context())
				w.busy(ctx, 3, "b", 3*time.Second)
				after(time.Second)
				s, err := w.locker().LockAll(w.Context(), []string{"a", "b"}, append(opts, redlock.WithWaitLimit(time.Minute))...)
				if err != nil {
					t.Error(err)
				} else if err := s.Unlock(w.Context()); err != nil {
					t.Error(err)
				}
				cancel()
				after(10 * time.Second)
			})
		})
	}
}

// busy makes n clients lock name in turn, and hold it for each, until ctx ends.
func (w *world) busy(ctx context.Context, n int, name string, hold time.Duration) {
	for range n {
		l := w.locker()
		go func() {
			for ctx.Err() == nil {
				k, err := l.Lock(ctx, name)
				if err != nil {
					return
				}
				<-time.After(hold)
				_ = k.Unlock(context.WithoutCancel(ctx))
			}
		}()
	}
}

// The maximum hold of several names counts from the time at which all are held; WithExtension applies from then on,
// too. H146.
func TestVirtualTheTermsOfAllBeginWhenAllAreHeld(t *testing.T) {
	virtual(t, 3, func(w *world) {
		held := w.take(w.locker(), "b")
		got := make(chan *redlock.Locks, 1)
		go func() {
			got <- w.all(w.locker(), []string{"a", "b"}, redlock.WithMaxHold(8*time.Second), redlock.WithExtension(false),
				redlock.WithTTL(5*time.Second))
		}()
		after(20 * time.Second)
		if err := held.Unlock(w.Context()); err != nil {
			t.Error(err)
		}
		s := <-got
		if left := min(s.Of("a").Remaining(), s.Of("b").Remaining()); left < 4*time.Second {
			t.Errorf("%v are left", left)
		}
		after(6 * time.Second)
		w.isError(context.Cause(s.Context(w.Context())), redlock.ErrLost) // it was not extended
		_ = s.Unlock(w.Context())

		s = w.all(w.locker(), []string{"a", "b"}, redlock.WithMaxHold(8*time.Second))
		after(7900 * time.Millisecond)
		if err := s.Context(w.Context()).Err(); err != nil {
			t.Error(err)
		}
		after(200 * time.Millisecond)
		w.isError(context.Cause(s.Context(w.Context())), redlock.ErrMaxHold)
		_ = s.Unlock(w.Context())
	})
}
