package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A program's own test, without a server: what does it do when the name is held by another, and when a lock that it
// holds is lost?
func Example() {
	ctx := context.Background()
	masters := redlocktest.New(5)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	locker, err := redlock.New(p, redlock.WithTTL(2*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	masters.Take("orders:42", time.Minute)
	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("held by another:", errors.Is(err, redlock.ErrHeld))

	masters.Free("orders:42")
	locker.Ready(ctx)        // all five are connected by then
	masters.Master(0).Hang() // one of five does not matter
	lock, err := locker.TryLock(ctx, "orders:42")
	fmt.Println("free again:", err)

	masters.Lose("orders:42")
	<-lock.Done()
	fmt.Println("lost:", errors.Is(lock.Err(), redlock.ErrLost))
	// Output:
	// held by another: true
	// free again: <nil>
	// lost: true
}
