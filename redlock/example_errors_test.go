package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The error of a call, with the parts that errors.Is and errors.As find: the outcome, the error of the context, and why
// masters failed.
func ExampleLockError() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)
	masters.Master(2).Stop()

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := locker.Lock(ctx, "orders:42")
	err = fmt.Errorf("booking: %w", err)
	fmt.Println("held by another:", errors.Is(err, redlock.ErrHeld))
	fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))
	fmt.Println("out of time:", errors.Is(err, context.DeadlineExceeded))
	var failed *redlock.LockError
	if errors.As(err, &failed) {
		fmt.Println("the call:", failed.Op, failed.Name, "expires in about a minute:", failed.Left > 50*time.Second)
	}
	fmt.Println("a master is down:", errors.Is(err, pool.ErrDown))
	fmt.Println("a maximum hold is a loss:", errors.Is(redlock.ErrMaxHold, redlock.ErrLost))
	// Output:
	// held by another: true
	// no quorum: false
	// out of time: true
	// the call: lock orders:42 expires in about a minute: true
	// a master is down: true
	// a maximum hold is a loss: true
}
