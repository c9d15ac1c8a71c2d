package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A program that needs a TLS configuration, or other timeouts, gives options for its connections.
func ExampleWithPool() {
	locker, err := redlock.Open([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		redlock.WithPool(pool.WithTimeout(200*time.Millisecond)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(locker.Close())
	// Output: <nil>
}

// At most two clients at a time call a partner's service. Each learns its slot.
func ExampleSemaphore() {
	locker, _, done := inMemory()
	defer done()
	ctx := context.Background()
	partner := locker.Semaphore("partner", 2)
	first, err := partner.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := partner.TryAcquire(ctx)
	fmt.Println("two slots:", first.Slot() != second.Slot(), err)
	call := func(context.Context, *redlock.Lock) error { return nil }
	fmt.Println("no third one:", errors.Is(partner.TryDo(ctx, call), redlock.ErrHeld))
	fmt.Println(second.Unlock(ctx), partner.Do(ctx, call), first.Unlock(ctx))
	// Output:
	// two slots: true <nil>
	// no third one: true
	// <nil> <nil> <nil>
}

func ExampleLocker_Semaphore() {
	locker, _, done := inMemory()
	defer done()
	partner := locker.Semaphore("partner", 2)
	fmt.Println(partner.Do(context.Background(), func(context.Context, *redlock.Lock) error { return nil }))
	// Output: <nil>
}

// A Lock of a semaphore has the number of its slot. Of other locks it is 0.
func ExampleLock_Slot() {
	locker, _, done := inMemory()
	defer done()
	lock, err := locker.Semaphore("partner", 1).Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lock.Slot(), lock.Unlock(context.Background()))
	// Output: 1 <nil>
}

// Two Lockers with different prefixes share the connections of two shards, which the program closes after both.
func ExampleNewSharded() {
	var pools []*pool.Pool
	for _, urls := range [][]string{{"redis://10.0.0.1"}, {"redis://10.0.0.2"}} {
		p, err := pool.Open(urls)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer p.Close()
		pools = append(pools, p)
	}
	for _, prefix := range []string{"orders", "stock"} {
		locker, err := redlock.NewSharded(pools, redlock.WithPrefix(prefix))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(locker.Close())
	}
	// Output:
	// <nil>
	// <nil>
}

// In a known outage, a call that may wait a minute behind another holder gives up after a second without a quorum.
func ExampleWithQuorumWait() {
	locker, masters, done := inMemory()
	defer done()
	masters.Master(1).Stop()
	masters.Master(2).Stop()
	_, err := locker.Lock(context.Background(), "orders:42",
		redlock.WithWaitLimit(time.Minute), redlock.WithQuorumWait(time.Second))
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum))
	// Output: true
}

// A caller tells its own caller when to come again.
func ExampleRetryAfter() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)
	_, err := locker.TryLock(context.Background(), "orders:42")
	after, known := redlock.RetryAfter(err)
	fmt.Println(known, after > 50*time.Second, after < 2*time.Minute)
	// Output: true true true
}
