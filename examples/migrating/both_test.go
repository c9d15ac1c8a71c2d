package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
	"github.com/redlock-go/redlock/redlock"
)

// A migration has two steps. First, programs that use only redsync run together with programs that use both libraries.
// Then programs that use both run together with programs that use only this library. In both steps, no two programs
// hold the name at the same time.
func TestMigrationInTwoSteps(t *testing.T) {
	_, urls := testmasters.Start(t, 3)
	locker := testmasters.Locker(t, urls)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rs := redsyncOver(urls)
	var inside atomic.Int32
	work := func(context.Context, int64) error {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d programs hold the name at the same time", n)
		}
		_, err := locker.Inspect(ctx, "n") // takes time in which another program could acquire the name
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
				return locker.Do(ctx, "n", func(ctx context.Context, _ *redlock.Lock) error { return work(ctx, 0) })
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

// byRedsync runs f under a lock of redsync, as a program does before the migration.
func byRedsync(ctx context.Context, rs *redsync.Redsync, f func(context.Context, int64) error) error {
	m := rs.NewMutex("n")
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	err := f(ctx, 0)
	_, unlockErr := m.UnlockContext(ctx)
	return errors.Join(err, unlockErr)
}
