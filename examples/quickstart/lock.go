package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// connect makes the one Locker of a program and calls run with it.
func connect(ctx context.Context, urls []string, run func(ctx context.Context, locker *redlock.Locker) error) error {
	masters, err := pool.Open(urls) // redis://10.0.0.1:6379 and so on, usually five
	if err != nil {
		return err
	}
	defer masters.Close()
	locker, err := redlock.New(masters) // for all goroutines
	if err != nil {
		return err
	}
	defer locker.Close(context.WithoutCancel(ctx))
	return run(ctx, locker)
}

// pay holds the lock of an order while it works.
func pay(ctx context.Context, locker *redlock.Locker) error {
	return locker.Do(ctx, "orders:42", func(ctx context.Context) error { // waits while another client holds it
		return work(ctx, redlock.TokenOf(ctx)) // ctx ends when the lock is lost
	}, redlock.WithWaitLimit(10*time.Second)) // then Do returns ErrHeld or ErrNoQuorum
}

// work is a placeholder for the work of a program. The resource that it writes to rejects a token below the largest
// that it has seen.
func work(ctx context.Context, token int64) error {
	fmt.Println("locked; each write carries the token", token)
	return ctx.Err()
}
