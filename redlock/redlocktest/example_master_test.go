package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A minority of one master in three may fail in any way: the majority continues.
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
		{"loses its connections", sick.CutConnections},
		{"is stopped", sick.Stop},
		{"restarts empty", func() { sick.Restart(false) }},
		{"forgets all", sick.Flush},
	} {
		fault.do()
		err := locker.Do(ctx, "orders:42", func(context.Context) error { return nil })
		fmt.Println(sick.Addr(), fault.what+":", err)
	}
	// Output:
	// master-1:6379 hangs: <nil>
	// master-1:6379 goes on: <nil>
	// master-1:6379 loses its connections: <nil>
	// master-1:6379 is stopped: <nil>
	// master-1:6379 restarts empty: <nil>
	// master-1:6379 forgets all: <nil>
}

// Without a majority a call ends with its context.
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

// A crash, and a new start with the data on disk.
func ExampleMaster_Restart() {
	masters := redlocktest.New(1)
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

// A master that has restarted is in quarantine, unless the test admits it.
func ExampleMaster_Admit() {
	masters := redlocktest.New(1)
	defer masters.Close()
	masters.Master(0).Restart(false)
	masters.Master(0).Admit("redlock", 30*time.Second)
	locker, done := lockerOver(masters)
	defer done()

	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(err)
	// Output:
	// <nil>
}

// Masters with a round trip of a millisecond.
func ExampleMaster_Delay() {
	masters := redlocktest.New(3)
	defer masters.Close()
	for i := range masters.N() {
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

// Masters that need half a millisecond for each script, one after the other: 2 000 scripts a second each.
func ExampleMaster_ScriptTime() {
	masters := redlocktest.New(3)
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
	masters := redlocktest.New(3)
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

// A full master refuses every write. The error of a call says so if no majority is left.
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

// After a lost reply it is not known whether the master has granted the lock. The library rolls back, or finds out.
func ExampleMaster_lostMessages() {
	ctx := context.Background()
	masters := redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	masters.Master(0).DropReplies(1)
	masters.Master(1).DropRequests(1) // here not even the request arrives
	fmt.Println(locker.Do(ctx, "orders:42", func(context.Context) error { return nil }))
	// Output:
	// <nil>
}

// A master whose clock is an hour ahead and gains a second every ten.
func ExampleMaster_clock() {
	masters := redlocktest.New(1)
	defer masters.Close()
	m := masters.Master(0)
	m.SetClock(time.Hour, 1.1)
	fmt.Println(time.Until(m.Time()).Round(time.Minute))
	// Output:
	// 1h0m0s
}

// A replica has no vote.
func ExampleMaster_SetRole() {
	masters := redlocktest.New(3)
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
	masters := redlocktest.New(3)
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
	masters := redlocktest.New(1)
	defer masters.Close()
	masters.Master(0).SetConfig("repl-backlog-ttl", "0") // it keeps the record of having been a replica
	// Output:
}

// One master has evicted a lock. Its holder, a Locker, would restore it with the next extension.
func ExampleMaster_evicted() {
	masters := redlocktest.New(3)
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
	masters := redlocktest.New(1)
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
	masters := redlocktest.New(1)
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
