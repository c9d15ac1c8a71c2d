package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/internal/sharding"
)

// Tests of names that are distributed over shards.

// A realm is one bubble with several sets of masters.
type realm struct {
	*testing.T
	sets []*memory.Masters
}

// realms runs f in a bubble with k sets of three masters each, which are not admitted.
func realms(t *testing.T, k int, f func(r *realm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &realm{T: t}
		for range k {
			m := memory.New(3, memory.Fresh())
			t.Cleanup(m.Close)
			r.sets = append(r.sets, m)
		}
		f(r)
	})
}

// locker makes a Locker over one set of masters.
func (r *realm) locker(set int, opts ...redlock.Option) *redlock.Locker {
	r.Helper()
	p, err := r.sets[set].Pool()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = p.Close() })
	l, err := redlock.New(p, opts...)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = l.Close(context.WithoutCancel(r.Context())) })
	return l
}

// either connects to the masters of one set by their addresses, and to those of another as next-1 to next-3.
func (r *realm) either(set, next int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if number, ok := strings.CutPrefix(addr, "next-"); ok {
			return r.sets[next].Dial(ctx, network, "master-"+number)
		}
		return r.sets[set].Dial(ctx, network, addr)
	}
}

// shards distributes names over these sets, in their order.
func (r *realm) shards(sets ...int) *redlock.Locker {
	r.Helper()
	var pools []*pool.Pool
	for _, set := range sets {
		p, err := r.sets[set].Pool()
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { _ = p.Close() })
		pools = append(pools, p)
	}
	l, err := redlock.NewSharded(pools)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = l.Close(context.WithoutCancel(r.Context())) })
	return l
}

// admitted returns shards whose masters vote.
func (r *realm) admitted(sets ...int) *redlock.Locker {
	r.Helper()
	g := r.shards(sets...)
	if err := g.Admin().Admit(r.Context()); err != nil {
		r.Fatal(err)
	}
	return g
}

// in returns n names of each of k shards.
func in(k, n int) (names [][]string) {
	names = make([][]string, k)
	for i, full := 0, 0; full < k; i++ {
		name := fmt.Sprint("orders:", i)
		if at := sharding.Pick(name, k) - 1; len(names[at]) < n {
			if names[at] = append(names[at], name); len(names[at]) == n {
				full++
			}
		}
	}
	return names
}

func (r *realm) isError(err, want error, texts ...string) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf("got %v; want %v in it", err, want)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			r.Errorf("%q is not in %q", text, err)
		}
	}
}

// try locks a name within three seconds, and releases it.
func (r *realm) try(l *redlock.Locker, name string) error {
	lock, err := l.Lock(r.Context(), name, redlock.WithWaitLimit(3*time.Second))
	if err != nil {
		return err
	}
	return lock.Unlock(r.Context())
}

// New masters complete their quarantine, each name is locked only in its shard, and a shard that is down affects only
// its names, even for a client that starts meanwhile.
func TestVirtualAShardThatIsDownCostsItsNamesOnly(t *testing.T) {
	realms(t, 3, func(r *realm) {
		g := r.shards(0, 1, 2)
		if err := g.WaitReady(r.Context()); err != nil {
			t.Fatal(err)
		}
		names := in(3, 2)
		for i, of := range names {
			lock, err := g.Lock(r.Context(), of[0])
			if err != nil {
				t.Fatal(err)
			}
			after(time.Millisecond)
			for k, set := range r.sets {
				if _, on := set.Holder(of[0]); (on == 3) != (k == i) {
					t.Errorf("%q of shard %d is on %d masters of shard %d", of[0], i+1, on, k+1)
				}
			}
			if err := lock.Unlock(r.Context()); err != nil {
				t.Error(err)
			}
		}
		for i := range 2 {
			r.sets[1].Master(i).Stop()
		}
		after(time.Second)
		late := r.shards(0, 1, 2)
		for _, program := range []*redlock.Locker{g, late} {
			for i, of := range names {
				switch err := r.try(program, of[1]); {
				case i == 1:
					r.isError(err, redlock.ErrNoQuorum)
				case err != nil:
					t.Errorf("shard %d: %v", i+1, err)
				}
			}
		}
	})
}

// Shards begin only when all their masters were seen. If a majority sufficed, one of its masters could lose its record
// and another be unreachable when a client without shards starts: that client would find a majority whose records name
// no shard.
func TestVirtualShardsBeginWhenAllMastersWereSeen(t *testing.T) {
	realms(t, 2, func(r *realm) {
		late := r.sets[1].Master(2)
		late.Stop()
		g := r.shards(0, 1)
		after(5 * time.Minute)
		_, err := g.Lock(r.Context(), in(2, 1)[0][0], redlock.WithWaitLimit(time.Second))
		r.isError(err, redlock.ErrQuarantine, "shard 1 of 2, of which none has voted yet")
		late.Restart(false)
		if err := g.WaitReady(r.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Clients with different numbers of shards begin on new masters, some of which are down, hang, and restart with their
// data or, a minority, without. No name is ever locked on two sets of masters.
func TestVirtualUnlikeShardsNeverBothWin(t *testing.T) {
	seeds := rounds(9, 2)
	plans := [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 1}, {1, 0}, {0}}
	won := make([]int, len(plans))
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		realms(t, 3, func(r *realm) {
			chosen := rnd.Perm(len(plans))[:3]
			programs := map[int]*redlock.Locker{}
			for _, k := range chosen {
				for range 3 {
					r.disturb(rnd)
				}
				programs[k] = r.shards(plans[k]...)
				after(time.Duration(rnd.IntN(3)) * time.Second)
			}
			where := map[string]int{}
			for range 12 {
				r.disturb(rnd)
				if rnd.IntN(4) == 0 {
					ctx, cancel := context.WithTimeout(r.Context(), time.Second)
					_ = programs[chosen[rnd.IntN(3)]].Admin().Admit(ctx) // may fail
					cancel()
				}
				after(time.Duration(rnd.IntN(40)) * time.Second)
				for _, k := range chosen {
					for n := range 6 {
						name := fmt.Sprint("n", n)
						if r.try(programs[k], name) != nil {
							continue
						}
						won[k]++
						set := plans[k][sharding.Pick(name, len(plans[k]))-1]
						if before, known := where[name]; known && before != set {
							t.Errorf("seed %d: %q was locked on set %d, and with the shards %v on %d", seed, name, before, plans[k], set)
						}
						where[name] = set
					}
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	for k, n := range won {
		if n == 0 && long.Enabled() {
			t.Errorf("no client with the shards %v won in any schedule", plans[k])
		}
	}
}

// disturb applies a fault to one master.
func (r *realm) disturb(rnd *rand.Rand) {
	at := rnd.IntN(3)
	m := r.sets[rnd.IntN(3)].Master(at)
	switch rnd.IntN(6) {
	case 0:
		m.Stop()
	case 1, 2:
		m.Restart(true)
	case 3:
		m.Restart(at != 0) // always the same master of each set
	case 4:
		m.Hang()
	case 5:
		m.Resume()
	}
}
