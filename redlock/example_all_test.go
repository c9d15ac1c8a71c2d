package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// Two names as one lock: a transfer holds both accounts. Another transfer between the same accounts in the opposite
// direction waits, without a deadlock. Each write carries the token of its account.
func ExampleLocker_DoAll() {
	locker, _, done := inMemory()
	defer done()
	from, to := "account:7", "account:3"
	err := locker.DoAll(context.Background(), []string{from, to}, func(ctx context.Context, locks *redlock.Locks) error {
		for _, account := range []string{from, to} {
			fmt.Println(account, "has a token:", locks.Of(account).Token() > 0)
		}
		return ctx.Err() // ctx ends when either lock is lost
	})
	fmt.Println(err)
	// Output:
	// account:7 has a token: true
	// account:3 has a token: true
	// <nil>
}

func ExampleLocker_LockAll() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	locks, err := locker.LockAll(ctx, []string{"b", "a", "b"}, redlock.WithWaitLimit(time.Minute))
	check(err)
	work := locks.Context(ctx)
	fmt.Println(locks.Of("a").Token() > 0, locks.Of("b").Token() > 0, locks.Of("c") == nil)
	_, err = locker.LockAll(work, []string{"0"})
	fmt.Println("a name that comes before one that is held:", errors.Is(err, redlock.ErrInvalid))
	fmt.Println(locks.Unlock(ctx))
	// Output:
	// true true true
	// a name that comes before one that is held: true
	// <nil>
}

// TryLockAll locks all names or none. Here another client holds one of the names, so none is locked.
func ExampleLocker_TryLockAll() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("b", time.Minute) // another client
	_, err := locker.TryLockAll(context.Background(), []string{"a", "b"})
	var e *redlock.LockError
	fmt.Println(errors.Is(err, redlock.ErrHeld), errors.As(err, &e) && e.Name == "b")
	// Output: true true
}

func ExampleLocks() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	locks, err := locker.LockAll(ctx, []string{"a", "b"})
	check(err)
	work := locks.Context(ctx) // ends when one of the locks is lost
	for _, name := range []string{"a", "b"} {
		fmt.Println(name, locks.Of(name).Token() > 0)
	}
	fmt.Println(work.Err(), locks.Unlock(ctx))
	// Output:
	// a true
	// b true
	// <nil> <nil>
}

// Outcome returns the word for an error, for example as the label of a metric.
func ExampleOutcome() {
	fmt.Println(redlock.Outcome(nil), redlock.Outcome(redlock.ErrHeld), redlock.Outcome(context.Canceled))
	// Output: ok held canceled
}

// Lead runs the function in only one process at a time. When the leader dies, another process leads.
func ExampleLocker_Lead() {
	locker, _, done := inMemory()
	defer done()
	err := locker.Lead(context.Background(), "orders/leader", func(ctx context.Context, lock *redlock.Lock) error {
		fmt.Println("leads, with a token:", lock.Token() > 0)
		return nil // or ctx.Err() when ctx ends: then Lead campaigns again
	})
	fmt.Println(err)
	// Output:
	// leads, with a token: true
	// <nil>
}

func ExampleLocker_Watch() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	lock, err := locker.Lock(ctx, "orders/leader")
	check(err)
	for h, err := range locker.Watch(ctx, "orders/leader") {
		fmt.Println(h.Token == lock.Token(), err)
		break
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// true <nil>
	// <nil>
}
