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
)

// masters starts n real servers and a Locker that has admitted them.
func masters(t testing.TB, n int, opts ...redlock.Option) ([]*redisproc.Server, *pool.Pool, *redlock.Locker) {
	t.Helper()
	servers := redistest.Test(t, n, redisproc.Config{})
	urls := make([]string, n)
	for i, s := range servers {
		urls[i] = s.URL()
	}
	p, err := pool.Dial(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l := locker(t, p, opts...)
	if err := l.AdmitNow(t.Context()); err != nil {
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
	_, p, l := masters(t, 5)
	ctx := t.Context()
	lock, err := l.Lock(ctx, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locker(t, p).TryLock(ctx, "orders:42"); !errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("second locker: %v, want ErrHeld", err)
	} else {
		t.Log(err)
	}
	on, n := lock.HeldOn()
	t.Log(lock.Token(), lock.Remaining(), on, n)
	inner, err := l.Lock(lock.Context(ctx), "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Inspect(ctx, "orders:42")
	t.Logf("%+v %v", h, err)
	if err := inner.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); !errors.Is(err, redlock.ErrReleased) {
		t.Fatalf("second unlock: %v", err)
	}
	h, err = l.Inspect(ctx, "orders:42")
	t.Logf("%+v %v", h, err)
	lock, err = l.Lock(ctx, "orders:42")
	if err != nil {
		t.Fatal(err)
	}
	text, err := lock.Export()
	if err != nil {
		t.Fatal(err)
	}
	got, err := locker(t, p).Import(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	if got.Token() <= lock.Token() {
		t.Fatal("token did not grow")
	}
	if _, err := l.TryLock(ctx, "orders:42"); !errors.Is(err, redlock.ErrHeld) {
		t.Fatal(err)
	}
	if err := got.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPair(b *testing.B) {
	_, _, l := masters(b, 5)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		lock, err := l.TryLock(ctx, "name")
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Unlock(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPairParallel(b *testing.B) {
	_, _, l := masters(b, 5)
	ctx := b.Context()
	b.ReportAllocs()
	b.SetParallelism(256)
	b.RunParallel(func(pb *testing.PB) {
		name := time.Now().String()
		for pb.Next() {
			lock, err := l.TryLock(ctx, name)
			if err != nil {
				b.Error(err)
				return
			}
			if err := lock.Unlock(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
