package redlocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The Locker that NewLocker returns acquires locks immediately, with any prefix and any max TTL, and Take uses the
// same keys.
func TestNewLocker(t *testing.T) {
	for name, opts := range map[string][]redlock.Option{
		"defaults":   nil,
		"prefix":     {redlock.WithPrefix("billing")},
		"max TTL":    {redlock.WithMaxTTL(time.Minute), redlock.WithTTL(40 * time.Second)},
		"no restart": {redlock.WithoutRestartGuard()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				locker, masters := redlocktest.NewLocker(t, 3, opts...)
				began := time.Now()
				lock, err := locker.TryLock(t.Context(), "a")
				if err != nil || time.Since(began) != 0 {
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
				masters.Lose("a")
				<-lock.Done()
				if !errors.Is(lock.Err(), redlock.ErrLost) {
					t.Errorf("after the loss: %v", lock.Err())
				}
				masters.Take("b", time.Minute)
				if _, err := locker.TryLock(t.Context(), "b"); !errors.Is(err, redlock.ErrHeld) {
					t.Errorf("while another client holds it: %v", err)
				}
			})
		})
	}
}

// A master that restarts or loses its data votes again after Admit.
func TestMasterAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 1)
		for _, fault := range []func(){masters.Master(0).Flush, func() { masters.Master(0).Restart(false) }} {
			fault()
			masters.Master(0).Admit()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a quarantine lasts for 30 s
			if err := locker.Do(ctx, "a", func(context.Context, *redlock.Lock) error { return nil }); err != nil {
				t.Error(err)
			}
			cancel()
		}
	})
}

// An invalid option fails the test that calls NewLocker.
func TestNewLockerWithAnInvalidOption(t *testing.T) {
	failed := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		redlocktest.NewLocker(failed, 3, redlock.WithTTL(-time.Second))
	}()
	if !failed.fatal {
		t.Error("a negative TTL was accepted")
	}
}

// failing is a test that records Fatalf and leaves the function by a panic.
type failing struct {
	testing.TB
	fatal bool
}

func (f *failing) Fatalf(string, ...any) {
	f.fatal = true
	panic("fatal")
}
