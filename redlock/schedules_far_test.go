package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// With any round trip within the pool's timeout, waiters get the name one after the other: the second after a hint
// suffices as long as a round trip takes less.
func TestWaitersFarAwayGetTheNameOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		delay, timeout time.Duration
		gone           int // masters that are stopped while they wait
	}{
		{150 * time.Millisecond, 500 * time.Millisecond, 0},
		{150 * time.Millisecond, 500 * time.Millisecond, 1},
		{240 * time.Millisecond, 500 * time.Millisecond, 1},
		{300 * time.Millisecond, 2 * time.Second, 0},
		{300 * time.Millisecond, 2 * time.Second, 1},
		{400 * time.Millisecond, 2 * time.Second, 0},
		{600 * time.Millisecond, 2 * time.Second, 0},
	} {
		t.Run(fmt.Sprint(c.delay, " one way, ", c.gone, " gone"), func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				const waiters = 4
				w.delay(c.delay)
				program := func() *redlock.Locker {
					return w.over(w.pool(pool.WithTimeout(c.timeout), pool.WithDialTimeout(10*time.Second)))
				}
				held := w.take(program(), "x", redlock.WithTTL(30*time.Second))
				got := make(chan time.Duration, waiters)
				var start time.Time
				var all sync.WaitGroup
				for range waiters {
					l := program()
					all.Go(func() {
						k, err := l.Lock(w.Context(), "x")
						if err != nil {
							t.Error(err)
							return
						}
						got <- time.Since(start)
						_ = k.Unlock(w.Context())
					})
				}
				after(10 * time.Second)
				for i := range c.gone {
					w.stop(i)
				}
				after(10 * time.Second)
				start = time.Now()
				w.unlock(held)
				all.Wait()
				last := time.Duration(0)
				for range waiters {
					last = <-got
				}
				if most := waiters * 3 * 2 * c.delay; last > most {
					t.Errorf("the last has it after %v, more than %v", last, most)
				}
			})
		})
	}
}
