package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// One of three masters may fail in any way, because the other two are a majority.
func ExampleMaster() {
	ctx := context.Background()
	masters := redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	sick := masters.Master(0)
	for _, fault := range []struct {
		what string
		do   func()
	}{
		{"hangs", sick.Hang},
		{"goes on", sick.Resume},
		{"is stopped", sick.Stop},
		{"restarts empty", func() { sick.Restart(false) }},
		{"is admitted without a quarantine", sick.Admit},
		{"forgets all", sick.Flush},
	} {
		fault.do()
		err := locker.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil })
		fmt.Println("master 1", fault.what+":", err)
	}
	// Output:
	// master 1 hangs: <nil>
	// master 1 goes on: <nil>
	// master 1 is stopped: <nil>
	// master 1 restarts empty: <nil>
	// master 1 is admitted without a quarantine: <nil>
	// master 1 forgets all: <nil>
}

// Without a majority a call waits until its context ends.
func ExampleMaster_Hang() {
	masters := redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	masters.Master(0).Hang()
	masters.Master(1).Hang()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := locker.Lock(ctx, "orders:42")
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	masters.Master(0).Resume()
	masters.Master(1).Resume()
	// Output:
	// true
}

// Delay delays each request and each reply by a millisecond, so a round trip takes two.
func ExampleMaster_Delay() {
	masters := redlocktest.New(3)
	defer masters.Close()
	for i := range 3 {
		masters.Master(i).Delay(time.Millisecond)
	}
	locker, done := lockerOver(masters)
	defer done()

	began := time.Now()
	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err, time.Since(began) >= 2*time.Millisecond)
	// Output:
	// <nil> true
}

// A full master refuses every write. If no majority is left, the error of a call contains the refusals.
func ExampleMaster_Refuse() {
	masters := redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	for i := range 2 {
		masters.Master(i).Refuse("OOM command not allowed when used memory > 'maxmemory'.")
	}
	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum))
	for i := range 2 {
		masters.Master(i).Refuse("") // end the fault
	}
	_, err = locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// After a lost reply the client does not know whether the master has granted the lock. The library handles such a
// reply without help from the caller.
func ExampleMaster_lostMessages() {
	ctx := context.Background()
	masters := redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	masters.Master(0).DropReplies(1)
	masters.Master(1).DropRequests(1) // on this master not even the request arrives
	fmt.Println(locker.Do(ctx, "orders:42", func(context.Context, *redlock.Lock) error { return nil }))
	// Output:
	// <nil>
}

// The clock of one master of three is a minute ahead: the others still grant locks.
func ExampleMaster_SetClock() {
	masters := redlocktest.New(3)
	defer masters.Close()
	masters.Master(0).SetClock(time.Minute, 1)
	locker, done := lockerOver(masters)
	defer done()

	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	// Output:
	// <nil>
}
