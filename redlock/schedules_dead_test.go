package redlock_test

import (
	"context"
	"testing"
	"time"
)

// H42: what a waiter leaves in the queues when its program dies is gone soon, also while others go on waiting.
func TestADeadWaiterLeavesTheQueueWhileOthersWait(t *testing.T) {
	virtual(t, 3, func(w *world) {
		holder, waiter := w.locker(), w.locker()
		w.take(holder, "x")
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() { _, _ = waiter.Lock(ctx, "x"); close(done) }()
		after(time.Second)
		for range 5 { // five programs that wait and die
			p := newParty(w.T, w.masters, nil)
			dead, die := context.WithCancel(w.Context())
			gone := make(chan struct{})
			go func() { _, _ = p.Lock(dead, "x"); close(gone) }()
			after(time.Second)
			p.cutOff(0, 1, 2)
			die()
			<-gone
		}
		after(10 * time.Minute)
		for i := range 3 {
			if n := len(w.waiters(i, "x")); n > 1 {
				t.Errorf("%d are queued on master %d; one waits", n, i)
			}
		}
		cancel()
		<-done
	})
}
