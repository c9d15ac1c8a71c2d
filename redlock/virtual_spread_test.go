package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/internal/spread"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// Names that are spread over groups of masters.

// A realm is one bubble with several sets of masters.
type realm struct {
	*testing.T
	sets []*redlocktest.Masters
}

// realms runs f in a bubble with k sets of three masters each that nobody has admitted.
func realms(t *testing.T, k int, f func(r *realm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &realm{T: t}
		for range k {
			m := redlocktest.New(3, redlocktest.Fresh())
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

// groups spreads names over these sets, in their order.
func (r *realm) groups(sets ...int) *redlock.Groups {
	r.Helper()
	var lockers []*redlock.Locker
	for i, set := range sets {
		lockers = append(lockers, r.locker(set, redlock.WithGroup(i+1, len(sets))))
	}
	slices.Reverse(lockers) // the order in which they are given plays no part
	g, err := redlock.Spread(lockers...)
	if err != nil {
		r.Fatal(err)
	}
	return g
}

// admitted is groups that vote.
func (r *realm) admitted(sets ...int) *redlock.Groups {
	r.Helper()
	g := r.groups(sets...)
	if err := g.AdmitNow(r.Context()); err != nil {
		r.Fatal(err)
	}
	return g
}

// in is n names of each group of k.
func in(k, n int) (names [][]string) {
	names = make([][]string, k)
	for i, full := 0, 0; full < k; i++ {
		name := fmt.Sprint("orders:", i)
		if at := spread.Pick(name, k) - 1; len(names[at]) < n {
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

// try takes a name within three seconds, and gives it back.
func (r *realm) try(l interface {
	Lock(context.Context, string, ...redlock.LockOption) (*redlock.Lock, error)
}, name string) error {
	lock, err := l.Lock(r.Context(), name, redlock.WithWaitLimit(3*time.Second))
	if err != nil {
		return err
	}
	return lock.Unlock(r.Context())
}

// New masters come through their quarantine, each name is locked in its group alone, and a group that is down costs its
// names only, also for a program that starts meanwhile.
func TestVirtualAGroupThatIsDownCostsItsNamesOnly(t *testing.T) {
	realms(t, 3, func(r *realm) {
		g := r.groups(0, 1, 2)
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
					t.Errorf("%q of group %d is on %d masters of group %d", of[0], i+1, on, k+1)
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
		late := r.groups(0, 1, 2)
		for _, program := range []*redlock.Groups{g, late} {
			for i, of := range names {
				switch err := r.try(program, of[1]); {
				case i == 1:
					r.isError(err, redlock.ErrNoQuorum)
				case err != nil:
					t.Errorf("group %d: %v", i+1, err)
				}
			}
		}
	})
}

// Two programs with other numbers of groups: whichever is later wins nothing where it has masters in common with the
// first, and nothing at all on masters that are new.
func TestVirtualAnotherNumberOfGroupsWinsNothing(t *testing.T) {
	realms(t, 3, func(r *realm) {
		first := r.admitted(0, 1)
		names := in(2, 1)
		others := map[string]*redlock.Groups{"three": r.groups(0, 1, 2), "the other order": r.groups(1, 0)}
		alone := r.locker(0)
		after(5 * time.Minute)
		for what, g := range others {
			for k := range 30 {
				if err := r.try(g, fmt.Sprint(k)); err == nil {
					t.Errorf("%s: a lock was won in group %d", what, spread.Pick(fmt.Sprint(k), len(g.Lockers())))
				}
			}
		}
		r.isError(r.try(others["three"], in(3, 1)[0][0]), redlock.ErrGroup, "group 1 of 2", "group 1 of 3", "redlock quarantine -master")
		r.isError(r.try(alone, "a"), redlock.ErrGroup, "group 1 of 2", "no groups")
		for _, of := range names {
			if err := r.try(first, of[0]); err != nil {
				t.Error(err)
			}
		}
	})
	realms(t, 2, func(r *realm) { // and no groups first
		alone := r.locker(1)
		if err := alone.AdmitNow(r.Context()); err != nil {
			t.Fatal(err)
		}
		g := r.groups(0, 1)
		after(5 * time.Minute)
		for _, of := range in(2, 1) {
			r.isError(r.try(g, of[0]), redlock.ErrNoQuorum)
		}
		if err := r.try(alone, "a"); err != nil {
			t.Error(err)
		}
	})
}

// Groups begin only when all their masters were seen. If a majority did, one of it could lose its record and another be
// out of reach when a program comes that has no groups: it would find a majority that names none.
func TestVirtualGroupsBeginWhenAllMastersWereSeen(t *testing.T) {
	realms(t, 2, func(r *realm) {
		late := r.sets[1].Master(2)
		late.Stop()
		g := r.groups(0, 1)
		after(5 * time.Minute)
		_, err := g.Lock(r.Context(), in(2, 1)[0][0], redlock.WithWaitLimit(time.Second))
		r.isError(err, redlock.ErrQuarantine, "group 1 of 2, of which none has voted yet")
		late.Restart(false)
		if err := g.WaitReady(r.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Programs with unlike numbers of groups begin on new masters, some of which are down, hang, and restart with their
// memory or, a minority, without. No name is ever locked on two sets of masters.
func TestVirtualUnlikeGroupsNeverBothWin(t *testing.T) {
	seeds := rounds(9, 2)
	plans := [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 1}, {1, 0}, {0}}
	won := make([]int, len(plans))
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 17))
		realms(t, 3, func(r *realm) {
			chosen := rnd.Perm(len(plans))[:3]
			programs := map[int]*redlock.Groups{}
			for _, k := range chosen {
				for range 3 {
					r.disturb(rnd)
				}
				programs[k] = r.groups(plans[k]...)
				after(time.Duration(rnd.IntN(3)) * time.Second)
			}
			where := map[string]int{}
			for range 12 {
				r.disturb(rnd)
				if rnd.IntN(4) == 0 {
					ctx, cancel := context.WithTimeout(r.Context(), time.Second)
					_ = programs[chosen[rnd.IntN(3)]].AdmitNow(ctx) // as far as it comes
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
						set := plans[k][spread.Pick(name, len(plans[k]))-1]
						if before, known := where[name]; known && before != set {
							t.Errorf("seed %d: %q was locked on set %d, and with the groups %v on %d", seed, name, before, plans[k], set)
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
		if n == 0 && !testing.Short() {
			t.Errorf("in no schedule a program with the groups %v has won", plans[k])
		}
	}
}

// disturb lets something happen to one master.
func (r *realm) disturb(rnd *rand.Rand) {
	at := rnd.IntN(3)
	m := r.sets[rnd.IntN(3)].Master(at)
	switch rnd.IntN(6) {
	case 0:
		m.Stop()
	case 1, 2:
		m.Restart(true)
	case 3:
		m.Restart(at != 0) // always the same one of each set
	case 4:
		m.Hang()
	case 5:
		m.Resume()
	}
}
