package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	clients "github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// Tests of changes of the number of shards.

// A severable is a client that can be cut off from sets of masters.
type severable struct {
	mu    sync.Mutex
	cut   map[int]bool
	conns map[int][]net.Conn
}

func newSeverable() *severable { return &severable{cut: map[int]bool{}, conns: map[int][]net.Conn{}} }

// locker returns the Locker of the client, over these sets.
func (s *severable) locker(w *shardedCluster, sets ...int) *redlock.Locker {
	w.Helper()
	var pools []*pool.Pool
	for _, set := range sets {
		pools = append(pools, w.pool(set, pool.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.cut[set] {
				return nil, errors.New("cut")
			}
			c, err := w.sets[set].Dial(ctx, network, addr)
			if err == nil {
				s.conns[set] = append(s.conns[set], c)
			}
			return c, err
		})))
	}
	return w.sharded(pools)
}

// sever ends the connections to these sets, and refuses new ones until join is called.
func (s *severable) sever(sets ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range sets {
		s.cut[set] = true
		for _, c := range s.conns[set] {
			_ = c.Close()
		}
		s.conns[set] = nil
	}
}

func (s *severable) join(sets ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range sets {
		s.cut[set] = false
	}
}

// every calls f for all masters of these sets.
func (w *shardedCluster) every(f func(m *memory.Master), sets ...int) {
	for _, set := range sets {
		for i := range 3 {
			f(w.sets[set].Master(i))
		}
	}
}

func restart(m *memory.Master) { m.Restart(false) }

// moved returns a name that belongs to shard from of a, and to another shard of b.
func moved(a, from, b int) string {
	for i := 0; ; i++ {
		if n := fmt.Sprint("n", i); sharding.Pick(n, a) == from && sharding.Pick(n, b) != from {
			return n
		}
	}
}

// wantNoLock fails the test if l acquires a name within two minutes.
func (w *shardedCluster) wantNoLock(l *redlock.Locker, what, name string) {
	w.Helper()
	k, err := l.Lock(w.withTimeout(2*time.Minute), name)
	if err == nil {
		w.Errorf("%s holds %q with token %d", what, name, k.Token())
	}
}

// H160: a lock that is held while the number of shards changes cannot be extended, so it ends before the masters vote
// again.
func TestLockHeldWhileShardsChange(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		x, name := w.admitted(0, 1, 2), moved(3, 3, 2)
		held := must(x.Lock(w.Context(), name))(w)
		y := w.shards(0, 1)
		w.must(clients.SetOf(y).Replaces(w.Context(), clients.SetOf(w.shards(0, 1, 2))))
		k := must(y.Lock(w.Context(), name))(w)
		if held.Err() == nil {
			w.Errorf("two holders of %q: tokens %d and %d", name, held.Token(), k.Token())
		}
		w.isError(held.Err(), redlock.ErrLost)
	})
}

// Replaces writes nothing if a master is down, or if a record is of neither layout.
func TestReplacesWritesAllOrNothing(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		w.admitted(0, 1)
		before, _ := w.sets[0].Master(0).Get("redlock:admission")
		fails := func(what string, old *redlock.Locker) {
			w.Helper()
			ctx := w.withTimeout(time.Minute)
			if err := clients.SetOf(w.shards(0, 1, 2)).Replaces(ctx, clients.SetOf(old)); err == nil {
				w.Errorf("%s: no error", what)
			}
			if now, _ := w.sets[0].Master(0).Get("redlock:admission"); now != before {
				w.Errorf("%s: the record is %q, and was %q", what, now, before)
			}
		}
		fails("other shards", w.shards(1, 0))
		w.sets[2].Master(1).Stop()
		fails("a new master is down", w.shards(0, 1))
		w.sets[2].Master(1).Restart(false)
		w.sets[1].Master(1).Stop()
		fails("an old master is down", w.shards(0, 1))
		w.sets[1].Master(1).Restart(true)
		after(time.Second)
		w.must(clients.SetOf(w.shards(0, 1, 2)).Replaces(w.Context(), clients.SetOf(w.shards(0, 1))))
	})
}

// H160: a client that has the new layout already, and has written the first records of the masters that only the new
// layout has, acquires nothing while a client with the old layout holds a lock. The lock was acquired immediately
// before the records were replaced.
func TestEarlyClientOfTheNewLayout(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		x := w.admitted(0, 1)
		name := ""
		for i := 0; sharding.Pick(name, 3) != 3; i++ {
			name = fmt.Sprint("n", i)
		}
		s := newSeverable()
		s.sever(0, 1) // the early client reaches only the new masters
		early := s.locker(w, 0, 1, 2)
		after(2 * time.Minute) // quarantines of first records would be over
		held := must(x.Lock(w.Context(), name))(w)
		w.must(clients.SetOf(w.shards(0, 1, 2)).Replaces(w.Context(), clients.SetOf(w.shards(0, 1))))
		s.join(0, 1)
		k := must(early.Lock(w.Context(), name))(w)
		if held.Err() == nil {
			w.Errorf("two holders of %q: tokens %d and %d", name, held.Token(), k.Token())
		}
		w.noError(k.Unlock(w.Context()))
	})
}

// H160: also if the client is connected all the time, but has read no record of the other shards since the change, when
// the masters of its third shard restart without data.
func TestLateLookAfterFewerShards(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		x := w.admitted(0, 1, 2)
		name := moved(3, 3, 2)
		w.noError(x.Do(w.Context(), name, nothing))
		y := w.shards(0, 1)
		w.must(clients.SetOf(y).Replaces(w.Context(), clients.SetOf(w.shards(0, 1, 2))))
		w.must(admin.Of(y).Admit(w.Context()))
		must(y.Lock(w.Context(), name))(w)
		w.every(restart, 2)
		w.wantNoLock(x, "the client with three shards", name)
	})
}
