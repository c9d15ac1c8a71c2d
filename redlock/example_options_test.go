package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Options of a program that shares its masters with others.
func ExampleOption() {
	locker, err := redlock.Open([]string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"},
		redlock.WithPrefix("billing"),                     // its names are independent of those of other prefixes
		redlock.WithLabel("billing on web-7"),             // appears in the errors of clients that find a name held
		redlock.WithLogger(slog.New(slog.DiscardHandler)), // no log
		redlock.WithTTL(5*time.Second),                    // a shorter TTL frees the name sooner when the holder dies
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(locker.Close())
	// Output:
	// <nil>
}

// An option of New applies to all calls. An option of a call applies only to that call.
func ExampleLockOption() {
	ctx := context.Background()
	locker, masters, done := inMemory(redlock.WithTTL(5 * time.Second))
	defer done()

	usual, err := locker.Lock(ctx, "orders:1")
	check(err)
	defer usual.Unlock(ctx)
	longer, err := locker.Lock(ctx, "orders:2", redlock.WithTTL(20*time.Second),
		redlock.WithFair(),                 // calls are served in order, regardless of their process
		redlock.WithPriority(10),           // before the calls of jobs, which have 0, the default
		redlock.WithHoldWarning(time.Hour), // the log says that a lock held for an hour may have been forgotten
	)
	check(err)
	defer longer.Unlock(ctx)
	fmt.Println(usual.Remaining().Round(5*time.Second), longer.Remaining().Round(5*time.Second))

	masters.Take("orders:3", time.Minute) // another client
	for _, limit := range []redlock.LockOption{redlock.WithWaitLimit(50 * time.Millisecond), redlock.WithTries(3)} {
		_, err = locker.Lock(ctx, "orders:3", limit)
		fmt.Println(errors.Is(err, redlock.ErrHeld))
	}
	// Output:
	// 5s 20s
	// true
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
