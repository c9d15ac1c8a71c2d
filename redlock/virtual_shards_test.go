package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// Tests of the calls of a sharded Locker.

// A client that holds names of several shards may not wait for a name that sorts before them, in any shard.
func TestVirtualTheOrderGoesAcrossShards(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g := r.admitted(0, 1)
		of := in(2, 3)
		names := slices.Sorted(slices.Values([]string{of[0][0], of[0][1], of[1][0], of[1][1]}))
		held, err := g.LockAll(r.Context(), names[1:])
		if err != nil {
			t.Fatal(err)
		}
		ctx := held.Context(r.Context())
		_, err = g.Lock(ctx, names[0])
		r.isError(err, redlock.ErrOrder)
		_, err = g.LockAll(ctx, []string{names[3], names[0]})
		r.isError(err, redlock.ErrOrder)
		again, err := g.LockAll(ctx, names[1:3]) // the context owns them
		if err != nil || again.Of(names[1]).Token() != held.Of(names[1]).Token() {
			t.Errorf("re-entry: %v", err)
		}
		all, err := g.TryLockAll(r.Context(), []string{names[0], names[1]})
		r.isError(err, redlock.ErrHeld)
		if all != nil {
			t.Error("one of two is held, and both were locked")
		}
		if err := errors.Join(again.Unlock(r.Context()), held.Unlock(r.Context())); err != nil {
			t.Error(err)
		}
		after(time.Second)
		if all, err = g.TryLockAll(r.Context(), names); err != nil || all.Unlock(r.Context()) != nil {
			t.Error(err)
		}
		_, err = g.LockAll(r.Context(), nil)
		r.isError(err, redlock.ErrInvalid)
	})
}

// Each call about one name goes to the shard of the name; a Locker of another shard refuses the name.
func TestVirtualCallsGoToTheShardOfTheName(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g, other := r.admitted(0, 1), r.shards(0, 1)
		ctx, names := r.Context(), in(2, 1)
		for i, of := range names {
			name := of[0]
			lock, err := g.Lock(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			who, err := other.Inspect(ctx, name)
			if err != nil || who.Token != lock.Token() || who.N != 3 {
				t.Errorf("who: %+v, %v", who, err)
			}
			for h, err := range other.Watch(ctx, name) {
				if err != nil || h.ID != who.ID {
					t.Errorf("watch: %+v, %v", h, err)
				}
				break
			}
			handle, err := lock.Export()
			if err != nil {
				t.Fatal(err)
			}
			if lock, err = other.Import(ctx, handle); err != nil {
				t.Fatal(err)
			}
			h, err := g.Inspect(ctx, name)
			if err != nil || h.Token != lock.Token() {
				t.Errorf("inspect: %+v, %v", h, err)
			}
			if n, err := g.Admin().ForceRelease(ctx, name, h.ID); n < 2 || err != nil {
				t.Errorf("force release: %d, %v", n, err)
			}
			r.isError(lock.Extend(ctx), redlock.ErrLost)

			wrong := r.locker(1-i, redlock.WithShard(2-i, 2))
			_, err = wrong.Lock(ctx, name)
			r.isError(err, redlock.ErrInvalid, fmt.Sprintf("belongs to shard %d of 2", i+1))
			_, err = wrong.Import(ctx, handle)
			r.isError(err, redlock.ErrInvalid)
			_, err = wrong.Inspect(ctx, name)
			r.isError(err, redlock.ErrInvalid)
			_, err = wrong.TryLockAll(ctx, []string{name})
			r.isError(err, redlock.ErrInvalid)
			err = g.Lead(ctx, name, func(ctx context.Context) error {
				_, err := other.TryLock(r.Context(), name)
				r.isError(err, redlock.ErrHeld)
				return ctx.Err()
			})
			if err != nil {
				t.Errorf("lead: %v", err)
			}
			if err = g.Do(ctx, name, context.Context.Err); err != nil {
				t.Errorf("do: %v", err)
			}
		}
		_, err := g.Import(ctx, "nonsense")
		r.isError(err, redlock.ErrInvalid)
	})
}

// Calls about all masters report each shard.
func TestVirtualCallsAboutAllMasters(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g := r.admitted(0, 1)
		ctx := r.Context()
		if list := g.Ready(ctx); len(list) != 6 || list[0].Shard != 1 || list[5].Shard != 2 || len(g.Masters()) != 6 {
			t.Errorf("%+v", list)
		}
		if err := g.Admin().RaiseMaxTTL(ctx, time.Minute); err != nil {
			t.Error(err)
		}
		for _, m := range g.Masters() {
			if m.MaxTTL != time.Minute {
				t.Errorf("%+v", m)
			}
		}
		for i := range 2 {
			r.sets[1].Master(i).Stop()
		}
		after(time.Second)
		findings, err := g.Admin().Check(ctx)
		if err != nil {
			t.Error(err)
		}
		about := slices.IndexFunc(findings, func(f pool.Finding) bool { return f.About == "quorum" })
		if about < 0 || findings[about].Master != "shard 2 of 2" {
			t.Errorf("%+v", findings)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = g.WaitReady(short)
		r.isError(err, redlock.ErrNoQuorum, "shard 2 of 2: ")
		if strings.Contains(err.Error(), "shard 1 of 2") {
			t.Errorf("shard 1 is ready: %v", err)
		}
		r.isError(g.Admin().Quarantine(ctx, "nobody"), redlock.ErrInvalid)
		// The second shard also has a master of this name, and a majority of the shard is down.
		if err := g.Admin().Quarantine(ctx, g.Masters()[2].Addr); err == nil || !strings.HasPrefix(err.Error(),
			"shard 2 of 2: ") {
			t.Errorf("quarantine: %v", err)
		}
		if g.Masters()[2].State != "quarantine" {
			t.Errorf("quarantine: %+v", g.Masters()[2])
		}
		if len(g.Warnings()) != 0 {
			t.Errorf("%q", g.Warnings())
		}
		lock, err := g.Lock(ctx, in(2, 1)[0][0])
		if err != nil {
			t.Fatal(err)
		}
		closing, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := g.Close(closing); err != nil {
			t.Error(err)
		}
		r.isError(lock.Err(), redlock.ErrClosed)
		_, err = g.Lock(ctx, in(2, 1)[1][0])
		r.isError(err, redlock.ErrClosed)
	})
}

