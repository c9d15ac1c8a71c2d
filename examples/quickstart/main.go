// Command quickstart shows the library at work.
//
//	go run ./examples/quickstart                  # a demonstration, on five masters that it brings itself
//	go run ./examples/quickstart redis://... ...  # takes one lock over these masters
package main

import (
	"context"
	"log"
	"os"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := demonstrate
	if urls := strings.Fields(strings.Join(os.Args[1:], " ")); len(urls) > 0 { // some shells pass $M as one argument
		run = func(ctx context.Context) error { return connect(ctx, urls, pay) }
	}
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
