package redlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/redlock"
)

// Readers hold the name together; the writer holds it alone, with a token that is larger than theirs.
func ExampleLocker_Shared() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	prices := locker.Shared("prices")
	one, err := prices.RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := prices.RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = prices.TryLock(ctx)
	fmt.Println(prices.Name(), "is read:", errors.Is(err, redlock.ErrHeld))
	fmt.Println(one.Unlock(ctx), two.Unlock(ctx))
	writer, err := prices.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a larger token:", writer.Token() > one.Token() && writer.Token() > two.Token())
	fmt.Println(writer.Unlock(ctx))
	// Output:
	// prices is read: true
	// <nil> <nil>
	// a larger token: true
	// <nil>
}

func ExampleShared() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	prices := locker.Shared("prices")
	fmt.Println(prices.Name())
	err := prices.Do(ctx, func(ctx context.Context) error {
		fmt.Println("alone, with a token:", redlock.TokenOf(ctx) > 0)
		return nil
	})
	fmt.Println(err)
	err = prices.DoRead(ctx, func(ctx context.Context) error {
		_, err := prices.TryLock(ctx)
		fmt.Println("a reader does not become the writer:", errors.Is(err, redlock.ErrUpgrade))
		other, err := prices.TryRLock(context.Background())
		if err != nil {
			return err
		}
		fmt.Println("another reader")
		return other.Unlock(ctx)
	})
	fmt.Println(err)
	lock, err := prices.Lock(ctx) // waits for readers and writers that came before
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// prices
	// alone, with a token: true
	// <nil>
	// a reader does not become the writer: true
	// another reader
	// <nil>
	// <nil>
}

func ExampleShared_RLock() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	lock, err := locker.Shared("prices").RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Lock(ctx, "prices") // a name has one kind of lock
	fmt.Println(errors.Is(err, redlock.ErrKind))
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// true
	// <nil>
}

// What was written is read on, while others may read it too, and nobody has changed it in between.
func ExampleLock_Downgrade() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	writer, err := locker.Shared("prices").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
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
	// redlock: the lock is released <nil> true
	// 1 reader, <nil>
	// <nil>
}
