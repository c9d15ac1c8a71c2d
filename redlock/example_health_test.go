package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Healthy suits a readiness probe, because it also fails if connected masters grant no locks.
func ExampleLocker_Healthy() {
	locker, masters, done := inMemory()
	defer done()
	ctx := context.Background()

	fmt.Println(locker.Healthy(ctx))
	for i := range 2 {
		masters.Master(i).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
	}
	_, err := locker.TryLock(ctx, "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum), errors.Is(locker.Healthy(ctx), redlock.ErrNoQuorum))
	// Output:
	// <nil>
	// true true
}

// A job that locks the same name many times in a row keeps the lock between its steps, which saves round trips. If
// another client requests the name, it gets the lock between two steps.
func ExampleWithLinger() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithLinger(time.Second))
	defer done()

	for range 3 { // from the second step on without a round trip
		err := locker.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil })
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
}
