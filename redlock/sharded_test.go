package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/memory"
	"github.com/redlock-go/redlock/internal/sharding"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Tests of names that are distributed over shards.

// A shardedCluster is one bubble with several sets of masters.
type shardedCluster struct {
	*cluster
	sets []*memory.Masters
}

// shardedClusters runs f in a bubble with k sets of three masters each. The masters are not admitted.
func shardedClusters(t *testing.T, k int, f func(w *shardedCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &shardedCluster{cluster: &cluster{tester: withDeadline(t), wire: &wire{}}}
		for range k {
			m := memory.New(3, memory.Fresh())
			t.Cleanup(m.Close)
			w.sets = append(w.sets, m)
		}
		f(w)
	})
}

// pool makes a pool over one set of masters.
func (w *shardedCluster) pool(set int, opts ...pool.Option) *pool.Pool {
	w.Helper()
	p := must(w.sets[set].Pool(opts...))(w)
	w.Cleanup(func() { _ = p.Close() })
	return p
}

func (w *shardedCluster) sharded(pools []*pool.Pool) *redlock.Locker {
	w.Helper()
	l := must(redlock.NewSharded(pools))(w)
	w.Cleanup(func() { _ = l.Close() })
	return l
}

// shards returns a Locker that distributes names over these sets, in their order.
func (w *shardedCluster) shards(sets ...int) *redlock.Locker {
	w.Helper()
	var pools []*pool.Pool
	for _, set := range sets {
		pools = append(pools, w.pool(set))
	}
	return w.sharded(pools)
}

// admitted returns a Locker like shards, whose masters have been admitted and vote.
func (w *shardedCluster) admitted(sets ...int) *redlock.Locker {
	w.Helper()
	g := w.shards(sets...)
	w.must(admin.Of(g).Admit(w.Context()))
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

// New masters complete their quarantine, and each name is locked only in its shard. A shard that is down affects
// only its own names, even in a client that starts while the shard is down.
func TestShardDownAffectsOnlyItsNames(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		g := w.shards(0, 1, 2)
		w.must(g.WaitReady(w.Context()))
		names := in(3, 2)
		for i, of := range names {
			lock := must(g.Lock(w.Context(), of[0]))(w)
			after(time.Millisecond)
			for k, set := range w.sets {
				if _, on := set.Holder(of[0]); (on == 3) != (k == i) {
					w.Errorf("%q of shard %d is on %d masters of shard %d", of[0], i+1, on, k+1)
				}
			}
			w.noError(lock.Unlock(w.Context()))
		}
		for i := range 2 {
			w.sets[1].Master(i).Stop()
		}
		after(time.Second)
		late := w.shards(0, 1, 2)
		for _, client := range []*redlock.Locker{g, late} {
			for i, of := range names {
				switch err := client.Do(w.Context(), of[1], nothing, redlock.WithWaitLimit(3*time.Second)); {
				case i == 1:
					w.isError(err, redlock.ErrNoQuorum)
				case err != nil:
					w.Errorf("shard %d: %v", i+1, err)
				}
			}
		}
	})
}

// Shards begin to vote only when all of their masters have been seen. If a majority sufficed, one of its masters
// could lose its record while another is unreachable. A client without shards that starts then would find a majority
// whose records contain no shard.
func TestShardsBeginWhenAllMastersWereSeen(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		late := w.sets[1].Master(2)
		late.Stop()
		g := w.shards(0, 1)
		after(5 * time.Minute)
		_, err := g.Lock(w.Context(), in(2, 1)[0][0], redlock.WithWaitLimit(time.Second))
		w.says(err, redlock.ErrQuarantine, "shard 1 of 2, where no master has voted yet")
		late.Restart(false)
		w.noError(g.WaitReady(w.Context()))
	})
}

// A single shard completes its first quarantine without an operator, as several shards do.
func TestOneShardBegins(t *testing.T) {
	shardedClusters(t, 1, func(w *shardedCluster) {
		g := w.shards(0)
		after(time.Minute) // longer than the quarantine
		w.noError(g.Do(w.Context(), "n", nothing, redlock.WithWaitLimit(3*time.Second)))
	})
}

