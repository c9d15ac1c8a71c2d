package redlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/redlock"
)

// Several readers hold the name together. A writer holds it alone, with a larger token than those of the readers.
func ExampleLocker_RWLock() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	prices := locker.RWLock("prices")
	one, err := prices.RLock(ctx)
	check(err)
	two, err := prices.RLock(ctx)
	check(err)
	_, err = prices.TryLock(ctx)
	fmt.Println("it is read:", errors.Is(err, redlock.ErrHeld))
	fmt.Println(one.Unlock(ctx), two.Unlock(ctx))
	writer, err := prices.Lock(ctx)
	check(err)
	fmt.Println("a larger token:", writer.Token() > one.Token() && writer.Token() > two.Token())
	fmt.Println(writer.Unlock(ctx))
	// Output:
	// it is read: true
	// <nil> <nil>
	// a larger token: true
	// <nil>
}

func ExampleRWLock() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	prices := locker.RWLock("prices")
	err := prices.Do(ctx, func(_ context.Context, lock *redlock.Lock) error {
		fmt.Println("alone, with a token:", lock.Token() > 0)
		return nil
	})
	fmt.Println(err)
	err = prices.DoRead(ctx, func(ctx context.Context, _ *redlock.Lock) error {
		_, err := prices.TryLock(ctx)
		fmt.Println("a reader does not become the writer:", errors.Is(err, redlock.ErrInvalid))
		other, err := prices.TryRLock(context.Background())
		if err != nil {
			return err
		}
		fmt.Println("another reader")
		return other.Unlock(ctx)
	})
	fmt.Println(err)
	lock, err := prices.Lock(ctx) // waits for earlier readers and writers
	check(err)
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// alone, with a token: true
	// <nil>
	// a reader does not become the writer: true
	// another reader
	// <nil>
	// <nil>
}

func ExampleRWLock_RLock() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	lock, err := locker.RWLock("prices").RLock(ctx)
	check(err)
	_, err = locker.Lock(ctx, "prices") // a name has one kind of lock
	fmt.Println(errors.Is(err, redlock.ErrKind))
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// true
	// <nil>
}

// A writer continues as a reader, together with others, and no client changes the data in between.
func ExampleLock_Downgrade() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	writer, err := locker.RWLock("prices").Lock(ctx)
	check(err)
	// write
	reader, err := writer.Downgrade(ctx)
	if err != nil {
		fmt.Println(err) // nothing is held
		return
	}
	fmt.Println(writer.Err(), reader.Err(), reader.Token() > writer.Token())
	h, err := locker.Inspect(ctx, "prices")
	fmt.Println(h.ReaderCount, "reader,", err)
	fmt.Println(reader.Unlock(ctx))
	// Output:
	// redlock: lock "prices": the lock was released before <nil> true
	// 1 reader, <nil>
	// <nil>
}
