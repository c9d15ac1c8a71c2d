package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// programs runs test with n clients over five masters in memory, in virtual time.
func programs(t *testing.T, n int, test func(t *testing.T, lockers []*redlock.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.New(5)
		defer masters.Close()
		var lockers []*redlock.Locker
		for range n {
			p, err := masters.Pool()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			quiet := redlock.WithLogger(slog.New(slog.DiscardHandler))
			l, err := redlock.New(p, quiet)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			lockers = append(lockers, l)
		}
		test(t, lockers)
	})
}

// Of four clients, only one builds the value in each period, and all clients get the newest value.
func TestOneRebuildsAndAllRead(t *testing.T) {
	programs(t, 4, func(t *testing.T, lockers []*redlock.Locker) {
		dir, builds, building := t.TempDir(), atomic.Int64{}, atomic.Int64{}
		var wg sync.WaitGroup
		for i := range 12 {
			c := &Cache{Shared: lockers[i%4].RWLock("cache"), Dir: dir, MaxAge: 3 * time.Second, Now: time.Now}
			c.Build = func(ctx context.Context) ([]byte, error) {
				if building.Add(1) > 1 {
					t.Error("two clients build the value at the same time")
				}
				defer building.Add(-1)
				time.Sleep(time.Second) // virtual time
				return fmt.Appendf(nil, "value %d", builds.Add(1)), ctx.Err()
			}
			wg.Go(func() {
				for end := time.Now().Add(19 * time.Second); time.Now().Before(end); {
					before := builds.Load()
					value, err := c.Get(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if string(value) < fmt.Sprintf("value %d", before) {
						t.Errorf("the value is %q, but value %d was built before", value, before)
					}
					time.Sleep(time.Duration(200+i) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if n := builds.Load(); n != 5 {
			t.Errorf("the value was built %d times in five periods, want 5", n)
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 1 {
			t.Errorf("the directory contains the files %q, want one: %v", files, err)
		}
	})
}

// If a client writes a value after another client has acquired the lock, that value is not read.
func TestLateRebuildIsNotRead(t *testing.T) {
	programs(t, 2, func(t *testing.T, lockers []*redlock.Locker) {
		var caches [2]*Cache
		dir := t.TempDir()
		for i, l := range lockers {
			caches[i] = &Cache{Shared: l.RWLock("cache"), Dir: dir, MaxAge: time.Hour, Now: time.Now}
			caches[i].Build = func(context.Context) ([]byte, error) { return fmt.Appendf(nil, "of %d", i), nil }
		}
		lock, err := caches[0].Shared.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Simulate a client that is stopped before it writes.
		if err := lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if value, err := caches[1].Get(t.Context()); string(value) != "of 1" || err != nil {
			t.Fatalf("Get returned %q, %v; want \"of 1\"", value, err)
		}
		if err := caches[0].rebuild(context.Background(), lock.Token()); err != nil {
			t.Fatal(err)
		}
		for _, c := range caches {
			if value, err := c.Get(t.Context()); string(value) != "of 1" || err != nil {
				t.Errorf("after the late rebuild, Get returned %q, %v; want \"of 1\"", value, err)
			}
		}
	})
}

// A failed rebuild leaves the name free and the old files unchanged.
func TestFailedRebuild(t *testing.T) {
	programs(t, 1, func(t *testing.T, lockers []*redlock.Locker) {
		c := &Cache{Shared: lockers[0].RWLock("cache"), Dir: t.TempDir(), MaxAge: time.Minute, Now: time.Now}
		c.Build = func(context.Context) ([]byte, error) { return nil, os.ErrPermission }
		if _, err := c.Get(t.Context()); err == nil {
			t.Error("Get returned no error although the build failed")
		}
		c.Build = func(context.Context) ([]byte, error) { return []byte("value"), nil }
		if value, err := c.Get(t.Context()); string(value) != "value" || err != nil {
			t.Errorf("after the failed rebuild, Get returned %q, %v; want \"value\"", value, err)
		}
	})
}
