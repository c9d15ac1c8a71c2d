package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// lock takes one lock over the masters at urls, works while it holds it, and gives it back.
func lock(ctx context.Context, urls []string) error {
	masters, err := pool.Dial(urls) // redis://10.0.0.1:6379 and so on, usually five
	if err != nil {
		return err
	}
	defer masters.Close()
	locker, err := redlock.New(masters)
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))

	return locker.Do(ctx, "orders:42", func(ctx context.Context) error { // waits while another holds it
		return work(ctx, redlock.TokenOf(ctx)) // ctx ends when the lock is lost
	}, redlock.WithWaitLimit(10*time.Second)) // then it fails with ErrHeld or ErrNoQuorum
}

// work stands for yours. The resource that it writes to refuses a smaller token than it has seen.
func work(ctx context.Context, token int64) error {
	fmt.Println("mine; each write carries the token", token)
	return ctx.Err()
}
