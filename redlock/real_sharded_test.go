package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// spreadOver returns the sharded Locker of one client over real servers, three for each shard, in this order.
func spreadOver(t testing.TB, shards ...[]*redisproc.Server) *redlock.Locker {
	t.Helper()
	var pools []*pool.Pool
	for _, servers := range shards {
		var urls []string
		for _, s := range servers {
			urls = append(urls, s.URL())
		}
		p, err := pool.Open(urls, pool.WithTimeout(calm))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		pools = append(pools, p)
	}
	l, err := redlock.NewSharded(pools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// Two clients use two shards of real masters, and exclude each other. A third client, with the shards in the opposite
// order, wins nothing. While one shard is dead the names of the other can be locked, even by a client that starts then;
// afterwards the names of the first can be locked again, too.
func TestShardsOnRealMasters(t *testing.T) {
	t.Parallel()
	servers := redistest.Test(t, 6, redisproc.Config{})
	first, second := servers[:3], servers[3:]
	one := spreadOver(t, first, second)
	ctx := bounded(t)
	if err := one.Admin().Admit(ctx); err != nil {
		t.Fatal(err)
	}
	two, wrong := spreadOver(t, first, second), spreadOver(t, second, first)
	var wg sync.WaitGroup
	counts := make([]int, 10)
	for _, g := range []*redlock.Locker{one, two} {
		for i := range 40 {
			wg.Go(func() {
				names := []string{fmt.Sprint("n", i%10), fmt.Sprint("n", (i*7+3)%10)}
				locks, err := g.LockAll(ctx, names)
				if err != nil {
					t.Error(err)
					return
				}
				counts[i%10]++ // a race, if the name is not locked
				if i%10 != (i*7+3)%10 {
					counts[(i*7+3)%10]++
				}
				if err := locks.Unlock(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	wrong.Ready(ctx)
	for i := range 10 {
		if _, err := wrong.TryLock(ctx, fmt.Sprint("n", i)); !errors.Is(err, redlock.ErrMasterList) {
			t.Errorf("shards the other way round: %v, want ErrMasterList", err)
		}
	}
	names := in(2, 1)
	for _, s := range second {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	three := spreadOver(t, first, second)
	for _, g := range []*redlock.Locker{one, three} {
		lock := held(t)(g.Lock(ctx, names[0][0]))
		if err := lock.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if _, err := g.TryLock(ctx, names[1][0]); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Errorf("a name of the dead shard: %v, want ErrNoQuorum", err)
		}
	}
	for _, s := range second {
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := three.Admin().Admit(ctx); err != nil { // else it takes their quarantine
		t.Fatal(err)
	}
	if err := held(t)(three.Lock(ctx, names[1][0])).Unlock(ctx); err != nil {
		t.Error(err)
	}
}
