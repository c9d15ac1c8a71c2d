package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// An option of New applies to all calls. An option of a call applies only to that call.
func ExampleLockOption() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithTTL(5 * time.Second))
	defer done()

	usual, err := locker.Lock(ctx, "orders:1")
	check(err)
	defer usual.Unlock(ctx)
	longer, err := locker.Lock(ctx, "orders:2", redlock.WithTTL(20*time.Second))
	check(err)
	defer longer.Unlock(ctx)
	fmt.Println(usual.Remaining().Round(5*time.Second), longer.Remaining().Round(5*time.Second))
	// Output:
	// 5s 20s
}

// A shorter TTL frees the name sooner when the holder dies. A live holder can keep the name for any time, because the
// lock is extended every third of the TTL.
func ExampleWithTTL() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithTTL(5*time.Second))
	check(err)
	defer lock.Unlock(ctx)
	fmt.Println(lock.Remaining() < 5*time.Second)
	// Output:
	// true
}

func ExampleWithMaxHold() {
	locker, _, done := inMemory()
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(ctx context.Context, _ *redlock.Lock) error {
		<-ctx.Done() // work that hangs
		return context.Cause(ctx)
	}, redlock.WithMaxHold(20*time.Millisecond))
	fmt.Println(errors.Is(err, redlock.ErrMaxHold))
	// Output:
	// true
}

// A job that must not run again within ten seconds: its name stays locked, regardless of which client ran the job and
// how long the job took.
func ExampleWithMinHold() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.TryLock(ctx, "job/report", redlock.WithMinHold(10*time.Second))
	check(err)
	_ = lock.Unlock(ctx) // the job took a moment

	_, err = locker.TryLock(ctx, "job/report")
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	holder, err := locker.Inspect(ctx, "job/report")
	fmt.Println(holder.Kept, err)
	// Output:
	// true
	// true <nil>
}

// Without extension a lock ends when its first validity has expired.
func ExampleWithExtension() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "orders:42", redlock.WithExtension(false), redlock.WithTTL(50*time.Millisecond))
	check(err)
	<-lock.Done()
	fmt.Println(errors.Is(lock.Err(), redlock.ErrLost))
	// Output:
	// true
}

// Fair calls are served in order, regardless of their process.
func ExampleWithFair() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "tickets:row-7", redlock.WithFair())
	check(err)
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// <nil>
}

// A user's request gets the lock before waiting jobs, regardless of their process and their waiting time.
func ExampleWithPriority() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	lock, err := locker.Lock(ctx, "printer", redlock.WithPriority(10)) // the jobs have 0, the default
	check(err)
	fmt.Println(lock.Unlock(ctx))
	// Output:
	// <nil>
}

func ExampleWithAsyncUnlock() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithAsyncUnlock())
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	fmt.Println(lock.Unlock(ctx)) // the masters have not answered yet
	again, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer again.Unlock(ctx)
	fmt.Println(again.Token() > lock.Token())
	// Output:
	// <nil>
	// true
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

func ExampleWithTries() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Minute)

	_, err := locker.Lock(ctx, "orders:42", redlock.WithTries(3))
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output:
	// true
}

// The label of a holder appears in the errors of clients that find the name held.
func ExampleWithLabel() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithLabel("billing on web-7"))
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)
	held, err := locker.Inspect(ctx, "orders:42")
	fmt.Println(held.Label, err)
	// Output:
	// billing on web-7 <nil>
}

// Two services can use the same masters with independent names.
func ExampleWithPrefix() {
	masters := redlocktest.New(3, redlocktest.Prefix("billing"))
	defer masters.Close()
	p, err := masters.Pool()
	check(err)
	defer p.Close()
	locker, err := redlock.New(p, redlock.WithPrefix("billing"))
	check(err)
	defer locker.Close()
	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error { return nil }))
	// Output:
	// <nil>
}

// The max TTL is the longest TTL of the deployment; all its clients use the same value.
func ExampleWithMaxTTL() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithMaxTTL(30 * time.Second))
	defer done()

	_, err := locker.Lock(ctx, "orders:42", redlock.WithTTL(time.Minute))
	fmt.Println(errors.Is(err, redlock.ErrInvalid))
	// Output:
	// true
}

// A durable master votes immediately after a restart with its data.
func ExampleWithAllMastersDurable() {
	ctx := context.Background()
	locker, masters, done := inMemory(redlock.WithAllMastersDurable())
	defer done()

	for i := range 3 {
		masters.Master(i).Restart(true)
	}
	fmt.Println(locker.WaitReady(ctx))
	// Output:
	// <nil>
}

// Without the guard a master that restarts empty votes immediately.
func ExampleWithoutRestartGuard() {
	locker, _, done := inMemory(redlock.WithoutRestartGuard())
	defer done()

	fmt.Println(locker.WaitReady(context.Background()))
	// Output:
	// <nil>
}

func ExampleWithLogger() {
	locker, _, done := inMemory(redlock.WithLogger(slog.New(slog.DiscardHandler))) // no log
	defer done()

	fmt.Println(locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error { return nil }))
	// Output:
	// <nil>
}

func ExampleWithTrace() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithTrace(redlock.On("acquired",
		func(i redlockinfo.Event) { fmt.Println("acquired", i.Name) })))
	defer done()

	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)
	// Output:
	// acquired orders:42
}

// The held names can be read at any time, even while events of a Trace are dropped.
func ExampleLocker_Stats() {
	locker, _, done := inMemory()
	defer done()

	err := locker.Do(context.Background(), "orders:42", func(context.Context, *redlock.Lock) error {
		s := locker.Stats()
		fmt.Println(s.Held, s.Dropped)
		return nil
	})
	fmt.Println(err, len(locker.Stats().Held))
	// Output:
	// [orders:42] 0
	// <nil> 0
}

// Only the named masters are declared durable. In memory they report the settings of durable servers.
func ExampleWithDurableMasters() {
	ctx := context.Background()
	locker, masters, done := inMemory(redlock.WithDurableMasters("master-1:6379", "master-2:6379"))
	defer done()

	masters.Master(0).Restart(true)
	masters.Master(1).Restart(true)
	fmt.Println(locker.WaitReady(ctx))
	// Output:
	// <nil>
}
