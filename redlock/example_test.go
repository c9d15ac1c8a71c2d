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

// inMemory returns the Locker of an example, over three masters in memory. A real program calls New with a pool from
// pool.Open.
func inMemory(opts ...redlock.Option) (locker *redlock.Locker, masters *redlocktest.Masters, done func()) {
	masters = redlocktest.New(3)
	p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // for busy machines
	if err != nil {
		panic(err)
	}
	if locker, err = redlock.New(p, opts...); err != nil {
		panic(err)
	}
	if err := locker.WaitReady(context.Background()); err != nil {
		panic(err)
	}
	return locker, masters, func() {
		_ = locker.Close()
		_ = p.Close()
		masters.Close()
	}
}

// check ends an example if err is not nil.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Do is the simplest call: it acquires the lock, runs the function, and releases the lock.
func Example() {
	ctx := context.Background()
	masters := redlocktest.New(5) // in memory; for servers use pool.Open(urls)
	defer masters.Close()
	p, err := masters.Pool()
	check(err)
	defer p.Close()
	locker, err := redlock.New(p)
	check(err)
	defer locker.Close()

	pay := func(ctx context.Context, order int, token int64) error {
		fmt.Println("order", order, "is paid; there is a token:", token > 0)
		return ctx.Err()
	}
	err = locker.Do(ctx, "orders:42", func(ctx context.Context, lock *redlock.Lock) error {
		return pay(ctx, 42, lock.Token())
	})
	fmt.Println(err)
	// Output:
	// order 42 is paid; there is a token: true
	// <nil>
}

func ExampleNew() {
	masters, err := pool.Open([]string{
		"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3", "redis://10.0.0.4", "redis://10.0.0.5",
	})
	check(err)
	defer masters.Close()
	locker, err := redlock.New(masters, redlock.WithTTL(5*time.Second))
	check(err)
	defer locker.Close()
}

// One Locker serves all goroutines of a program.
func ExampleLocker() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)
	fmt.Println("holding", lock.Name())
	// Output:
	// holding orders:42
}

// Code that gets only a context finds the lock that owns the context.
func ExampleFromContext() {
	locker, _, done := inMemory()
	defer done()

	save := func(ctx context.Context) error {
		lock, ok := redlock.FromContext(ctx)
		if !ok {
			return errors.New("save needs a lock")
		}
		// UPDATE orders SET ..., token = $token WHERE id = 42 AND token <= $token
		fmt.Println("saving under the lock", lock.Name())
		return nil
	}
	ctx := context.Background()
	err := locker.Do(ctx, "orders:42", func(ctx context.Context, _ *redlock.Lock) error { return save(ctx) })
	fmt.Println(err)
	fmt.Println(save(ctx))
	// Output:
	// saving under the lock orders:42
	// <nil>
	// save needs a lock
}

func ExampleLocker_Do() {
	locker, _, done := inMemory()
	defer done()

	err := locker.Do(context.Background(), "reports:monthly", func(ctx context.Context, lock *redlock.Lock) error {
		// ctx ends when the lock is lost: pass it to everything that the work calls.
		// lock.Token() goes with each write, so that the resource can refuse a late one.
		return ctx.Err()
	}, redlock.WithWaitLimit(5*time.Second)) // ErrHeld if another client holds the name for longer
	fmt.Println(err)
	// Output:
	// <nil>
}

// Lock waits while another client holds the name. A context bounds the wait.
func ExampleLocker_Lock() {
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute) // another client holds the name

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := locker.Lock(ctx, "orders:42")
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, redlock.ErrHeld))
	// Output:
	// true true
}

// A call with the context of a lock of the same name fails, unless it asks to share that lock.
func ExampleWithReentry() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	outer, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer outer.Unlock(ctx)
	_, err = locker.Lock(outer.Context(ctx), "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrReentry))
	inner, err := locker.Lock(outer.Context(ctx), "orders:42", redlock.WithReentry()) // does not wait for outer
	check(err)
	defer inner.Unlock(ctx)
	fmt.Println("one token:", inner.Token() == outer.Token())
	// Output:
	// true
	// one token: true
}

// A job that every server starts, but only one server runs.
func ExampleLocker_TryLock() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("jobs:nightly", time.Minute) // another server is first

	lock, err := locker.TryLock(ctx, "jobs:nightly")
	switch {
	case errors.Is(err, redlock.ErrHeld):
		fmt.Println("another does it")
	case err != nil:
		fmt.Println(err)
	default:
		defer lock.Unlock(ctx)
		fmt.Println("doing it")
	}
	// Output:
	// another does it
}

// Shutdown lets the work in progress finish.
func ExampleLocker_Shutdown() {
	locker, _, done := inMemory()
	defer done()

	begun, finished := make(chan struct{}), make(chan error)
	go func() {
		finished <- locker.Do(context.Background(), "orders:42", func(ctx context.Context, _ *redlock.Lock) error {
			close(begun)
			time.Sleep(50 * time.Millisecond) // the work
			return ctx.Err()
		})
	}()
	<-begun
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("shut down:", locker.Shutdown(ctx))
	fmt.Println("work:", <-finished)
	// Output:
	// shut down: <nil>
	// work: <nil>
}

// Close releases the locks that are still held, so that other clients need not wait for the TTL.
func ExampleLocker_Close() {
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(context.Background(), "orders:42")
	fmt.Println(err)
	fmt.Println(locker.Close())
	fmt.Println("closed:", errors.Is(lock.Err(), redlock.ErrClosed))
	// Output:
	// <nil>
	// <nil>
	// closed: true
}

func ExampleLocker_TryDo() {
	locker, _, shut := inMemory()
	defer shut()
	err := locker.TryDo(context.Background(), "nightly-report", func(context.Context, *redlock.Lock) error {
		fmt.Println("report")
		return nil
	})
	if errors.Is(err, redlock.ErrHeld) {
		fmt.Println("another machine writes it")
	}
	// Output: report
}
