package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// shardsInMemory returns a Locker for examples: two shards of three masters in memory.
func shardsInMemory() (locker *redlock.Locker, done func()) {
	var pools []*pool.Pool
	var ends []func()
	for number := 1; number <= 2; number++ {
		masters := redlocktest.New(3, redlocktest.Shard(number, 2))
		p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // this machine may be busy
		if err != nil {
			panic(err)
		}
		ends = append(ends, func() { _ = p.Close() }, masters.Close)
		pools = append(pools, p)
	}
	locker, err := redlock.NewSharded(pools)
	if err != nil {
		panic(err)
	}
	if err := locker.WaitReady(context.Background()); err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close()
		for _, end := range ends {
			end()
		}
	}
}

// All clients must list the same shards, with the same masters, in the same order.
func ExampleOpenSharded() {
	locker, err := redlock.OpenSharded([][]string{
		{"redis://10.0.1.1", "redis://10.0.1.2", "redis://10.0.1.3"},
		{"redis://10.0.2.1", "redis://10.0.2.2", "redis://10.0.2.3"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()

	err = locker.Do(context.Background(), "orders:42", func(ctx context.Context, _ *redlock.Lock) error {
		return ctx.Err() // work
	})
	fmt.Println(err)
}

// Each bucket of a Redis Cluster is used as a shard, with its own hash slot.
func ExampleOpen_cluster() {
	locker, err := redlock.Open([]string{"redis+cluster://10.0.0.1:7000,10.0.0.2:7000,10.0.0.3:7000?buckets=64"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	err = locker.Do(context.Background(), "orders:42", func(ctx context.Context, _ *redlock.Lock) error {
		return ctx.Err() // work
	})
	fmt.Println(err)
}

// One Locker serves several shards, and operator calls apply to all of them.
func ExampleOpenSharded_operate() {
	locker, done := shardsInMemory()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	fmt.Println("ready:", locker.WaitReady(ctx), len(admin.Of(locker).Masters()), "masters")
	fmt.Println("admitted:", admin.Of(locker).Admit(ctx)) // new masters, on which no client holds a lock
	fmt.Println("max TTL:", admin.Of(locker).RaiseMaxTTL(ctx, time.Minute))
	verdict, err := admin.Of(locker).Check(ctx)
	fmt.Println("findings:", len(verdict.Findings), err)
	fmt.Println("unknown:", admin.Of(locker).Quarantine(ctx, "10.0.0.9:6379") != nil)
	fmt.Println("closed:", locker.Close(), admin.Of(locker).Masters()[0].Shard)
	// Output:
	// ready: <nil> 6 masters
	// admitted: <nil>
	// max TTL: <nil>
	// findings: 0 <nil>
	// unknown: true
	// closed: <nil> 1
}

// Names of several shards can be locked together.
func ExampleOpenSharded_together() {
	locker, done := shardsInMemory()
	defer done()

	names := []string{"account:7", "account:3"}
	err := locker.DoAll(context.Background(), names, func(ctx context.Context, locks *redlock.Locks) error {
		for _, name := range names {
			fmt.Println(name, "has a token:", locks.Of(name).Token() > 0)
		}
		return ctx.Err()
	})
	fmt.Println(err)
	locks, err := locker.LockAll(context.Background(), names)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.TryLockAll(context.Background(), names)
	fmt.Println(errors.Is(err, redlock.ErrHeld), locks.Unlock(context.Background()))
	// Output:
	// account:7 has a token: true
	// account:3 has a token: true
	// <nil>
	// true <nil>
}
