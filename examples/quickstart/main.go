// Command quickstart shows the library at work in ten seconds, on five masters that the command starts itself.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -svg docs/lock.svg   # also draw the masters and the lock
//
// On a terminal it shows the masters live.
package main

import (
	"context"
	"flag"
	"log"
	"time"
)

func main() {
	log.SetFlags(0)
	svg := flag.String("svg", "", "file for a picture of the run")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := demonstrate(ctx, *svg); err != nil {
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
