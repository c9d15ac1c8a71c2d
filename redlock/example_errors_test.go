package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// What an error is stays the same from version to version (H38); what it says does not.
func Example_errorIdentities() {
	var err error = &redlock.LockError{
		Op: "lock", Name: "orders:42", Decision: redlock.ErrHeld, Cause: context.DeadlineExceeded,
	}
	err = fmt.Errorf("booking: %w", err)

	fmt.Println("held by another:", errors.Is(err, redlock.ErrHeld))
	fmt.Println("no quorum:", errors.Is(err, redlock.ErrNoQuorum))
	fmt.Println("out of time:", errors.Is(err, context.DeadlineExceeded))
	fmt.Println("a maximum hold is a loss:", errors.Is(redlock.ErrMaxHold, redlock.ErrLost))

	var lock *redlock.LockError
	if errors.As(err, &lock) {
		fmt.Println("the call:", lock.Op, lock.Name)
	}
	// Output:
	// held by another: true
	// no quorum: false
	// out of time: true
	// a maximum hold is a loss: true
	// the call: lock orders:42
}

// A failed master is found in the error of the call.
func ExampleMasterError() {
	master := &redlock.MasterError{Addr: "10.0.0.3:6379", Op: "acquire", Err: redlock.ErrQuarantine}
	var err error = errors.Join(redlock.ErrNoQuorum, master)

	var failed *redlock.MasterError
	if errors.As(err, &failed) {
		fmt.Println(failed.Addr, failed.Op, failed.Unknown)
	}
	fmt.Println(errors.Is(err, redlock.ErrQuarantine))
	// Output:
	// 10.0.0.3:6379 acquire false
	// true
}

// What a call found out beyond the sentinels: who holds the name, and how many masters answered.
func ExampleLockError() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	_, err := locker.TryLock(context.Background(), "orders:42")
	var failed *redlock.LockError
	if errors.As(err, &failed) {
		fmt.Println(failed.Op, failed.Name, failed.Decision)
		fmt.Println(failed.Quorum, "of", failed.N, "are needed")
	}
	// Output:
	// lock orders:42 redlock: held by another
	// 2 of 3 are needed
}
