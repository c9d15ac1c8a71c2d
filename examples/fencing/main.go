// Command fencing shows a limit of locks, and how the token overcomes this limit. The command locks the name of an
// item, writes an amount to a table, and then, like a faulty program, writes once more after it has lost the lock.
//
//	fencing stock.db apples redis://10.0.0.1:6379 ...
//
// Stop the command with SIGSTOP, or with Ctrl-Z, for longer than its TTL of two seconds, let another copy acquire the
// lock meanwhile, and continue the first copy. The context of the first copy ends immediately, and the table refuses
// its late write.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

const ttl = 2 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: fencing file.db item redis://host:port ...")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path, item string, urls []string, out io.Writer) error {
	table, err := openStore(ctx, path)
	if err != nil {
		return err
	}
	defer table.close()
	locker, err := redlock.Open(urls, redlock.WithTTL(ttl))
	if err != nil {
		return err
	}
	defer locker.Close()
	lock, err := locker.Lock(ctx, item)
	if err != nil {
		return err
	}
	defer lock.Unlock(context.WithoutCancel(ctx))
	return work(lock.Context(ctx), table, item, lock.Token(), out)
}

// work writes once under the lock, and once after the lock has ended.
func work(ctx context.Context, table *store, item string, token int64, out io.Writer) error {
	if err := table.set(ctx, item, 1, token); err != nil {
		return err
	}
	fmt.Fprintln(out, "written, token", token)

	woken := watch(ctx)
	<-ctx.Done()
	late := time.Since(<-woken)
	fmt.Fprintln(out, "ended", late.Microseconds(), "us after waking:", context.Cause(ctx))

	err := table.set(context.WithoutCancel(ctx), item, 3, token) // a bug, from which the table protects
	fmt.Fprintln(out, "late write:", err)
	if !errors.Is(err, errFenced) && errors.Is(context.Cause(ctx), redlock.ErrLost) {
		return errors.New("the late write was not refused: let another copy write while this process is stopped")
	}
	return nil
}

// watch returns a channel that receives, when ctx has ended, the time at which this process last resumed after a stop.
// watch reads the clock every millisecond, and assumes a stop if more than half a second is missing.
func watch(ctx context.Context) <-chan time.Time {
	woken := make(chan time.Time, 1)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		began, last := time.Now(), time.Now()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
			now := time.Now()
			if now.Sub(last) > 500*time.Millisecond {
				began = now
			}
			if last = now; ctx.Err() != nil {
				woken <- began
				return
			}
		}
	}()
	return woken
}