// Clients with different numbers of shards start on new masters. Some of these masters are down, hang, or restart,
// with their data or, if they are a minority, without. No name is ever locked on two sets of masters.
func TestUnlikeShardsNeverBothWin(t *testing.T) {
	seeds := rounds(9, 2)
	plans := [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 1}, {1, 0}, {0}}
	won := make([]int, len(plans))
	missing := func() bool { return long.Enabled() && slices.Contains(won, 0) }
	// With -long, there are more schedules until a client with each plan has won, which few schedules let happen.
	for seed := uint64(0); seed < uint64(seeds) || missing() && seed < 100; seed++ {
		rnd := rand.New(rand.NewPCG(seed, 17))
		shardedClusters(t, 3, func(w *shardedCluster) {
			chosen := rnd.Perm(len(plans))[:3]
			clients := map[int]*redlock.Locker{}
			for _, k := range chosen {
				for range 3 {
					w.disturb(rnd)
				}
				clients[k] = w.shards(plans[k]...)
				after(time.Duration(rnd.IntN(3)) * time.Second)
			}
			where := map[string]int{}
			for range 12 {
				w.disturb(rnd)
				if rnd.IntN(4) == 0 {
					ctx, cancel := context.WithTimeout(w.Context(), time.Second)
					_ = admin.Of(clients[chosen[rnd.IntN(3)]]).Admit(ctx) // the call may fail
					cancel()
				}
				after(time.Duration(rnd.IntN(40)) * time.Second)
				for _, k := range chosen {
					for n := range 6 {
						name := fmt.Sprint("n", n)
						if clients[k].Do(w.Context(), name, nothing, redlock.WithWaitLimit(3*time.Second)) != nil {
							continue
						}
						won[k]++
						set := plans[k][sharding.Pick(name, len(plans[k]))-1]
						if before, known := where[name]; known && before != set {
							w.Errorf("seed %d: %q was locked on set %d, and with the shards %v on %d", seed, name, before, plans[k], set)
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
func (w *shardedCluster) disturb(rnd *rand.Rand) {
	at := rnd.IntN(3)
	m := w.sets[rnd.IntN(3)].Master(at)
	switch rnd.IntN(6) {
	case 0:
		m.Stop()
	case 1, 2:
		m.Restart(true)
	case 3:
		m.Restart(at != 0) // only master 0 of each set loses its data
	case 4:
		m.Hang()
	case 5:
		m.Resume()
	}
}

// Tests of the calls of a Locker with several shards.

// A client that holds names of several shards must not wait for a name that sorts before them, in any shard.
func TestOrderAcrossShards(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		g := w.admitted(0, 1)
		of := in(2, 3)
		names := slices.Sorted(slices.Values([]string{of[0][0], of[0][1], of[1][0], of[1][1]}))
		held := must(g.LockAll(w.Context(), names[1:]))(w)
		ctx := held.Context(w.Context())
		w.isError(errOf(g.Lock(ctx, names[0])), redlock.ErrOrder)
		w.isError(errOf(g.LockAll(ctx, []string{names[3], names[0]})), redlock.ErrOrder)
		for _, name := range names[2:] { // H165: of each shard, the names that a Lock owns count
			k := must(g.Lock(ctx, name, redlock.WithReentry()))(w)
			w.isError(errOf(g.LockAll(k.Context(w.Context()), names[:1])), redlock.ErrOrder)
			w.noError(k.Unlock(w.Context()))
		}
		again, err := g.LockAll(ctx, names[1:3], redlock.WithReentry()) // ctx belongs to the locks of these names
		if err != nil || again.Of(names[1]).Token() != held.Of(names[1]).Token() {
			w.Errorf("the re-entry returned %v, or another token", err)
		}
		all, err := g.TryLockAll(w.Context(), []string{names[0], names[1]})
		w.isError(err, redlock.ErrHeld)
		if all != nil {
			w.Error("both names were locked, although one of them is held")
		}
		w.noError(again.Unlock(w.Context()), held.Unlock(w.Context()))
		after(time.Second)
		if all, err = g.TryLockAll(w.Context(), names); err != nil || all.Unlock(w.Context()) != nil {
			w.Error(err)
		}
		w.isError(errOf(g.LockAll(w.Context(), nil)), redlock.ErrInvalid)
	})
}

// H168: Shutdown waits for the calls under way in all shards: the function of a Do can lock names of any shard, and a
// LockAll that waits for a name in one shard gets those in the others.
func TestShutdownAcrossShards(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		g, other, of := w.admitted(0, 1), w.shards(0, 1), in(2, 3)
		all := slices.Sorted(slices.Values(append(of[0][:2:2], of[1][:2]...)))
		held := must(other.Lock(w.Context(), all[1]))(w)
		both, nested, drained := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() {
			both <- g.DoAll(w.Context(), all, nothing)
		}()
		go func() {
			nested <- g.Do(w.Context(), of[0][2], func(ctx context.Context, _ *redlock.Lock) error {
				after(5 * time.Second)
				return g.Do(ctx, of[1][2], func(ctx context.Context, _ *redlock.Lock) error {
					after(5 * time.Second)
					return ctx.Err()
				})
			})
		}()
		after(time.Second)
		go func() { drained <- g.Shutdown(w.withTimeout(time.Minute)) }()
		w.noError(<-nested)
		w.isError(errOf(g.TryLock(w.Context(), of[1][2])), redlock.ErrClosed)
		after(5 * time.Second)
		w.noError(held.Unlock(w.Context()))
		w.noError(<-both, <-drained)
	})
}

// Each call for one name goes to the shard of the name, and a Locker of another shard refuses the name.
func TestCallsUseShardOfName(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		g, other := w.admitted(0, 1), w.shards(0, 1)
		ctx, names := w.Context(), in(2, 1)
		for i, of := range names {
			name := of[0]
			lock := must(g.Lock(ctx, name))(w)
			who, err := other.Inspect(ctx, name)
			if err != nil || who.Token != lock.Token() || who.N != 3 {
				w.Errorf("Inspect by another client returned %+v, %v", who, err)
			}
			for h, err := range other.Watch(ctx, name) {
				if err != nil || h.ID != who.ID {
					w.Errorf("Watch reported %+v, %v", h, err)
				}
				break
			}
			handle := must(lock.Export())(w)
			if lock, err = other.Import(ctx, handle); err != nil {
				w.Fatal(err)
			}
			h, err := g.Inspect(ctx, name)
			if err != nil || h.Token != lock.Token() {
				w.Errorf("Inspect returned %+v, %v", h, err)
			}
			if n, err := admin.Of(g).ForceRelease(ctx, name, h.ID); n < 2 || err != nil {
				w.Errorf("ForceRelease returned %d, %v", n, err)
			}
			w.isError(lock.Extend(ctx), redlock.ErrLost)

			wrong := w.newLocker(w.pool(1-i), redlock.WithShard(2-i, 2))
			_, err = wrong.Lock(ctx, name)
			w.says(err, redlock.ErrInvalid, fmt.Sprintf("belongs to shard %d of 2", i+1))
			w.isError(errOf(wrong.Import(ctx, handle)), redlock.ErrInvalid)
			w.isError(errOf(wrong.Inspect(ctx, name)), redlock.ErrInvalid)
			w.isError(errOf(wrong.TryLockAll(ctx, []string{name})), redlock.ErrInvalid)
			err = g.Lead(ctx, name, func(ctx context.Context, _ *redlock.Lock) error {
				_, err := other.TryLock(w.Context(), name)
				w.isError(err, redlock.ErrHeld)
				return ctx.Err()
			})
			if err != nil {
				w.Errorf("Lead returned %v", err)
			}
			if err = g.Do(ctx, name, nothing); err != nil {
				w.Errorf("Do returned %v", err)
			}
		}
		w.isError(errOf(g.Import(ctx, "nonsense")), redlock.ErrInvalid)
	})
}

// Calls that concern all masters report the results of each shard.
func TestCallsAboutAllMasters(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		g := w.admitted(0, 1)
		ctx := w.Context()
		client.SetOf(g).AwaitKnown(ctx)
		if list := admin.Of(g).Masters(); len(list) != 6 || list[0].Shard != 1 || list[5].Shard != 2 {
			w.Errorf("the masters are %+v", list)
		}
		w.noError(admin.Of(g).RaiseMaxTTL(ctx, time.Minute))
		for _, m := range admin.Of(g).Masters() {
			if m.MaxTTL != time.Minute {
				w.Errorf("the max TTL was not raised: %+v", m)
			}
		}
		for i := range 2 {
			w.sets[1].Master(i).Stop()
		}
		after(time.Second)
		verdict, err := admin.Of(g).Check(ctx)
		findings := verdict.Findings
		w.noError(err)
		about := slices.IndexFunc(findings, func(f redlockinfo.Finding) bool { return f.About == "quorum" })
		if about < 0 || findings[about].Master != "shard 2 of 2" {
			w.Errorf("Check found %+v", findings)
		}
		err = g.WaitReady(w.withTimeout(time.Second))
		w.says(err, redlock.ErrNoQuorum, "shard 2 of 2: ")
		if strings.Contains(err.Error(), "shard 1 of 2") {
			w.Errorf("the error names shard 1, which is ready: %v", err)
		}
		w.isError(admin.Of(g).Quarantine(ctx, "nobody"), redlock.ErrInvalid)
		// The second shard also has a master of this name, and a majority of the shard is down.
		if err := admin.Of(g).Quarantine(ctx, admin.Of(g).Masters()[2].Addr); err == nil ||
			!strings.HasPrefix(err.Error(), "shard 2 of 2: ") {
			w.Errorf("Quarantine returned %v, want an error of shard 2", err)
		}
		if admin.Of(g).Masters()[2].State != "quarantine" {
			w.Errorf("the master is not in quarantine: %+v", admin.Of(g).Masters()[2])
		}
		if len(client.SetOf(g).Warnings()) != 0 {
			w.Errorf("the warnings are %q, want none", client.SetOf(g).Warnings())
		}
		lock := must(g.Lock(ctx, in(2, 1)[0][0]))(w)
		w.noError(g.Close())
		w.isError(lock.Err(), redlock.ErrClosed)
		w.isError(errOf(g.Lock(ctx, in(2, 1)[1][0])), redlock.ErrClosed)
	})
}

