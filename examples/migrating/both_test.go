package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A fleet on its way: programs that know redsync alone beside those that take both, then those that take both beside
// those that know this library alone. Nobody meets another inside.
func TestAFleetMovesOver(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{})
	urls := make([]string, len(servers))
	for i, s := range servers {
		urls[i] = s.URL()
	}
	masters, err := pool.Dial(urls)
	if err != nil {
		t.Fatal(err)
	}
	defer masters.Close()
	locker, err := redlock.New(masters)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer func() {
		if err := locker.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	if err := locker.AdmitNow(ctx); err != nil {
		t.Fatal(err)
	}
	rs := redsyncOver(urls)
	var inside atomic.Int32
	work := func(context.Context, int64) error {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d are inside", n)
		}
		_, err := locker.Inspect(ctx, "n") // some round trips, in which another could come in
		inside.Add(-1)
		return err
	}
	steps := map[string][2]func(context.Context) error{
		"redsync and both": {
			func(ctx context.Context) error { return byRedsync(ctx, rs, work) },
			func(ctx context.Context) error { return both(ctx, rs, locker, "n", 8*time.Second, work) },
		},
		"both and this library": {
			func(ctx context.Context) error { return both(ctx, rs, locker, "n", 8*time.Second, work) },
			func(ctx context.Context) error {
				return locker.Do(ctx, "n", func(ctx context.Context) error { return work(ctx, 0) })
			},
		},
	}
	for name, programs := range steps {
		t.Run(name, func(t *testing.T) {
			var working sync.WaitGroup
			for _, program := range programs {
				working.Go(func() {
					for range 20 {
						if err := program(ctx); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			working.Wait()
		})
	}
	if err := run(ctx, urls); err != nil {
		t.Error(err)
	}
}

// byRedsync is how a program did it before.
func byRedsync(ctx context.Context, rs *redsync.Redsync, f func(context.Context, int64) error) error {
	m := rs.NewMutex("n")
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	err := f(ctx, 0)
	_, unlockErr := m.UnlockContext(ctx)
	return errors.Join(err, unlockErr)
}
