// Command lock locks one name, on the masters whose URLs are the arguments, and works while it holds the lock.
//
//	go run ./examples/lock redis://10.0.0.1:6379 redis://10.0.0.2:6379 redis://10.0.0.3:6379
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

func main() {
	ctx := context.Background()
	locker, err := redlock.Open(os.Args[1:]) // redis://10.0.0.1:6379 and so on, usually five
	check(err)
	defer locker.Close()
	// Do waits while another client holds the lock. The context of the function ends when the lock is lost.
	check(locker.Do(ctx, "orders:42", func(ctx context.Context, lock *redlock.Lock) error {
		return work(ctx, lock.Token())
	}, redlock.WithWaitLimit(10*time.Second))) // after 10 s, Do returns ErrHeld or ErrNoQuorum
}

// work does the work of the program; replace it with your own function. The resource to which work writes must reject
// tokens smaller than the largest it has seen.
func work(ctx context.Context, token int64) error {
	fmt.Println("locked; each write carries the token", token)
	return ctx.Err()
}

// check ends the program if err is not nil.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
