package memory_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// A crash, and a new start with the data on disk.
func ExampleMaster_Restart() {
	masters := memory.New(1)
	defer masters.Close()
	m := masters.Master(0)
	m.Set("a", "1")
	m.Restart(true)
	_, kept := m.Get("a")
	m.Restart(false)
	_, keptAgain := m.Get("a")
	fmt.Println(kept, keptAgain)
	// Output:
	// true false
}

// Masters that need half a millisecond for each script, one after the other: 2 000 scripts a second each.
func ExampleMaster_ScriptTime() {
	masters := memory.New(3)
	defer masters.Close()
	for i := range masters.N() {
		masters.Master(i).ScriptTime(500 * time.Microsecond)
	}
	locker, done := lockerOver(masters)
	defer done()

	lock, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	fmt.Println(lock.Unlock(context.Background()))
	// Output:
	// <nil>
	// <nil>
}

// Every other message to one master is slow.
func ExampleMaster_DelayFunc() {
	masters := memory.New(3)
	defer masters.Close()
	var n atomic.Int64
	masters.Master(0).DelayFunc(func() time.Duration {
		if n.Add(1)%2 == 0 {
			return 5 * time.Millisecond
		}
		return 0
	})
	locker, done := lockerOver(masters)
	defer done()

	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	// Output:
	// <nil>
}

// A master whose clock is an hour ahead and gains a second every ten.
func ExampleMaster_clock() {
	masters := memory.New(1)
	defer masters.Close()
	m := masters.Master(0)
	m.SetClock(time.Hour, 1.1)
	fmt.Println(time.Until(m.Time()).Round(time.Minute))
	// Output:
	// 1h0m0s
}

// A replica has no vote.
func ExampleMaster_SetRole() {
	masters := memory.New(3)
	defer masters.Close()
	masters.Master(2).SetRole("slave")
	locker, done := lockerOver(masters)
	defer done()

	fmt.Println(locker.Admin().Masters()[2].State)
	// Output:
	// down
}

// A master that may evict locks has no vote. Neither does one that may lose the record of having been a replica too
// soon.
func ExampleMaster_SetPolicy() {
	masters := memory.New(3)
	defer masters.Close()
	masters.Master(1).SetPolicy("allkeys-lru", 1<<30)
	masters.Master(2).SetConfig("repl-backlog-ttl", "1")
	locker, done := lockerOver(masters)
	defer done()

	for _, m := range locker.Admin().Masters() {
		fmt.Println(m.Addr, m.State)
	}
	// Output:
	// master-1:6379 voting
	// master-2:6379 down
	// master-3:6379 blocked
}

func ExampleMaster_SetConfig() {
	masters := memory.New(1)
	defer masters.Close()
	masters.Master(0).SetConfig("repl-backlog-ttl", "0") // it keeps the record of having been a replica
	// Output:
}

// One master has evicted a lock. Its holder, a Locker, would restore it with the next extension.
func ExampleMaster_evicted() {
	masters := memory.New(3)
	defer masters.Close()
	masters.Take("orders:42", time.Minute)
	m := masters.Master(0)
	fmt.Println("it was there:", m.Evict("orders:42"))
	id, depth, left := m.Holds("orders:42")
	fmt.Printf("%q %d %v\n", id, depth, left)
	_, on := masters.Holder("orders:42")
	fmt.Println("on", on)
	// Output:
	// it was there: true
	// "" 0 0s
	// on 2
}

// The data of a master, for tests that inspect it.
func ExampleMaster_keys() {
	masters := memory.New(1)
	defer masters.Close()
	masters.Take("orders:42", time.Minute)
	m := masters.Master(0)
	fmt.Println(m.Keys())
	m.Set("redlock:{orders:42}", "another client's data")
	text, ok := m.Get("redlock:{orders:42}")
	fmt.Println(text, ok, m.EvictKey("redlock:{orders:42}"))
	// Output:
	// [redlock:admission redlock:{orders:42}]
	// another client's data true true
}

// How many commands does a lock cost each master?
func ExampleMaster_counts() {
	ctx := context.Background()
	masters := memory.New(1)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = lock.Unlock(ctx)
	m := masters.Master(0)
	fmt.Println(m.Commands()["acquire"], m.Commands()["release"], "over", m.Connections(), "connection")
	// Output:
	// 1 1 over 1 connection
}

// lockerOver returns the Locker of an example.
func lockerOver(masters *memory.Masters, opts ...redlock.Option) (locker *redlock.Locker, done func()) {
	p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // this machine may be busy
	if err != nil {
		panic(err)
	}
	if locker, err = redlock.New(p, opts...); err != nil {
		panic(err)
	}
	private.Of(locker).Settle(context.Background())
	return locker, func() {
		_ = locker.Close(context.Background())
		_ = p.Close()
	}
}
