package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// At the start of a program: what is wrong is said at once, and not by the first lock.
func ExampleLocker_WaitReady() {
	locker, _, done := inMemory()
	defer done()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(locker.WaitReady(ctx))
	// Output:
	// <nil>
}

func ExampleLocker_Ready() {
	locker, _, done := inMemory()
	defer done()

	for _, m := range locker.Ready(context.Background()) {
		fmt.Println(m.Addr, m.State)
	}
	// Output:
	// master-1:6379 voting
	// master-2:6379 voting
	// master-3:6379 voting
}

// A health check: it neither sends nor blocks.
func ExampleLocker_Masters() {
	locker, _, done := inMemory()
	defer done()

	voting := 0
	for _, m := range locker.Masters() {
		if m.State == "voting" {
			voting++
		}
	}
	fmt.Println(voting, "of", len(locker.Masters()))
	// Output:
	// 3 of 3
}

// New masters wait in quarantine. Where nobody can hold a lock on them, AdmitNow ends it.
func ExampleLocker_AdmitNow() {
	ctx := context.Background()
	masters := redlocktest.New(3, redlocktest.Fresh())
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	locker, err := redlock.New(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("in quarantine:", errors.Is(err, redlock.ErrQuarantine))
	fmt.Println("admitted:", locker.AdmitNow(ctx))
	_, err = locker.TryLock(ctx, "orders:42")
	fmt.Println("locked:", err)
	// Output:
	// in quarantine: true
	// admitted: <nil>
	// locked: <nil>
}

func ExampleLocker_Inspect() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithOwner("web-7"))
	defer done()
	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)

	held, err := locker.Inspect(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held.Owner, held.Token == lock.Token(), time.Since(held.Since) < time.Minute)
	// Output:
	// web-7 true true
}

func ExampleLocker_Who() {
	ctx := context.Background()
	locker, _, done := inMemory(redlock.WithOwner("web-7"))
	defer done()
	lock, err := locker.Lock(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Unlock(ctx)

	who, err := locker.Who(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s on %d of %d masters, %d wait\n", who.Owner, who.On, who.N, len(who.Queue))
	// Output:
	// web-7 on 3 of 3 masters, 0 wait
}

// ForceRelease is for people who know that the holder is dead.
func ExampleLocker_ForceRelease() {
	ctx := context.Background()
	locker, masters, done := inMemory()
	defer done()
	masters.Take("orders:42", time.Hour) // by a program that is dead

	held, err := locker.Inspect(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	released, err := locker.ForceRelease(ctx, "orders:42", held.ID)
	fmt.Println("released on", released, err)
	// Output:
	// released on 3 <nil>
}

func ExampleLocker_Check() {
	locker, masters, done := inMemory()
	defer done()
	masters.Master(2).SetPolicy("allkeys-lru", 1<<30)

	findings, err := locker.Check(context.Background())
	for _, f := range findings {
		if f.Severity == pool.Failure && f.About == "eviction" {
			fmt.Println(f.Master, "may drop locks") // f.What, f.Endangers and f.Do say it in sentences
		}
	}
	fmt.Println(err)
	// Output:
	// master-3:6379 may drop locks
	// <nil>
}

func ExampleLocker_Warnings() {
	locker, _, done := inMemory(redlock.WithDurableMasters("master-9:6379"))
	defer done()

	for _, sentence := range locker.Warnings() {
		what, _, _ := strings.Cut(sentence, ", ")
		fmt.Println(what)
	}
	// Output:
	// redlock: "master-9:6379" is named by WithDurableMasters
}

// RaiseGuardTime lets the whole fleet use a longer TTL.
func ExampleLocker_RaiseGuardTime() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	fmt.Println(locker.RaiseGuardTime(ctx, time.Minute))
	// Output:
	// <nil>
}

// A master whose admission record cannot be used is put into quarantine, and votes after it.
func ExampleLocker_Quarantine() {
	ctx := context.Background()
	locker, _, done := inMemory()
	defer done()

	fmt.Println(locker.Quarantine(ctx, "master-1:6379"))
	// Output:
	// <nil>
}

// A fleet of one program moves from three masters to three others. With several programs each calls ChangeMasters, and
// each step is taken when all of them have done the one before.
func ExampleLocker_changeOfMasters() {
	ctx := context.Background()
	old, next := redlocktest.New(3), redlocktest.New(3)
	defer old.Close()
	defer next.Close()
	oldURLs, err := old.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	nextURLs, err := next.Listen()
	if err != nil {
		fmt.Println(err)
		return
	}
	masters, err := pool.Dial(oldURLs)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
	locker, err := redlock.New(masters)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)

	fmt.Println("at epoch", locker.Set().Epoch)
	fmt.Println("both hold the locks:", locker.ChangeMasters(ctx, redlock.Set{Epoch: 1, Masters: oldURLs, Next: nextURLs}))
	fmt.Println("programs that have not heard of it are refused:", locker.RaiseEpoch(ctx))
	c, err := locker.Change(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("raised:", c.RaisedAll, "complete:", c.Complete, "soon:", c.Left > 0)
	err = locker.FinishChange(ctx) // when c.Left is over, this succeeds
	fmt.Println("too early:", errors.Is(err, redlock.ErrIncomplete))
	// After that: locker.ChangeMasters(ctx, redlock.Set{Epoch: 2, Masters: nextURLs})
	fmt.Println("the way back:", locker.AbortChange(ctx), locker.Set())

	// Output:
	// at epoch 0
	// both hold the locks: <nil>
	// programs that have not heard of it are refused: <nil>
	// raised: true complete: false soon: true
	// too early: true
	// the way back: <nil> epoch 2, 3 masters
}

// A program that starts while the masters are being changed begins with both sets.
func ExampleWithSet() {
	ctx := context.Background()
	set, err := redlock.ParseSet([]byte(`{
		"epoch": 1,
		"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"],
		"next": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.9"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	masters, err := pool.Dial(set.Masters)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer masters.Close()
	locker, err := redlock.New(masters, redlock.WithSet(set))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close(ctx)
}

// A Set is kept in a file, or in a configuration service.
func ExampleParseSet() {
	set, err := redlock.ParseSet([]byte(`{
		"epoch": 0,
		"masters": ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]
	}`))
	fmt.Println(set, err)
	// Output:
	// epoch 0, 3 masters <nil>
}

func ExampleSet() {
	old := []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}
	next := []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.9"} // the third is replaced
	for _, s := range []redlock.Set{
		{Epoch: 0, Masters: old}, {Epoch: 1, Masters: old, Next: next}, {Epoch: 2, Masters: next},
	} {
		fmt.Println(s)
	}
	up := func(master string) bool { return master != "redis://10.0.0.1" }
	fmt.Println("without one of them:", redlock.Set{Masters: old}.Quorum(up))
	// Output:
	// epoch 0, 3 masters
	// epoch 1, 3 masters together with 3 next ones
	// epoch 2, 3 masters
	// without one of them: true
}
