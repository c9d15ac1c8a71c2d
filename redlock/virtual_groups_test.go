package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The calls of Groups.

// Programs lock the same names of several groups in opposite orders, again and again: nobody waits in a circle, and no
// two hold a name.
func TestVirtualNamesOfSeveralGroupsAreLockedInOneOrder(t *testing.T) {
	realms(t, 3, func(r *realm) {
		programs := []*redlock.Groups{r.admitted(0, 1, 2), r.groups(0, 1, 2), r.groups(0, 1, 2)}
		names := slices.Concat(in(3, 2)...)
		holders, done := map[string]int{}, make(chan error)
		mu := make(chan struct{}, 1)
		count := func(list []string, by int) {
			mu <- struct{}{}
			for _, name := range list {
				if holders[name] += by; holders[name] > 1 {
					t.Errorf("%q is held twice", name)
				}
			}
			<-mu
		}
		for k, g := range programs {
			rnd := rand.New(rand.NewPCG(uint64(k), 3))
			go func() {
				for range 60 {
					var list []string
					for _, i := range rnd.Perm(len(names))[:3] {
						list = append(list, names[i])
					}
					err := g.DoAll(r.Context(), list, func(ctx context.Context) error {
						count(list, 1)
						defer count(list, -1)
						time.Sleep(time.Millisecond)
						return ctx.Err()
					})
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range programs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Whoever holds names of several groups may not wait for one that comes before them, whatever its group.
func TestVirtualTheOrderGoesAcrossGroups(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g := r.admitted(0, 1)
		of := in(2, 3)
		names := slices.Sorted(slices.Values([]string{of[0][0], of[0][1], of[1][0], of[1][1]}))
		held, err := g.LockAll(r.Context(), names[1:])
		if err != nil {
			t.Fatal(err)
		}
		ctx := held.Context(r.Context())
		for _, l := range []interface {
			Lock(context.Context, string, ...redlock.LockOption) (*redlock.Lock, error)
		}{g, g.Of(names[0])} {
			_, err = l.Lock(ctx, names[0])
			r.isError(err, redlock.ErrOrder)
		}
		_, err = g.LockAll(ctx, []string{names[3], names[0]})
		r.isError(err, redlock.ErrOrder)
		again, err := g.LockAll(ctx, names[1:3]) // they are its own
		if err != nil || again.Token(names[1]) != held.Token(names[1]) {
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
		r.isError(err, redlock.ErrInvalidOption)
	})
}

// Each call about one name is that of the Locker of its group; the Locker of another refuses the name.
func TestVirtualCallsGoToTheGroupOfTheName(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g, other := r.admitted(0, 1), r.groups(0, 1)
		ctx, names := r.Context(), in(2, 1)
		for i, of := range names {
			name := of[0]
			lock, err := g.Lock(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			who, err := other.Who(ctx, name)
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
			if n, err := g.ForceRelease(ctx, name, h.ID); n < 2 || err != nil {
				t.Errorf("force release: %d, %v", n, err)
			}
			r.isError(lock.Extend(ctx), redlock.ErrLost)

			wrong := g.Lockers()[1-i]
			_, err = wrong.Lock(ctx, name)
			r.isError(err, redlock.ErrInvalidOption, fmt.Sprintf("belongs to group %d of 2", i+1))
			_, err = wrong.Import(ctx, handle)
			r.isError(err, redlock.ErrInvalidOption)
			_, err = wrong.Who(ctx, name)
			r.isError(err, redlock.ErrInvalidOption)
			_, err = wrong.TryLockAll(ctx, []string{name})
			r.isError(err, redlock.ErrInvalidOption)
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
		r.isError(err, redlock.ErrInvalidOption)
	})
}

// Calls about all masters tell of each group.
func TestVirtualCallsAboutAllMasters(t *testing.T) {
	realms(t, 2, func(r *realm) {
		g := r.admitted(0, 1)
		ctx := r.Context()
		if list := g.Ready(ctx); len(list) != 6 || list[0].Group != 1 || list[5].Group != 2 || len(g.Masters()) != 6 {
			t.Errorf("%+v", list)
		}
		if err := g.RaiseGuardTime(ctx, time.Minute); err != nil {
			t.Error(err)
		}
		for _, m := range g.Masters() {
			if m.Guard != time.Minute {
				t.Errorf("%+v", m)
			}
		}
		for i := range 2 {
			r.sets[1].Master(i).Stop()
		}
		after(time.Second)
		findings, err := g.Check(ctx)
		if err != nil {
			t.Error(err)
		}
		about := slices.IndexFunc(findings, func(f pool.Finding) bool { return f.About == "quorum" })
		if about < 0 || findings[about].Master != "group 2 of 2" {
			t.Errorf("%+v", findings)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = g.WaitReady(short)
		r.isError(err, redlock.ErrNoQuorum, "group 2 of 2: ")
		if strings.Contains(err.Error(), "group 1 of 2") {
			t.Errorf("group 1 is ready: %v", err)
		}
		r.isError(g.Quarantine(ctx, "nobody"), redlock.ErrInvalidOption)
		// The second group has a master of this name too, and a majority of it is down.
		if err := g.Quarantine(ctx, g.Masters()[2].Addr); err == nil || !strings.HasPrefix(err.Error(), "group 2 of 2: ") {
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

// A group that has lost all its records begins again, also without one master that never comes back, since the other
// group tells the number.
func TestVirtualAGroupThatHasLostEverythingBeginsAgain(t *testing.T) {
	realms(t, 2, func(r *realm) {
		first := r.admitted(0, 1)
		_ = first.Close(r.Context())
		for i := range 3 {
			r.sets[1].Master(i).Restart(false)
		}
		r.sets[1].Master(2).Stop()
		g := r.groups(0, 1)
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if err := g.WaitReady(ctx); err != nil {
			t.Error(err)
		}
	})
}

// The number of groups is changed with nobody running: the records are deleted, and the masters admitted anew.
func TestVirtualTheNumberOfGroupsIsChangedWithNobodyRunning(t *testing.T) {
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
		r.isError(r.try(r.groups(0, 1), in(2, 1)[0][0]), redlock.ErrGroup)
	})
}

// The masters of one group are changed while locks are held: the next ones become masters of the group by themselves.
func TestVirtualTheMastersOfAGroupAreChanged(t *testing.T) {
	realms(t, 3, func(r *realm) {
		p, err := pool.Dial(r.sets[1].URLs(), pool.WithClock(clock.Runtime()), pool.WithDialer(r.either(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = p.Close() })
		second, err := redlock.New(p, redlock.WithClock(clock.Runtime()), redlock.WithGroup(2, 2))
		if err != nil {
			t.Fatal(err)
		}
		g, err := redlock.Spread(r.locker(0, redlock.WithGroup(1, 2)), second)
		if err != nil {
			t.Fatal(err)
		}
		r.Cleanup(func() { _ = g.Close(context.WithoutCancel(r.Context())) })
		if err := g.AdmitNow(r.Context()); err != nil {
			t.Fatal(err)
		}
		lock, err := g.Lock(r.Context(), in(2, 1)[1][0])
		if err != nil {
			t.Fatal(err)
		}
		both := redlock.Set{Epoch: 1, Masters: second.Set().Masters, Next: []string{"redis://next-1", "redis://next-2", "redis://next-3"}}
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Minute)
		defer cancel()
		if err := errors.Join(second.ChangeMasters(ctx, both), second.RaiseEpoch(ctx)); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Minute)
		next := redlock.Set{Epoch: 2, Masters: both.Next}
		if err := errors.Join(second.FinishChange(ctx), second.ChangeMasters(ctx, next)); err != nil {
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

func TestVirtualSpreadRefusesWhatIsNoSetOfGroups(t *testing.T) {
	realms(t, 2, func(r *realm) {
		one, two := r.locker(0, redlock.WithGroup(1, 2)), r.locker(1, redlock.WithGroup(2, 2))
		for what, lockers := range map[string][]*redlock.Locker{
			"of one group":       {},
			"nil, or was made":   {one, nil},
			"without WithGroup":  {one, r.locker(1)},
			"1 Lockers are":      {one},
			"two Lockers are":    {one, r.locker(1, redlock.WithGroup(1, 2))},
			"that of another":    {one, r.locker(1, redlock.WithGroup(2, 2), redlock.WithPrefix("other"))},
			"2 of 3, and 2 Lock": {one, r.locker(1, redlock.WithGroup(2, 3))},
		} {
			_, err := redlock.Spread(lockers...)
			r.isError(err, redlock.ErrInvalidOption, what)
		}
		if _, err := redlock.Spread(two, one); err != nil {
			t.Error(err)
		}
		_, err := redlock.Spread(one, two)
		r.isError(err, redlock.ErrInvalidOption, "was spread before")
		p, err := r.sets[0].Pool()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		for _, opts := range [][]redlock.Option{
			{redlock.WithGroup(0, 2)}, {redlock.WithGroup(3, 2)}, {redlock.WithGroup(1, 1001)},
			{redlock.WithGroup(1, 2), redlock.WithoutGuard()},
		} {
			_, err := redlock.New(p, opts...)
			r.isError(err, redlock.ErrInvalidOption)
		}
	})
}
