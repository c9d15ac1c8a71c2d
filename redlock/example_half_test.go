package redlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// warnAtHalf calls warn once if less than half of the validity is left. A lock is extended every third of its TTL, so
// this means that an extension has failed, and the lock will be lost unless a later one succeeds.
func warnAtHalf(ctx context.Context, lock *redlock.Lock, warn func(left time.Duration)) {
	half := lock.Remaining() / 2
	ticker := time.NewTicker(max(half/10, time.Millisecond)) // half is not positive if the lock has ended
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if left := lock.Remaining(); left < half {
				warn(left)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// A warning at half of the validity leaves time to stop the work at a good point.
func ExampleLock_Remaining() {
	masters := redlocktest.New(3)
	defer masters.Close()
	p, err := masters.Pool()
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	locker, err := redlock.New(p, redlock.WithTTL(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()
	lock, err := locker.Lock(context.Background(), "orders:42")
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		masters.Master(i).Hang()
	}
	warnAtHalf(context.Background(), lock, func(time.Duration) { fmt.Println("less than half of the validity is left") })
	// Output: less than half of the validity is left
}
