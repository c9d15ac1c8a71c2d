package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// A quorum is a Receiver that wakes its owner on the third reply.
type quorum struct {
	left atomic.Int32
	done chan struct{}
}

func (q *quorum) Reply(_ int, _ any, err error) {
	if err != nil && !errors.Is(err, ErrClosed) {
		panic(err)
	}
	if q.left.Add(-1) == 0 {
		q.done <- struct{}{}
	}
}

// BenchmarkQuorum measures one call to five masters, up to the third reply, with several numbers of goroutines.
func BenchmarkQuorum(b *testing.B) {
	servers := make([]*server, 5)
	for i := range servers {
		servers[i] = startServer(b)
	}
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkQuorum(b, servers, n) })
	}
}

func benchmarkQuorum(b *testing.B, servers []*server, n int) {
	p := open(b, urls(servers), WithTimeout(10*time.Second))
	defer p.Close()
	waitUp(b, p)
	c := lua("one", "return 1")
	spread(b, n, func(int) { round(b, p, c) })
}

// spread shares b.N operations among n goroutines.
func spread(b *testing.B, n int, op func(g int)) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	finished := make(chan struct{})
	b.ResetTimer()
	for g := range n {
		go func() {
			defer func() { finished <- struct{}{} }()
			for left.Add(-1) >= 0 {
				op(g)
			}
		}()
	}
	for range n {
		<-finished
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkPair measures an acquire and a release, each up to the third reply: the cost of a lock and its unlock below
// the coordinator.
func BenchmarkPair(b *testing.B) {
	servers := make([]*server, 5)
	for i := range servers {
		servers[i] = startServer(b)
	}
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := open(b, urls(servers), WithTimeout(10*time.Second))
			defer p.Close()
			waitUp(b, p)
			ballots := make([]int64, n)
			for g := range ballots {
				ballots[g] = state(p, 0).Info.Time
			}
			spread(b, n, func(g int) {
				ballots[g] = max(ballots[g]+1, time.Now().UnixMicro())
				k, id := keysOf(fmt.Sprint(g)), fmt.Sprint("id:", ballots[g], ":")
				round(b, p, encoder.Acquire(k, id, 10*time.Second, ballots[g], ballots[g], nil))
				round(b, p, encoder.Release(k, scripts.Ending{Grants: []string{id}}))
			})
		})
	}
}

// round uses a new Receiver each time, as a coordinator does, so the two late replies go to an abandoned one.
func round(b *testing.B, p *Transport, c *scripts.Call) {
	q := &quorum{done: make(chan struct{}, 1)}
	q.left.Store(3)
	for i := range p.N() {
		if err := p.Send(i, c, Stamp{}, q); err != nil {
			b.Error(err)
			return
		}
	}
	<-q.done
}
