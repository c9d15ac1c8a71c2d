package redlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
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
