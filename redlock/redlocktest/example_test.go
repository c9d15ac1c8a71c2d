package redlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A test without a server checks what the program does when another client holds the name, and when it loses a lock.
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
	defer locker.Close()

	masters.Take("orders:42", time.Minute)
	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("held by another:", errors.Is(err, redlock.ErrHeld))

	masters.Free("orders:42")
	if err := locker.WaitReady(ctx); err != nil { // waits until all five are connected
		fmt.Println(err)
		return
	}
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

// A test with a separate Locker checks what the program does when it loses a lock. The function is the body of a
// test.
func ExampleNewLocker() {
	test := func(t *testing.T) {
		locker, masters := redlocktest.NewLocker(t, 5, redlock.WithTTL(2*time.Second))
		lock := must.Get(locker.Lock(t.Context(), "orders:42"))(t)
		masters.Lose("orders:42")
		<-lock.Done()
		if !errors.Is(lock.Err(), redlock.ErrLost) {
			t.Error(lock.Err())
		}
	}
	_ = test
	// Output:
}

// lockerOver returns the Locker of an example.
func lockerOver(masters *redlocktest.Masters, opts ...redlock.Option) (locker *redlock.Locker, done func()) {
	p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // this machine may be busy
	if err != nil {
		panic(err)
	}
	if locker, err = redlock.New(p, opts...); err != nil {
		panic(err)
	}
	client.SetOf(locker).AwaitKnown(context.Background())
	return locker, func() {
		_ = locker.Close()
		_ = p.Close()
	}
}

// A test that has started servers, such as in containers, need not wait for their quarantine.
func ExampleAdmit() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	urls := []string{"redis://127.0.0.1:32768", "redis://127.0.0.1:32769", "redis://127.0.0.1:32770"}
	if err := redlocktest.Admit(ctx, urls...); err != nil { // waits for servers that are still starting
		fmt.Println(err)
		return
	}
	locker, err := redlock.Open(urls)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	if err := locker.WaitReady(ctx); err != nil { // all masters are connected, so each gets the lock
		fmt.Println(err)
		return
	}
	lock, err := locker.Lock(ctx, "first")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)
}

// A test simulates another client that holds the name, waits until it is free, and loses the lock.
func ExampleMasters() {
	ctx, masters := context.Background(), redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool(pool.WithTimeout(time.Minute)) // takes the same options as pool.Open
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	locker, err := redlock.New(p, redlock.WithTTL(100*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()

	fmt.Println(masters.URLs())
	masters.Master(2).Stop() // one of three does not matter
	masters.Take("orders:42", time.Minute)
	time.AfterFunc(20*time.Millisecond, func() { masters.Free("orders:42") })
	err = locker.Do(ctx, "orders:42", func(ctx context.Context, _ *redlock.Lock) error {
		fmt.Println("at last")
		masters.Lose("orders:42")
		<-ctx.Done() // the next extension detects the loss
		return nil
	})
	fmt.Println(errors.Is(err, redlock.ErrLost))
	// Output:
	// [redis://master-1:6379 redis://master-2:6379 redis://master-3:6379]
	// at last
	// true
}

// A second client holds the only slot of a semaphore.
func ExampleMasters_Pool() {
	ctx, masters := context.Background(), redlocktest.New(3)
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	p, err := masters.Pool() // one for each client
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	other, err := redlock.New(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close() // before p
	if _, err := other.Semaphore("partner", 1).Acquire(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Semaphore("partner", 1).TryAcquire(ctx)
	fmt.Println("no slot is free:", errors.Is(err, redlock.ErrHeld))
	// Output:
	// no slot is free: true
}

// The masters are made with the prefix and the max TTL of the Locker.
func ExampleOption() {
	masters := redlocktest.New(3, redlocktest.Prefix("billing"), redlocktest.MaxTTL(time.Minute))
	defer masters.Close()
	locker, done := lockerOver(masters, redlock.WithPrefix("billing"), redlock.WithMaxTTL(time.Minute))
	defer done()

	_, err := locker.TryLock(context.Background(), "orders:42", redlock.WithTTL(45*time.Second))
	fmt.Println(err)
	// Output:
	// <nil>
}

// A program that calls pool.Open itself reaches the masters with WithDialer.
func ExampleMasters_Dial() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := pool.Open(masters.URLs(), pool.WithDialer(masters.Dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Addr(0))
	// Output:
	// master-1:6379
}

// A program that takes URLs, but no dialer, needs masters that listen on ports.
func ExampleMasters_Listen() {
	masters := redlocktest.New(3)
	defer masters.Close()
	urls, err := masters.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := pool.Open(urls)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(len(urls), strings.HasPrefix(urls[0], "redis://127.0.0.1:"))
	// Output:
	// 3 true
}

// Fresh makes masters that have not been admitted, to test how the program starts on them.
func ExampleFresh() {
	masters := redlocktest.New(3, redlocktest.Fresh())
	defer masters.Close()
	locker, done := lockerOver(masters)
	defer done()

	_, err := locker.TryLock(context.Background(), "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum))
	// Output:
	// true
}

// Shard makes the masters of one of two shards. A test of sharded names makes one set of masters for each shard.
func ExampleShard() {
	var shards []*pool.Pool
	for number := 1; number <= 2; number++ {
		masters := redlocktest.New(3, redlocktest.Shard(number, 2))
		defer masters.Close()
		p, err := masters.Pool()
		if err != nil {
			fmt.Println(err)
			return
		}
		defer p.Close()
		shards = append(shards, p)
	}
	locker, err := redlock.NewSharded(shards)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	_, err = locker.TryLock(context.Background(), "orders:42") // this name belongs to shard 2
	fmt.Println(err)
	// Output: <nil>
}
