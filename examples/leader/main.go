// Command leader runs on several hosts. One process at a time is the leader and works.
//
//	go run ./examples/leader redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
//
// If the leader is stopped, with Ctrl-C or SIGTERM, it ends its work and resigns, and another process leads
// immediately. If the leader is killed, another process leads when the TTL of its lock has expired.
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
	locker, err := redlock.Open(urls)
	if err != nil {
		return err
	}
	defer locker.Close()
	err = locker.Lead(ctx, "leader", func(ctx context.Context, lock *redlock.Lock) error {
		if err := lock.SetValue(ctx, address()); err != nil { // shown by "redlock who leader"
			return err
		}
		return work(ctx, lock.Token()) // Lead resigns after work has returned
	})
	if errors.Is(err, ctx.Err()) {
		return nil // stopped by the caller
	}
	return err
}

// address returns the text that the leader shows to other clients, such as its address and its version.
func address() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d v1", host, os.Getpid())
}

// work does the work of the leader; replace it with your own function. work must return soon after ctx ends, because
// this process is no longer the leader then. If work returns an error, the process resigns and campaigns again.
func work(ctx context.Context, token int64) error {
	log.Printf("leading, token %d", token)
	for {
		select {
		case <-time.After(time.Second):
			log.Printf("working")
		case <-ctx.Done():
			log.Printf("no longer leading: %v", context.Cause(ctx))
			return nil
		}
	}
}
