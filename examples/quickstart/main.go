// Command quickstart takes one lock over the masters that it is given and holds it while it works.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

func main() {
	masters, err := pool.Dial(os.Args[1:]) // redis://10.0.0.1:6379 and so on, usually five
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	locker, err := redlock.New(masters, redlock.WithTTL(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	lock, err := locker.Lock(ctx, "orders:42") // waits while another holds it
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock(ctx)
	ctx = lock.Context(ctx) // ends when the lock is lost

	fmt.Println("mine; each write carries the token", lock.Token())
	if err := work(ctx, lock.Token()); err != nil {
		fmt.Println(err, context.Cause(ctx))
	}
}

// work stands for yours. The resource that it writes to refuses a smaller token than it has seen.
func work(ctx context.Context, token int64) error { return ctx.Err() }
