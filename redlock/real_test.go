package redlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
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

// BenchmarkLockAll compares locking one name with locking four as one, alternately: over real masters on this machine,
// and over masters in memory that are 1 ms away.
func BenchmarkLockAll(b *testing.B) {
	_, _, near := masters(b, 5)
	m := memory.New(5)
	b.Cleanup(m.Close)
	for i := range 5 {
		m.Master(i).Delay(500 * time.Microsecond) // each way
	}
	p := must[*pool.Pool](b)(m.Pool())
	b.Cleanup(func() { p.Close() })
	far := locker(b, p)
	names := []string{"a", "b", "c", "d"}
	for what, l := range map[string]*redlock.Locker{"near": near, "1 ms": far} {
		b.Run(what, func(b *testing.B) {
			ctx, took := b.Context(), [2][]time.Duration{}
			for b.Loop() {
				for i, list := range [][]string{names[:1], names} {
					start := time.Now()
					locks, err := l.LockAll(ctx, list)
					if err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(start))
					if err := locks.Unlock(ctx); err != nil {
						b.Fatal(err)
					}
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			one, four := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(one.Microseconds()), "us/one")
			b.ReportMetric(float64(four)/float64(one), "four/one")
		})
	}
}
