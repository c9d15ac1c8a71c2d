// Command quickstart shows the library at work in ten seconds, on five masters that the command starts itself.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"log"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := demonstrate(ctx); err != nil {
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
