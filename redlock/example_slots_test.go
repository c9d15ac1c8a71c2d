package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

// At most two clients at a time call a partner's service.
func ExampleWithSlots() {
	locker, masters, done := inMemory()
	defer done()
	ctx := context.Background()
	masters.Take("partner:1", time.Minute) // another client
	err := locker.Do(ctx, "partner", func(ctx context.Context, lock *redlock.Lock) error {
		fmt.Println("a slot is held:", lock.Token() > 0)
		_, err := locker.TryLock(context.WithoutCancel(ctx), "partner", redlock.WithSlots(1)) // only slot 1
		fmt.Println("slot 1 is held:", errors.Is(err, redlock.ErrHeld))
		return nil
	}, redlock.WithSlots(2), redlock.WithWaitLimit(time.Minute))
	fmt.Println(err)
	// Output:
	// a slot is held: true
	// slot 1 is held: true
	// <nil>
}
