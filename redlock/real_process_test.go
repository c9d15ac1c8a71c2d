package redlock_test

import (
	"context"
	"crypto/fips140"
	"crypto/sha1"
	"errors"
	"testing"

	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// pairs makes each kind of call that hashes or generates random numbers, three times.
func pairs(ctx context.Context, urls []string) error {
	l, err := redlock.Open(urls, redlock.WithPool(pool.WithTimeout(calm)))
	if err != nil {
		return err
	}
	for range 3 {
		lock, err := l.Lock(ctx, "n")
		if err != nil {
			return err
		}
		inner, err := l.Lock(lock.Context(ctx), "n", redlock.WithReentry())
		if err != nil {
			return err
		}
		if err := errors.Join(lock.Extend(ctx), inner.Unlock(ctx)); err != nil {
			return err
		}
		handle, err := lock.Export()
		if err != nil {
			return err
		}
		if lock, err = l.Import(ctx, handle); err != nil {
			return err
		}
		if err := lock.Unlock(ctx); err != nil {
			return err
		}
	}
	worker.Say("paired, fips=%v sha1=%v", fips140.Enabled(), sha1Allowed())
	return l.Close()
}

// sha1Allowed reports whether SHA-1 can be computed in this process.
func sha1Allowed() (allowed bool) {
	defer func() { allowed = recover() == nil }()
	sha1.Sum([]byte("text"))
	return true
}

// H35: a client starts, locks and unlocks in a process that allows only FIPS 140-3 algorithms, where the computation
// of a SHA-1 panics.
func TestLocksWithOnlyFIPSAlgorithmsAllowed(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	f.do(0, "SCRIPT", "FLUSH") // so that the worker gets NOSCRIPT as well
	w := worker.Start(t, "pairs", f.urls, hang, "GODEBUG=fips140=only")
	if text := w.Line("paired,"); text != "fips=true sha1=false" {
		t.Errorf("unexpected report of the worker: %s", text)
	}
	w.Finish()
	f.noLocks(hang)
}
