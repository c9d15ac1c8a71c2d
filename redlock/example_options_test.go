package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// An option given to New holds for all calls, one given to a call for this call alone.
func ExampleLockOption() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithTTL(5 * time.Second))
	defer done()

	usual, err := locker.Lock(ctx, "orders:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer usual.Unlock(ctx)
	longer, err := locker.Lock(ctx, "orders:2", redlock.WithTTL(20*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer longer.Unlock(ctx)
	fmt.Println(usual.Remaining().Round(5*time.Second), longer.Remaining().Round(5*time.Second))
	// Output:
	// 5s 20s
}

// A shorter TTL lets others have the name sooner when the holder dies. A living holder keeps it as long as it likes:
// the lock is extended every third of the TTL.
func ExampleWithTTL() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithTTL(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)
	fmt.Println(lock.Remaining() < 5*time.Second)
	// Output:
	// true
}

func ExampleWithMaxHold() {
	locker, _, done := inMemory()
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(ctx context.Context) error {
		<-ctx.Done() // work that hangs
		return context.Cause(ctx)
	}, redlock.WithMaxHold(20*time.Millisecond))
	fmt.Println(errors.Is(err, redlock.ErrMaxHold))
	// Output:
	// true
}

// A job that must not run again within ten seconds: its name stays locked, whoever ran it and however soon it was done.
func ExampleWithMinHold() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.TryLock(ctx, "job/report", redlock.WithMinHold(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = lock.Unlock(ctx) // the job took a moment

	_, err = locker.TryLock(ctx, "job/report")
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	holder, err := locker.Inspect(ctx, "job/report")
	fmt.Println(holder.Kept, err)
	// Output:
	// true
	// true <nil>
}

// Without extension a lock ends with its first validity.
func ExampleWithExtension() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithExtension(false), redlock.WithTTL(50*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	<-lock.Done()
	fmt.Println(errors.Is(lock.Err(), redlock.ErrLost))
	// Output:
	// true
}

// The first that asks is served first, whatever its process.
func ExampleWithFair() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "tickets:row-7", redlock.WithFair())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// <nil>
}

// A person who waits comes before jobs that wait, whatever their process and however long.
func ExampleWithPriority() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "printer", redlock.WithPriority(10)) // the jobs have 0, the default
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// <nil>
}

// Without handing on, each goroutine releases the lock on the masters, and other processes may come between.
func ExampleWithHandOn() {
	locker, _, done := inMemory(redlock.WithHandOn(0, 0))
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil })
	fmt.Println(err)
	// Output:
	// <nil>
}

func ExampleWithWaitLimit() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	_, err := locker.Lock(ctx, "orders:42", redlock.WithWaitLimit(50*time.Millisecond))
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output:
	// true
}

func ExampleWithMinValidity() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithTTL(10*time.Second), redlock.WithMinValidity(8*time.Second))
	if err != nil {
		fmt.Println(err) // ErrTooSlow, if the masters took longer than two seconds to answer
		return
	}
	defer lock.Unlock(ctx)
	fmt.Println("at least 8 s are left:", lock.Remaining() > 8*time.Second)
	// Output:
	// at least 8 s are left: true
}

func ExampleWithTries() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	_, err := locker.Lock(ctx, "orders:42",
		redlock.WithTries(3), redlock.WithDelays(redlock.Delays{Fixed: 5 * time.Millisecond}))
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output:
	// true
}

func ExampleWithDelays() {
	locker, _, done := inMemory(redlock.WithDelays(redlock.Delays{
		Fixed: 20 * time.Millisecond, Random: 20 * time.Millisecond, Growth: 2, Cap: time.Second,
	}))
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil })
	fmt.Println(err)
	// Output:
	// <nil>
}

// Twice is a policy of one's own: it tries once more, at once.
type twice struct{ tried bool }

func (t *twice) Next() (pause time.Duration, again bool) {
	again, t.tried = !t.tried, true
	return 0, again
}

