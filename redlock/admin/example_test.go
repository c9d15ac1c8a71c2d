package admin_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// inMemory returns a Locker over three masters in memory, the masters, and a function that closes both.
func inMemory(opts ...redlock.Option) (locker *redlock.Locker, masters *redlocktest.Masters, done func()) {
	masters = redlocktest.New(3)
	p, err := masters.Pool(pool.WithTimeout(time.Minute), pool.WithDialTimeout(time.Minute)) // for busy machines
	check(err)
	locker, err = redlock.New(p, opts...)
	check(err)
	check(locker.WaitReady(context.Background()))
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

// An operator usually begins with the configuration and the findings of Check.
func ExampleAdmin() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	operator := admin.Of(locker)
	fmt.Println("epoch", operator.Configuration()[0].Epoch, "with", len(operator.Configuration()[0].Masters), "masters")
	verdict, err := operator.Check(ctx)
	fmt.Println("locks can be acquired:", verdict, err)
	fmt.Println(len(verdict.Findings), "findings")
	// Output:
	// epoch 0 with 3 masters
	// locks can be acquired: yes, and one more master may fail <nil>
	// 0 findings
}

func ExampleOf() {
	locker, _, done := inMemory()
	defer done()

	for _, m := range admin.Of(locker).Masters() {
		fmt.Println(m.Addr, m.State)
	}
	// Output:
	// master-1:6379 voting
	// master-2:6379 voting
	// master-3:6379 voting
}

// Masters suits a health check, because it neither sends messages nor blocks.
func ExampleAdmin_Masters() {
	locker, _, done := inMemory()
	defer done()

	voting := 0
	for _, m := range admin.Of(locker).Masters() {
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Println(voting, "of", len(admin.Of(locker).Masters()))
	// Output:
	// 3 of 3
}

// New masters wait in quarantine. If no client can hold a lock on them, Admit ends the quarantine.
func ExampleAdmin_Admit() {
	ctx := context.Background()
	masters := redlocktest.New(3, redlocktest.Fresh())
	defer masters.Close()
	p, err := masters.Pool()
	check(err)
	defer p.Close()
	locker, err := redlock.New(p)
	check(err)
	defer locker.Close()

	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum), admin.Of(locker).Masters()[0].State)
	fmt.Println("admitted:", admin.Of(locker).Admit(ctx))
	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("locked:", err)
	// Output:
	// true quarantine
	// admitted: <nil>
	// locked: <nil>
}

// ForceRelease is for operators who know that the holder is dead.
func ExampleAdmin_ForceRelease() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Hour) // by a client that is dead

	held, err := locker.Inspect(ctx, "orders:42")
	check(err)
	released, err := admin.Of(locker).ForceRelease(ctx, "orders:42", held.ID)
	fmt.Println("released on", released, err)
	// Output:
	// released on 3 <nil>
}

// A long job hands its lock over when an operator, or a new version of the program, requests it.
func ExampleAdmin_RequestRelease() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()
	started := make(chan struct{})
	var operator sync.WaitGroup
	operator.Go(func() {
		<-started
		for asked := 0; asked == 0; time.Sleep(time.Millisecond) { // until the job is subscribed
			asked, _ = admin.Of(locker).RequestRelease(ctx, "nightly-report")
		}
	})
	err := locker.Do(ctx, "nightly-report", func(_ context.Context, lock *redlock.Lock) error {
		requested := lock.ReleaseRequested()
		close(started)
		for page := 1; ; page++ { // write a page, and stop between two pages
			select {
			case <-requested:
				fmt.Println("handing over")
				return nil
			case <-time.After(time.Millisecond):
			}
		}
	})
	operator.Wait()
	fmt.Println(err)
	// Output:
	// handing over
	// <nil>
}

func ExampleAdmin_Check() {
	locker, masters, done := inMemory()
	defer done()
	masters.Master(2).Stop()

	verdict, err := admin.Of(locker).Check(context.Background())
	for _, f := range verdict.Findings {
		if f.About == "connection" {
			fmt.Println(f.Master, "does not answer") // f.What, f.Risk and f.Fix have the details
		}
	}
	fmt.Println(err)
	// Output:
	// master-3:6379 does not answer
	// <nil>
}

// RaiseMaxTTL allows longer TTLs.
func ExampleAdmin_RaiseMaxTTL() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	fmt.Println(admin.Of(locker).RaiseMaxTTL(ctx, time.Minute))
	// Output:
	// <nil>
}

// Quarantine puts a master with an unusable admission record into quarantine. Afterwards the master votes.
func ExampleAdmin_Quarantine() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	fmt.Println(admin.Of(locker).Quarantine(ctx, "master-1:6379"))
	// Output:
	// <nil>
}

// A client takes part in a change from three masters to three others. The command redlock set guides an operator
// through the change: each step begins when all clients have completed the previous one.
func ExampleAdmin_Reconfigure() {
	ctx := context.Background()
	old, next := redlocktest.New(3), redlocktest.New(3)
	defer old.Close()
	defer next.Close()
	oldURLs, err := old.Listen()
	check(err)
	nextURLs, err := next.Listen()
	check(err)
	masters, err := pool.Open(oldURLs)
	check(err)
	defer masters.Close()
	locker, err := redlock.New(masters)
	check(err)
	defer locker.Close()

	operator := admin.Of(locker)
	fmt.Println("epoch", operator.Configuration()[0].Epoch)
	both := redlock.Configuration{Epoch: 1, Masters: oldURLs, Next: nextURLs}
	fmt.Println("a lock now needs a majority of each:", operator.Reconfigure(ctx, both))
	// When redlock set --finish has succeeded:
	alone := redlock.Configuration{Epoch: 2, Masters: nextURLs}
	fmt.Println("too early:", operator.Reconfigure(ctx, alone) != nil, operator.Configuration()[0].Epoch)

	// Output:
	// epoch 0
	// a lock now needs a majority of each: <nil>
	// too early: true 1
}
