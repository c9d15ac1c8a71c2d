package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func ExampleLock() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	fmt.Println("locked:", lock.Name())
	fmt.Println("more than 9 s are left:", lock.Remaining() > 9*time.Second)
	fmt.Println("held:", lock.Err() == nil)
	fmt.Println("unlocked:", lock.Unlock(ctx))
	fmt.Println("held:", lock.Err() == nil)
	// Output:
	// locked: orders:42
	// more than 9 s are left: true
	// held: true
	// unlocked: <nil>
	// held: false
}

// Work that can be handed over stops at a good point when another client requests the lock.
func ExampleLock_ReleaseRequested() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()
	err := locker.Do(ctx, "nightly-report", func(_ context.Context, lock *redlock.Lock) error {
		for page := range 3 {
			select {
			case <-lock.ReleaseRequested(): // redlock release --ask nightly-report
				return nil
			default:
				fmt.Println("page", page)
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// page 0
	// page 1
	// page 2
	// <nil>
}

// A leader sets its address as the value of the lock, and other clients read the value.
func ExampleLock_SetValue() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()
	err := locker.Lead(ctx, "orders/leader", func(ctx context.Context, lock *redlock.Lock) error {
		if err := lock.SetValue(ctx, "10.0.0.7:8080 v42"); err != nil {
			return err
		}
		who, err := locker.Inspect(ctx, "orders/leader") // any client, or: redlock who orders/leader
		fmt.Println(who.Value)
		return err
	})
	who, _ := locker.Inspect(ctx, "orders/leader")
	fmt.Printf("%q %v\n", who.Value, err)
	// Output:
	// 10.0.0.7:8080 v42
	// "" <nil>
}

// The context of a lock ends together with the lock, so that the work stops by itself.
func ExampleLock_Context() {
	ctx := context.Background()
	locker, masters, done := inMemory(redlock.WithTTL(100 * time.Millisecond))
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)
	work := lock.Context(ctx)
	masters.Lose("orders:42") // for example because all masters lost their data
	<-work.Done()
	fmt.Println(work.Err(), errors.Is(context.Cause(work), redlock.ErrLost))
	// Output:
	// context canceled true
}

func ExampleLock_Done() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithMaxHold(20*time.Millisecond))
	check(err)
	defer lock.Unlock(ctx)
	select {
	case <-lock.Done():
		fmt.Println("held too long:", errors.Is(lock.Err(), redlock.ErrMaxHold))
	case <-time.After(time.Minute): // the work
	}
	// Output:
	// held too long: true
}

// The token of each holder is larger than that of the holder before.
func ExampleLock_Token() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	var before int64
	for range 3 {
		lock, err := locker.Lock(ctx, "orders:42")
		check(err)
		fmt.Println(lock.Token() > before)
		before = lock.Token()
		_ = lock.Unlock(ctx)
	}
	// Output:
	// true
	// true
	// true
}

// Locks are extended in the background. Call Extend if background extension is turned off.
func ExampleLock_Extend() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithExtension(false), redlock.WithTTL(20*time.Second))
	check(err)
	defer lock.Unlock(ctx)
	fmt.Println(lock.Extend(ctx), lock.Remaining() > 19*time.Second)
	// Output:
	// <nil> true
}

// Export moves a lock to another process. Send the handle, a string, to that process.
func ExampleLock_Export() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	handle, err := lock.Export()
	check(err)
	fmt.Println("ended here:", errors.Is(lock.Err(), redlock.ErrExported))

	// In the other process, within the validity that was left:
	moved, err := locker.Import(ctx, handle)
	check(err)
	defer moved.Unlock(ctx)
	fmt.Println(moved.Name(), "has a larger token:", moved.Token() > lock.Token())
	// Output:
	// ended here: true
	// orders:42 has a larger token: true
}

func ExampleLocker_Import() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	_, err := locker.Import(ctx, "what is no handle")
	fmt.Println(errors.Is(err, redlock.ErrInvalid))
	// Output:
	// true
}
