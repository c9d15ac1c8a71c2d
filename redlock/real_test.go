package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// masters starts n real servers and a Locker that has admitted them.
func masters(t testing.TB, n int, opts ...redlock.Option) ([]*redisproc.Server, *pool.Pool, *redlock.Locker) {
	t.Helper()
	servers := redistest.Test(t, n, redisproc.Config{})
	urls := make([]string, n)
	for i, s := range servers {
		urls[i] = s.URL()
	}
	p, err := pool.Open(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l := locker(t, p, opts...)
	if err := l.Admin().Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return servers, p, l
}

func locker(t testing.TB, p *pool.Pool, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	l, err := redlock.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func TestLockUnlockOnRealMasters(t *testing.T) {
	t.Parallel()
	_, p, l := masters(t, 5)
	ctx := bounded(t)
	lock := held(t)(l.Lock(ctx, "orders:42"))
	if _, err := locker(t, p).TryLock(ctx, "orders:42"); !errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("second Locker: %v, want ErrHeld", err)
	}
	inner := held(t)(l.Lock(lock.Context(ctx), "orders:42"))
	h := must[redlockinfo.Inspection](t)(l.Inspect(ctx, "orders:42"))
	if h.On < 3 || h.Left <= 0 || h.Left > redlock.DefaultTTL {
		t.Errorf("inspected %+v of a hold that is locked twice", h)
	}
	if err := errors.Join(inner.Unlock(ctx), lock.Unlock(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); !errors.Is(err, redlock.ErrReleased) {
		t.Errorf("second Unlock: %v, want ErrReleased", err)
	}
	if h := must[redlockinfo.Inspection](t)(l.Inspect(ctx, "orders:42")); h.ID != "" {
		t.Errorf("inspected %+v of a free name", h)
	}
}

func TestExportAndImportOnRealMasters(t *testing.T) {
	t.Parallel()
	_, p, l := masters(t, 5)
	ctx := bounded(t)
	lock := held(t)(l.Lock(ctx, "orders:42"))
	text := must[string](t)(lock.Export())
	other := locker(t, p)
	got := held(t)(other.Import(ctx, text))
	if got.Token() <= lock.Token() {
		t.Errorf("token %d after %d", got.Token(), lock.Token())
	}
	if _, err := l.TryLock(ctx, "orders:42"); !errors.Is(err, redlock.ErrHeld) {
		t.Errorf("the giver tries again: %v, want ErrHeld", err)
	}
	if _, err := other.Import(ctx, text, redlock.WithTries(2)); err == nil {
		t.Error("the handle was imported twice")
	}
	if err := lock.Unlock(ctx); !errors.Is(err, redlock.ErrExported) {
		t.Errorf("Unlock by the giver: %v, want ErrExported", err)
	}
	if err := got.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Import(ctx, text); !errors.Is(err, redlock.ErrLost) {
		t.Errorf("a handle of what was released: %v, want ErrLost", err)
	}
}