// A shard that has lost all its records votes again, even without one master that never comes back, since the other
// shard still has records with the number of shards.
func TestShardThatLostAllRecordsRecovers(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		first := w.admitted(0, 1)
		_ = first.Close()
		for i := range 3 {
			w.sets[1].Master(i).Restart(false)
		}
		w.sets[1].Master(2).Stop()
		g := w.shards(0, 1)
		w.noError(g.WaitReady(w.withTimeout(time.Minute)))
	})
}

// The masters of one shard are changed while locks are held. The next masters get the records of the shard without
// further calls.
func TestReconfigureShard(t *testing.T) {
	shardedClusters(t, 3, func(w *shardedCluster) {
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) { // the next masters are next-1 to next-3
			if number, ok := strings.CutPrefix(addr, "next-"); ok {
				return w.sets[2].Dial(ctx, network, "master-"+number)
			}
			return w.sets[1].Dial(ctx, network, addr)
		}
		p := w.poolOver(w.sets[1].URLs(), pool.WithDialer(dial))
		g := w.sharded([]*pool.Pool{w.pool(0), p})
		w.must(admin.Of(g).Admit(w.Context()))
		lock := must(g.Lock(w.Context(), in(2, 1)[1][0]))(w)
		sets := admin.Of(g).Configuration()
		sets[1] = redlock.Configuration{
			Epoch: 1, Masters: sets[1].Masters, Next: []string{"redis://next-1", "redis://next-2", "redis://next-3"},
		}
		second := w.newLocker(p, redlock.WithShard(2, 2), redlock.WithConfiguration(sets[1])) // like the command
		ctx := w.withTimeout(5 * time.Minute)
		w.must(admin.Of(g).Reconfigure(ctx, sets...), client.SetOf(second).RaiseEpoch(ctx))
		after(2 * time.Minute)
		sets[1] = redlock.Configuration{Epoch: 2, Masters: sets[1].Next}
		w.says(admin.Of(g).Reconfigure(ctx, sets[1]), redlock.ErrInvalid, "2 shards")
		w.must(client.SetOf(second).FinishChange(ctx), admin.Of(g).Reconfigure(ctx, sets...))
		w.noError(lock.Err(), lock.Unlock(ctx), g.Do(w.Context(), lock.Name(), nothing, redlock.WithWaitLimit(3*time.Second)))
		for i := range 3 {
			if record, _ := w.sets[2].Master(i).Get("redlock:admission"); !strings.Contains(record, " shard=2/2 ") {
				w.Errorf("the record of next master %d is %s", i+1, record)
			}
		}
	})
}

