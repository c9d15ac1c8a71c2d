package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/redlock"
)

// race makes k clients lock a free name at one instant, and returns the time until the first of them has it. Then it
// cancels the others and restores the initial state.
func (w *world) race(peers []*peer, name string) (took time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	var mu sync.Mutex
	var winners []*redlock.Lock
	var all sync.WaitGroup
	for _, p := range peers {
		all.Go(func() {
			k, err := p.Lock(ctx, name)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if len(winners) == 0 {
				took = time.Since(start)
			}
			winners = append(winners, k)
			cancel()
		})
	}
	all.Wait()
	if len(winners) == 0 {
		w.Fatal("no client had it within a minute")
	}
	if len(winners) > 1 {
		w.Errorf("%d winners at once", len(winners))
	}
	w.unlock(winners[0])
	after(time.Second)
	return took
}

// Clients that lock a free name at one instant split the votes. They roll back, and the earliest ticket wins within a
// few round trips, for any number of clients, even while a minority of the masters is dead. This test does not check
// safety or the winner.
func TestVirtualASplitVoteHasAWinnerWithinAFewRoundTrips(t *testing.T) {
	const oneWay = 250 * time.Microsecond
	for _, c := range []struct {
		k    int
		dead []int
		most time.Duration // for nine of ten races
	}{
		{k: 2, most: 6 * time.Millisecond}, {k: 3, most: 6 * time.Millisecond}, {k: 5, most: 6 * time.Millisecond},
		{k: 9, most: 8 * time.Millisecond}, {k: 20, most: 8 * time.Millisecond},
		{k: 3, dead: []int{1}, most: 12 * time.Millisecond}, {k: 5, dead: []int{1, 4}, most: 20 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c.k, " programs, dead ", c.dead), func(t *testing.T) {
			virtual(t, 5, func(w *world) {
				var peers []*peer
				for i := range c.k {
					peers = append(peers, w.peer(fmt.Sprint("p", i)))
				}
				delays := &lockedDelays{random: seeded(uint64(c.k))}
				w.each(func(_ int, m *memory.Master) {
					m.DelayFunc(func() time.Duration { return oneWay/2 + delays.below(oneWay) })
				})
				for _, i := range c.dead {
					w.stop(i)
				}
				after(time.Second)
				var times []time.Duration
				races := rounds(40, 10)
				for n := range races {
					times = append(times, w.race(peers, fmt.Sprint("n", n)))
				}
				slices.Sort(times)
				most := times[races*9/10]
				t.Logf("time to acquire: median %v, nine of ten %v, longest %v", times[races/2], most, times[races-1])
				if most > c.most {
					t.Errorf("nine of ten races took up to %v, want at most %v", most, c.most)
				}
				w.delay(0)
				for _, i := range c.dead {
					w.masters.Master(i).Restart(true)
				}
				after(5 * time.Second)
			})
		})
	}
}
