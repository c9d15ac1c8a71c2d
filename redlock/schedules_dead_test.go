package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
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
			if n := w.placeAt(i, "x"); n > 1 {
				t.Errorf("%d are queued on master %d; one waits", n, i)
			}
		}
		cancel()
		<-done
	})
}

// placeAt is how many are in the queue of a name that is held on a master.
func (w *world) placeAt(i int, name string) int {
	w.Helper()
	now := w.masters.Master(i).Time().UnixMicro()
	keys := defaultPrefix.Keys(name)
	fleet := scripts.NewFleet(defaultPrefix, time.Minute, time.Hour, 0)
	ticket := scripts.NewTicket("prober", 1, now, -1001)
	reply, err := redis.Values(w.do(i, fleet.QueueCall(scripts.NewHold(keys, "prober:1", ""), ticket, true, time.Second, 0, now, now)))
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.do(i, fleet.LeaveCall(keys, ticket.String())); err != nil {
		w.Fatal(err)
	}
	return int(reply[5].(int64))
}
