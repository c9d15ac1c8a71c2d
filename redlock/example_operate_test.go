package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// WaitReady reports problems at the start of a program, before the first lock.
func ExampleLocker_WaitReady() {
	locker, _, done := inMemory()
	defer done()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(locker.WaitReady(ctx))
	// Output:
	// <nil>
}

// An operator usually begins with the configuration and the findings of Check.
func ExampleAdmin() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	admin := locker.Admin()
	fmt.Println("epoch", admin.Configuration()[0].Epoch, "with", len(admin.Configuration()[0].Masters), "masters")
	verdict, err := admin.Check(ctx)
	fmt.Println("found:", len(verdict.Findings) > 0, err)
	// Output:
	// epoch 0 with 3 masters
	// found: true <nil>
}

func ExampleLocker_Admin() {
	locker, _, done := inMemory()
	defer done()

	for _, m := range locker.Admin().Masters() {
		fmt.Println(m.Addr, m.State)
	}
	// Output:
	// master-1:6379 voting
	// master-2:6379 voting
	// master-3:6379 voting
}

// Admin.Masters suits a health check, because it neither sends messages nor blocks.
func ExampleAdmin_Masters() {
	locker, _, done := inMemory()
	defer done()

	voting := 0
	for _, m := range locker.Admin().Masters() {
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Println(voting, "of", len(locker.Admin().Masters()))
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
	fmt.Println(errors.Is(err, redlock.ErrNoQuorum), locker.Admin().Masters()[0].State)
	fmt.Println("admitted:", locker.Admin().Admit(ctx))
	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("locked:", err)
	// Output:
	// true quarantine
	// admitted: <nil>
	// locked: <nil>
}

func ExampleLocker_Inspect() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithLabel("web-7"))
	defer done()
	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)

	held, err := locker.Inspect(ctx, "orders:42")
	check(err)
	fmt.Println(held.Label, held.Token == lock.Token(), time.Since(held.Since) < time.Minute)
	// Output:
	// web-7 true true
}

func ExampleInspection() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithLabel("web-7"))
	defer done()
	lock, err := locker.Lock(ctx, "orders:42")
	check(err)
	defer lock.Unlock(ctx)

	who, err := locker.Inspect(ctx, "orders:42")
	check(err)
	fmt.Printf("%s on %d of %d masters, %d wait\n", who.Label, who.On, who.N, len(who.Waiters))
	// Output:
	// web-7 on 3 of 3 masters, 0 wait
}

// ForceRelease is for operators who know that the holder is dead.
func ExampleAdmin_ForceRelease() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Hour) // by a client that is dead

	held, err := locker.Inspect(ctx, "orders:42")
	check(err)
	released, err := locker.Admin().ForceRelease(ctx, "orders:42", held.ID)
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
		for heard := 0; heard == 0; time.Sleep(time.Millisecond) { // until the job is subscribed
			heard, _ = locker.Admin().RequestRelease(ctx, "nightly-report")
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

	verdict, err := locker.Admin().Check(context.Background())
	for _, f := range verdict.Findings {
		if f.Severity == redlockinfo.Failure && f.About == "connection" {
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

	fmt.Println(locker.Admin().RaiseMaxTTL(ctx, time.Minute))
	// Output:
	// <nil>
}

// Quarantine puts a master with an unusable admission record into quarantine. Afterwards the master votes.
func ExampleAdmin_Quarantine() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	fmt.Println(locker.Admin().Quarantine(ctx, "master-1:6379"))
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

	admin := locker.Admin()
	fmt.Println("epoch", admin.Configuration()[0].Epoch)
	both := redlock.Configuration{Epoch: 1, Masters: oldURLs, Next: nextURLs}
	fmt.Println("a lock now needs a majority of each:", admin.Reconfigure(ctx, both))
	// When redlock set --finish has succeeded:
	alone := redlock.Configuration{Epoch: 2, Masters: nextURLs}
	fmt.Println("too early:", admin.Reconfigure(ctx, alone) != nil, admin.Configuration()[0].Epoch)

	// Output:
	// epoch 0
	// a lock now needs a majority of each: <nil>
	// too early: true 1
}

// A client that starts during a change of the masters begins with the joint configuration.
func ExampleWithConfiguration() {
	set, err := redlock.ParseConfiguration([]byte(`{
		"epoch": 1,
		"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"],
		"next": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.9"]
	}`))
	check(err)
	locker, err := redlock.Open(set.Masters, redlock.WithConfiguration(set))
	check(err)
	defer locker.Close()
}

// A Configuration is kept in a file, or in a configuration service.
func ExampleParseConfiguration() {
	set, err := redlock.ParseConfiguration([]byte(`{
		"epoch": 0,
		"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]
	}`))
	fmt.Println(set.Epoch, len(set.Masters), err)
	// Output:
	// 0 3 <nil>
}