// A shard that has lost all its records begins again, even without one master that never comes back, since the other
// shard has the number.
func TestVirtualAShardThatHasLostEverythingBeginsAgain(t *testing.T) {
	realms(t, 2, func(r *realm) {
		first := r.admitted(0, 1)
		_ = first.Close(r.Context())
		for i := range 3 {
			r.sets[1].Master(i).Restart(false)
		}
		r.sets[1].Master(2).Stop()
		g := r.shards(0, 1)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if err := g.WaitReady(ctx); err != nil {
			t.Error(err)
		}
	})
}

// The number of shards is changed with no client running: the records are deleted, and the masters admitted again.
func TestVirtualShardCountChangesWithoutClients(t *testing.T) {
	realms(t, 3, func(r *realm) {
		old := r.admitted(0, 1)
		if err := old.Close(r.Context()); err != nil {
			t.Fatal(err)
		}
		for _, set := range r.sets[:2] {
			for i := range 3 {
				set.Master(i).EvictKey("redlock:admission")
			}
		}
		g := r.admitted(0, 1, 2)
		for _, of := range in(3, 1) {
			if err := r.try(g, of[0]); err != nil {
				t.Error(err)
			}
		}
		r.isError(r.try(r.shards(0, 1), in(2, 1)[0][0]), redlock.ErrMasterList)
	})
}

// The masters of one shard are changed while locks are held: the next masters join the shard by themselves.
func TestVirtualTheMastersOfAShardAreChanged(t *testing.T) {
	realms(t, 3, func(r *realm) {
		p, err := pool.Open(r.sets[1].URLs(), transport.WithClock(clock.Runtime()), pool.WithDialer(r.either(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = p.Close() })
		first, err := r.sets[0].Pool()
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = first.Close() })
		g, err := redlock.NewSharded([]*pool.Pool{first, p})
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = g.Close(context.WithoutCancel(r.Context())) })
		if err := g.Admin().Admit(r.Context()); err != nil {
			t.Fatal(err)
		}
		lock, err := g.Lock(r.Context(), in(2, 1)[1][0])
		if err != nil {
			t.Fatal(err)
		}
		sets := g.Admin().Configuration()
		sets[1] = redlock.Configuration{
			Epoch: 1, Masters: sets[1].Masters, Next: []string{"redis://next-1", "redis://next-2", "redis://next-3"},
		}
		second, err := redlock.New(p, redlock.WithShard(2, 2), redlock.WithConfiguration(sets[1])) // like the command
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = second.Close(context.WithoutCancel(r.Context())) })
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Minute)
		defer cancel()
		if err := errors.Join(g.Admin().Reconfigure(ctx, sets...), second.RaiseEpoch(ctx)); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Minute)
		sets[1] = redlock.Configuration{Epoch: 2, Masters: sets[1].Next}
		r.isError(g.Admin().Reconfigure(ctx, sets[1]), redlock.ErrInvalid, "2 shards")
		if err := errors.Join(second.FinishChange(ctx), g.Admin().Reconfigure(ctx, sets...)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lock.Err(), lock.Unlock(ctx), r.try(g, lock.Name())); err != nil {
			t.Error(err)
		}
		for i := range 3 {
			if record, _ := r.sets[2].Master(i).Get("redlock:admission"); !strings.Contains(record, " group=2/2 ") {
				t.Errorf("next master %d: %s", i+1, record)
			}
		}
	})
}

func TestVirtualNewShardedRefusesWhatIsNoSetOfShards(t *testing.T) {
	realms(t, 2, func(r *realm) {
		pools := make([]*pool.Pool, 2)
		for i, set := range r.sets {
			p, err := set.Pool()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			pools[i] = p
		}
		for what, list := range map[string][]*pool.Pool{
			"0 shards":        {},
			"shard 2 is nil":  {pools[0], nil},
			"have the same":   {pools[0], pools[0]},
			"301 shards":      make([]*pool.Pool, 301),
			"2 configuration": pools[:1],
		} {
			var opts []redlock.Option
			if strings.Contains(what, "configuration") {
				opts = append(opts, redlock.WithConfiguration(redlock.Configuration{}, redlock.Configuration{}))
			}
			_, err := redlock.NewSharded(list, opts...)
			r.isError(err, redlock.ErrInvalid, what)
		}
		for _, opts := range [][]redlock.Option{
			{redlock.WithShard(1, 2)}, {redlock.WithoutRestartGuard()}, {redlock.WithTTL(0)}, {nil},
		} {
			_, err := redlock.NewSharded(pools, opts...)
			r.isError(err, redlock.ErrInvalid)
		}
		for _, opts := range [][]redlock.Option{
			{redlock.WithShard(0, 2)}, {redlock.WithShard(3, 2)}, {redlock.WithShard(1, 1001)},
		} {
			_, err := redlock.New(pools[0], opts...)
			r.isError(err, redlock.ErrInvalid)
		}
	})
}