func TestNewShardedRefusesInvalidShards(t *testing.T) {
	shardedClusters(t, 2, func(w *shardedCluster) {
		pools := []*pool.Pool{w.pool(0), w.pool(1)}
		for what, list := range map[string][]*pool.Pool{
			"of pools is 0":      {},
			"pool 2 of 2 is nil": {pools[0], nil},
			"have the same":      {pools[0], pools[0]},
			"of pools is 301":    make([]*pool.Pool, 301),
			"2 configuration":    pools[:1],
		} {
			var opts []redlock.Option
			if strings.Contains(what, "configuration") {
				opts = append(opts, redlock.WithConfiguration(redlock.Configuration{}, redlock.Configuration{}))
			}
			w.says(errOf(redlock.NewSharded(list, opts...)), redlock.ErrInvalid, what)
		}
		for _, opts := range [][]redlock.Option{
			{redlock.WithShard(1, 2)}, {redlock.WithoutRestartGuard()}, {redlock.WithTTL(0)}, {nil},
		} {
			w.isError(errOf(redlock.NewSharded(pools, opts...)), redlock.ErrInvalid)
		}
		for _, opts := range [][]redlock.Option{
			{redlock.WithShard(0, 2)}, {redlock.WithShard(3, 2)}, {redlock.WithShard(1, 1001)},
		} {
			w.isError(errOf(redlock.New(pools[0], opts...)), redlock.ErrInvalid)
		}
	})
}
