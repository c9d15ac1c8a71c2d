// Command cache prints a value once a second. The value takes a second to build, so it is cached in a directory that
// many programs share. One of the programs rebuilds the value, and all of them read it.
//
//	go run ./examples/cache -dir /tmp/cache redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "cache", "directory of the cache")
	maxAge := flag.Duration("max-age", 10*time.Second, "maximum age of the value")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args(), *dir, *maxAge, os.Stdout); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run prints the cached value until ctx ends.
func run(ctx context.Context, urls []string, dir string, maxAge time.Duration, out io.Writer) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	locker, err := redlock.Open(urls)
	if err != nil {
		return err
	}
	defer locker.Close()
	c := &Cache{Shared: locker.RWLock("cache"), Dir: dir, MaxAge: maxAge, Build: build, Now: time.Now}
	for {
		value, err := c.Get(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", value)
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// build simulates expensive work.
func build(ctx context.Context) ([]byte, error) {
	if err := sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "built by process %d at %s", os.Getpid(), time.Now().Format(time.TimeOnly)), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
