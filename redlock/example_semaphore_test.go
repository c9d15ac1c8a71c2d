package redlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/redlock"
)

// At most two clients at a time call a partner's service.
func ExampleLocker_Semaphore() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	partner := locker.Semaphore("partner", 2)
	first, err := partner.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = partner.Do(ctx, func(ctx context.Context, lock *redlock.Lock) error {
		fmt.Println("two slots are held:", lock.Slot() != first.Slot())
		_, err := partner.TryAcquire(context.Background())
		fmt.Println("a third is refused:", errors.Is(err, redlock.ErrHeld))
		_, err = locker.TryLock(ctx, "partner")
		fmt.Println("so is a plain lock:", errors.Is(err, redlock.ErrKind))
		return nil
	})
	fmt.Println(err, first.Unlock(ctx))
	// Output:
	// two slots are held: true
	// a third is refused: true
	// so is a plain lock: true
	// <nil> <nil>
}
