// Command migrating acquires a lock of redsync and one of this library for the same name, as programs do while a
// deployment moves from redsync to this library. See docs/migrating.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/redlock"
)

// both runs f while it holds the name with redsync and with this library. All programs acquire the two locks in this
// order, so they cannot deadlock. The redsync lock is not extended, so f must return within expiry.
func both(
	ctx context.Context, rs *redsync.Redsync, locker *redlock.Locker, name string, expiry time.Duration,
	f func(ctx context.Context, token int64) error,
) (err error) {
	mutex := rs.NewMutex(name, redsync.WithExpiry(expiry))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := mutex.UnlockContext(context.WithoutCancel(ctx))
		err = errors.Join(err, unlockErr)
	}()
	ctx, cancel := context.WithDeadline(ctx, mutex.Until())
	defer cancel()
	lock, err := locker.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(context.WithoutCancel(ctx))) }()
	return f(lock.Context(ctx), lock.Token())
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run locks one name over the given masters.
func run(ctx context.Context, urls []string) error {
	locker, err := redlock.Open(urls)
	if err != nil {
		return err
	}
	defer locker.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return both(ctx, redsyncOver(urls), locker, "orders:42", 8*time.Second, func(_ context.Context, token int64) error {
		fmt.Println("both locks are held, token", token)
		return nil
	})
}

// redsyncOver returns a redsync instance over the same masters.
func redsyncOver(urls []string) *redsync.Redsync {
	pools := make([]redsyncpool.Pool, len(urls))
	for i, u := range urls {
		pools[i] = redsyncredigo.NewPool(&redis.Pool{Dial: func() (redis.Conn, error) { return redis.DialURL(u) }})
	}
	return redsync.New(pools...)
}
