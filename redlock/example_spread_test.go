package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// spreadInMemory makes Groups for examples: two groups of three masters in memory.
func spreadInMemory() (groups *redlock.Groups, done func()) {
	var lockers []*redlock.Locker
	var ends []func()
	for number := 1; number <= 2; number++ {
		masters := redlocktest.New(3, redlocktest.Group(number, 2))
		p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // this machine may be busy
		if err != nil {
			panic(err)
		}
		locker, err := redlock.New(p, redlock.WithGroup(number, 2))
		if err != nil {
			panic(err)
		}
		ends = append(ends, func() { _ = p.Close() }, masters.Close)
		lockers = append(lockers, locker)
	}
	groups, err := redlock.Spread(lockers...)
	if err != nil {
		panic(err)
	}
	groups.Ready(context.Background())
	return groups, func() {
		_ = groups.Close(context.Background())
		for _, end := range ends {
			end()
		}
	}
}

// One Locker for each group of masters. All programs name the groups, and the masters of each, alike.
func ExampleSpread() {
	var lockers []*redlock.Locker
	urls := [][]string{
		{"redis://10.0.1.1", "redis://10.0.1.2", "redis://10.0.1.3"},
		{"redis://10.0.2.1", "redis://10.0.2.2", "redis://10.0.2.3"},
	}
	for i, group := range urls {
		masters, err := pool.Dial(group)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer masters.Close()
		locker, err := redlock.New(masters, redlock.WithGroup(i+1, len(urls)))
		if err != nil {
			fmt.Println(err)
			return
		}
		lockers = append(lockers, locker)
	}
	groups, err := redlock.Spread(lockers...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer groups.Close(context.Background())

	err = groups.Do(context.Background(), "orders:42", func(ctx context.Context) error {
		return ctx.Err() // work
	})
	fmt.Println(err)
}

// The calls of Groups about one name are those of a Locker.
func ExampleGroups() {
	groups, done := spreadInMemory()
	defer done()
	ctx := context.Background()

	lock, err := groups.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = groups.TryLock(ctx, "orders:42")
	fmt.Println("held:", errors.Is(err, redlock.ErrHeld))
	holder, err := groups.Inspect(ctx, "orders:42")
	fmt.Println("by this lock:", holder.Token == lock.Token(), err)
	who, err := groups.Who(ctx, "orders:42")
	fmt.Println("waiters:", len(who.Queue), err)
	for h, err := range groups.Watch(ctx, "orders:42") {
		fmt.Println("watched:", h.ID == holder.ID, err)
		break
	}
	handle, err := lock.Export()
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err = groups.Import(ctx, handle) // in another process, as a rule
	fmt.Println("imported:", err)
	holder, _ = groups.Inspect(ctx, "orders:42")
	n, err := groups.ForceRelease(ctx, "orders:42", holder.ID)
	fmt.Println("taken away:", n >= 2, err)
	fmt.Println("lost:", errors.Is(lock.Unlock(ctx), redlock.ErrLost))
	err = groups.Lead(ctx, "leader", func(ctx context.Context) error { return ctx.Err() })
	fmt.Println("led:", err)
	// Output:
	// held: true
	// by this lock: true <nil>
	// waiters: 0 <nil>
	// watched: true <nil>
	// imported: <nil>
	// taken away: true <nil>
	// lost: true
	// led: <nil>
}

// What an operator does, and how a program begins and ends: all groups at once.
func ExampleGroups_operate() {
	groups, done := spreadInMemory()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	fmt.Println("ready:", groups.WaitReady(ctx), len(groups.Ready(ctx)), "masters, warnings:", groups.Warnings())
	fmt.Println("admitted:", groups.AdmitNow(ctx)) // new masters, on which nobody holds a lock
	fmt.Println("guard time:", groups.RaiseGuardTime(ctx, time.Minute))
	findings, err := groups.Check(ctx)
	fmt.Println("found:", len(findings) > 0, err)
	fmt.Println("nobody:", groups.Quarantine(ctx, "10.0.0.9:6379") != nil)
	fmt.Println("closed:", groups.Close(ctx), groups.Masters()[0].Group)
	// Output:
	// ready: <nil> 6 masters, warnings: []
	// admitted: <nil>
	// guard time: <nil>
	// found: true <nil>
	// nobody: true
	// closed: <nil> 1
}

// Names of several groups as one lock.
func ExampleGroups_together() {
	groups, done := spreadInMemory()
	defer done()

	names := []string{"account:7", "account:3"}
	err := groups.DoAll(context.Background(), names, func(ctx context.Context) error {
		for _, name := range names {
			fmt.Println(name, "has a token:", redlock.TokenFor(ctx, name) > 0)
		}
		return ctx.Err()
	})
	fmt.Println(err)
	locks, err := groups.LockAll(context.Background(), names)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = groups.TryLockAll(context.Background(), names)
	fmt.Println(errors.Is(err, redlock.ErrHeld), locks.Unlock(context.Background()))
	// Output:
	// account:7 has a token: true
	// account:3 has a token: true
	// <nil>
	// true <nil>
}

// Which group a name belongs to, and what state its masters are in.
func ExampleGroups_each() {
	groups, done := spreadInMemory()
	defer done()

	for _, name := range []string{"orders:42", "orders:43"} {
		m := groups.Of(name).Masters()[0]
		fmt.Printf("%s: group %d of %d, master %s is %s\n", name, m.Group, len(groups.Lockers()), m.Addr, m.State)
	}
	fmt.Println(groups.Do(context.Background(), "orders:42", func(ctx context.Context) error {
		return ctx.Err() // work
	}))
	fmt.Println(groups.Shared("prices").DoRead(context.Background(), func(ctx context.Context) error {
		return ctx.Err() // read
	}))
	// Output:
	// orders:42: group 2 of 2, master master-1:6379 is voting
	// orders:43: group 1 of 2, master master-1:6379 is voting
	// <nil>
	// <nil>
}

// A program that was not told of the groups wins nothing on their masters.
func ExampleWithGroup() {
	ctx := context.Background()
	masters := redlocktest.New(3, redlocktest.Group(2, 2))
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	for _, opts := range [][]redlock.Option{{redlock.WithGroup(2, 2)}, {redlock.WithGroup(2, 3)}, {}} {
		locker, err := redlock.New(p, opts...)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = locker.TryLock(ctx, "orders:42")
		fmt.Println(errors.Is(err, redlock.ErrGroup))
		_ = locker.Close(ctx)
	}
	// Output:
	// false
	// true
	// true
}

// Locks on a Redis Cluster: names are spread over buckets, each with a hash slot of its own.
func ExampleBuckets() {
	pools, err := pool.DialBuckets([]string{"redis+cluster://10.0.0.1:7000,10.0.0.2:7000,10.0.0.3:7000?buckets=64"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range pools {
		defer p.Close()
	}
	groups, err := redlock.Buckets(pools)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer groups.Close(context.Background())
	err = groups.Do(context.Background(), "orders:42", func(ctx context.Context) error {
		return ctx.Err() // work
	})
	fmt.Println(err)
}