func ExampleWithBackoff() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	// type twice struct{ tried bool }
	//
	// func (t *twice) Next() (pause time.Duration, again bool) {
	// 	again, t.tried = !t.tried, true
	// 	return 0, again
	// }
	_, err := locker.Lock(ctx, "orders:42", redlock.WithBackoff(func() redlock.Backoff { return new(twice) }))
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output:
	// true
}

func ExampleDelays() {
	d := redlock.Delays{Fixed: 10 * time.Millisecond, Growth: 2, Cap: 50 * time.Millisecond, Tries: 5}
	for n := 1; n < d.Tries; n++ {
		fmt.Print(d.Delay(n, 0), " ")
	}
	b := d.Start()
	pause, again := b.Next()
	fmt.Println(pause, again)
	// Output:
	// 10ms 20ms 40ms 50ms 10ms true
}

// The label of a holder stands in the errors of those that find the name held.
func ExampleWithOwner() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithOwner("billing on web-7"))
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)
	held, err := locker.Inspect(ctx, "orders:42")
	fmt.Println(held.Owner, err)
	// Output:
	// billing on web-7 <nil>
}

// Two services on the same masters that know nothing of each other's names.
func ExampleWithPrefix() {
	masters := redlocktest.New(3, redlocktest.Prefix("billing"))
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	locker, err := redlock.New(p, redlock.WithPrefix("billing"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(context.Background())
	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil }))
	// Output:
	// <nil>
}

// The guard time is the longest TTL of the fleet; all its programs give the same.
func ExampleWithGuardTime() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithGuardTime(30 * time.Second))
	defer done()

	_, err := locker.Lock(ctx, "orders:42", redlock.WithTTL(time.Minute))
	fmt.Println(errors.Is(err, redlock.ErrInvalidOption))
	// Output:
	// true
}

// A durable master votes at once after a restart with its memory.
func ExampleWithDurableMasters() {
	ctx := context.Background()
	locker, masters, done := inMemory(redlock.WithDurableMasters()) // no name: all of them
	defer done()

	for i := range masters.N() {
		masters.Master(i).Restart(true)
	}
	fmt.Println(locker.WaitReady(ctx))
	// Output:
	// <nil>
}

// Without the guard a master that restarts empty votes at once.
func ExampleWithoutGuard() {
	locker, _, done := inMemory(redlock.WithoutGuard())
	defer done()

	fmt.Println(locker.WaitReady(context.Background()))
	// Output:
	// <nil>
}

func ExampleWithoutReentry() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithoutReentry())
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)
	_, err = locker.Lock(lock.Context(ctx), "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrReentry))
	// Output:
	// true
}

func ExampleWithDrift() {
	locker, _, done := inMemory(redlock.WithDrift(clock.Drift{Factor: 0.02, Constant: 5 * time.Millisecond}))
	defer done()

	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil }))
	// Output:
	// <nil>
}

// In tests the clock may be that of the time package, which a testing/synctest bubble replaces.
func ExampleWithClock() {
	locker, _, done := inMemory(redlock.WithClock(clock.Runtime()))
	defer done()

	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil }))
	// Output:
	// <nil>
}

func ExampleWithLogger() {
	locker, _, done := inMemory(redlock.WithLogger(slog.New(slog.DiscardHandler))) // it says nothing
	defer done()

	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context) error { return nil }))
	// Output:
	// <nil>
}

func ExampleWithTrace() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithTrace(&redlock.Trace{
		Acquired: func(i redlock.LockInfo) { fmt.Println("acquired", i.Name) },
	}))
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)
	// Output:
	// acquired orders:42
}

// A command that only looks writes no admission records.
func ExampleWithObserver() {
	locker, _, done := inMemory(redlock.WithObserver())
	defer done()

	held, err := locker.Inspect(context.Background(), "orders:42")
	fmt.Printf("%q %v\n", held.Owner, err)
	// Output:
	// "" <nil>
}

// What is held can be read at any time, also while events of a Trace are dropped.
func ExampleLocker_Stats() {
	locker, _, done := inMemory()
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(context.Context) error {
		s := locker.Stats()
		fmt.Println(s.Held, s.Dropped)
		return nil
	})
	fmt.Println(err, len(locker.Stats().Held))
	// Output:
	// [orders:42] 0
	// <nil> 0
}
