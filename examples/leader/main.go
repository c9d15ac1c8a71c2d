// Command leader runs on several hosts; one of them at a time is the leader and works.
//
//	go run ./examples/leader redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//
// Stop the leader, by Ctrl-C or SIGTERM: it ends its work and resigns, and another one leads at once. If it is killed,
// another one leads when its TTL has expired.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], work); err != nil {
		log.Fatal(err)
	}
}

// run campaigns until ctx ends, and calls work while this process leads.
func run(ctx context.Context, urls []string, work func(ctx context.Context, token int64) error) error {
	masters, err := pool.Open(urls)
	if err != nil {
		return err
	}
	defer masters.Close() // the last: deferred calls run in reverse
	locker, err := redlock.New(masters)
	if err != nil {
		return err
	}
	defer func() {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = locker.Close(over) // what could not be released expires after its TTL
	}()
	err = locker.Lead(ctx, "leader", func(ctx context.Context) error {
		if err := redlock.SetValue(ctx, address()); err != nil { // others see it: redlock who leader
			return err
		}
		return work(ctx, redlock.TokenOf(ctx)) // Lead resigns after it has returned
	})
	if errors.Is(err, ctx.Err()) {
		return nil // asked to stop
	}
	return err
}

// address returns what others are to know of the leader, such as its address and its version.
func address() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d v1", host, os.Getpid())
}

// work does the work of the leader; replace it by yours. It must return soon after ctx ends, when this process is no
// longer the leader. If it returns an error, the process resigns and campaigns again.
func work(ctx context.Context, token int64) error {
	log.Printf("leads, with the token %d", token)
	for {
		select {
		case <-time.After(time.Second):
			log.Printf("works")
		case <-ctx.Done():
			log.Printf("no longer leads: %v", context.Cause(ctx))
			return nil
		}
	}
}
