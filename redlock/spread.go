package redlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/spread"
)

// WithGroup says that the masters of this Locker are group number, from 1, of so many groups among which names are
// spread; see [Spread]. There are at most 300.
//
// It stands in the admission records of the masters. A program that goes by another number of groups, by another
// number for these masters, or by no groups, takes no lock there: its calls fail with [ErrGroup] among the reasons,
// which names both numbers, the master, and the command that replaces a stray record. How the number is changed is in
// docs/sizing.md.
//
// A Locker of a group refuses names of other groups. New groups begin only when a program has spread the Lockers of all
// groups, and has seen all their masters once; so all must be up once at the very first start.
func WithGroup(number, of int) Option {
	return lockerOption(func(c *config) { c.group = scripts.Group{Number: number, Of: of} })
}

// checkName says what is wrong with name, for this Locker.
func (l *Locker) checkName(name string) error {
	if err := scripts.CheckName(name); err != nil {
		return invalid("%v", err)
	}
	if l.member == nil {
		return nil
	}
	if g := l.cfg.group; spread.Pick(name, g.Of) != g.Number {
		return invalid("%.80q belongs to group %d of %d, and this Locker is that of group %d; Groups.Of has the right one",
			name, spread.Pick(name, g.Of), g.Of, g.Number)
	}
	return nil
}

// Groups are the Lockers of several groups of masters, with the calls of one Locker: each name belongs to one group,
// by rendezvous hashing. So a lock service grows by groups, and a group that is down costs its names only. All methods
// are safe for concurrent use.
type Groups struct {
	lockers []*Locker // by the number of the group
}

// Spread joins the Lockers of all groups, in any order. Each was made by [New] over a pool of its own, with [WithGroup]
// and else the same options. Every program of the fleet names the same masters for a group.
//
// It fails with [ErrInvalidOption] where a group is missing or there twice, where the Lockers differ in the number of
// groups or in the prefix, and where one of them was spread before; it then has changed nothing. It neither blocks nor
// needs a living master. [Groups.Close] closes the Lockers.
func Spread(lockers ...*Locker) (*Groups, error) {
	if len(lockers) == 0 {
		return nil, invalid("Spread needs the Locker of one group at least")
	}
	g := &Groups{lockers: make([]*Locker, len(lockers))}
	members := make([]*spread.Member, len(lockers))
	for _, l := range lockers {
		if l == nil || l.member == nil {
			return nil, invalid("Spread: a Locker is nil, or was made without WithGroup")
		}
		group := l.cfg.group
		at := group.Number - 1
		switch {
		case group.Of != len(lockers):
			return nil, invalid("Spread: a Locker is group %d of %d, and %d Lockers are given", group.Number, group.Of,
				len(lockers))
		case g.lockers[at] != nil:
			return nil, invalid("Spread: two Lockers are group %d of %d", group.Number, group.Of)
		case l.beforeTag() != lockers[0].beforeTag():
			return nil, invalid("Spread: the prefix of one Locker is %q, that of another %q", lockers[0].beforeTag(),
				l.beforeTag())
		case slices.ContainsFunc(g.lockers, func(o *Locker) bool { return o != nil && o.pool == l.pool }):
			return nil, invalid("Spread: two groups have the same pool of masters")
		}
		g.lockers[at], members[at] = l, l.member
	}
	if err := spread.Join(members); err != nil {
		return nil, invalid("Spread: %v", err)
	}
	for _, l := range g.lockers {
		l.grants.Share(g.lockers[0].grants)
	}
	return g, nil
}

// beforeTag is the prefix without what says which bucket it is of.
func (l *Locker) beforeTag() string { return strings.TrimSuffix(l.cfg.prefix, l.pool.Bucket().Tag()) }

// Buckets makes a Locker for each bucket of a cluster, over the pools that [pool.DialBuckets] has made, and joins them:
// see [Spread]. Each bucket is a group of its own: names belong to one of them, and its masters are the node that has
// its hash slot and those beside the cluster. Their keys begin with the prefix and the bucket's number: redlock{17}.
//
// It fails with [ErrInvalidOption], and has changed nothing, where New or Spread does, or a pool is of no bucket. The
// options are those of [New] but for [WithGroup]. [Groups.Close] closes the Lockers, and not the pools.
func Buckets(pools []*pool.Pool, opts ...Option) (*Groups, error) {
	var lockers []*Locker
	undo := func(err error) (*Groups, error) {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for _, l := range lockers {
			_ = l.Close(over) // it holds nothing
		}
		return nil, err
	}
	for _, p := range pools {
		if p == nil || p.Bucket().Of == 0 {
			return undo(invalid("Buckets: a pool is nil or of no bucket of a cluster; pool.DialBuckets makes them"))
		}
		l, err := New(p, opts...)
		if err != nil {
			return undo(err)
		}
		lockers = append(lockers, l)
	}
	g, err := Spread(lockers...)
	if err != nil {
		return undo(err)
	}
	return g, nil
}

// Of is the Locker of the group to which name belongs. Each call of Groups about one name is that of this Locker.
func (g *Groups) Of(name string) *Locker {
	return g.lockers[spread.Pick(name, len(g.lockers))-1]
}

// Lockers are those of all groups, by number. The masters of a group are changed by [Locker.ChangeMasters] of its own.
func (g *Groups) Lockers() []*Locker { return slices.Clone(g.lockers) }

// Lock takes the lock of name: see [Locker.Lock].
func (g *Groups) Lock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return g.Of(name).Lock(ctx, name, opts...)
}

// TryLock takes the lock of name in one attempt: see [Locker.TryLock].
func (g *Groups) TryLock(ctx context.Context, name string, opts ...LockOption) (*Lock, error) {
	return g.Of(name).TryLock(ctx, name, opts...)
}

// Do runs f while holding the lock of name: see [Locker.Do].
func (g *Groups) Do(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) error {
	return g.Of(name).Do(ctx, name, f, opts...)
}

// Shared is name as a lock for readers and writers: see [Locker.Shared].
func (g *Groups) Shared(name string) *Shared { return g.Of(name).Shared(name) }

// LockAll takes the locks of all names, or none, of whatever groups: see [Locker.LockAll]. It needs all of these
// groups: while one is down it waits, and holds names of the others. Bound that by [WithWaitLimit]. All programs take
// them in the order of the names, whatever the groups, so none waits for another in a circle.
func (g *Groups) LockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return takeAll(ctx, g.Of, names, opts, true)
}

// TryLockAll takes the locks of all names in one attempt each, or none: see [Locker.TryLockAll].
func (g *Groups) TryLockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return takeAll(ctx, g.Of, names, opts, false)
}

// DoAll runs f while holding the locks of all names: see [Locker.DoAll].
func (g *Groups) DoAll(
	ctx context.Context, names []string, f func(ctx context.Context) error, opts ...LockOption,
) error {
	locks, err := g.LockAll(ctx, names, opts...)
	return locks.during(ctx, f, err)
}

// Lead runs f while it leads name: see [Locker.Lead].
func (g *Groups) Lead(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) error {
	return g.Of(name).Lead(ctx, name, f, opts...)
}

// Watch tells who holds or leads name, again and again: see [Locker.Watch].
func (g *Groups) Watch(ctx context.Context, name string) iter.Seq2[Holder, error] {
	return g.Of(name).Watch(ctx, name)
}

// Import takes over the lock of a handle that [Lock.Export] gave: see [Locker.Import].
func (g *Groups) Import(ctx context.Context, text string, opts ...LockOption) (*Lock, error) {
	handle, err := parseHandle(text)
	if err != nil {
		return nil, err
	}
	return g.Of(handle.name).Import(ctx, text, opts...)
}

// Inspect tells who holds name: see [Locker.Inspect].
func (g *Groups) Inspect(ctx context.Context, name string) (Holder, error) {
	return g.Of(name).Inspect(ctx, name)
}

// Who tells who holds name, and who waits for it: see [Locker.Who].
func (g *Groups) Who(ctx context.Context, name string) (Who, error) { return g.Of(name).Who(ctx, name) }

// ForceRelease takes the grant with this id from whoever holds it: see [Locker.ForceRelease].
func (g *Groups) ForceRelease(ctx context.Context, name, id string) (released int, err error) {
	return g.Of(name).ForceRelease(ctx, name, id)
}

// WaitReady waits until a quorum of each group votes: see [Locker.WaitReady]. It returns when all groups are ready or
// have failed; the names of those that are ready can be locked whatever the others do.
func (g *Groups) WaitReady(ctx context.Context) error {
	return g.each(func(_ int, l *Locker) error { return l.WaitReady(ctx) })
}

// Ready waits until each master of each group has answered or is known to be down: see [Locker.Ready].
func (g *Groups) Ready(ctx context.Context) []MasterInfo {
	list, _ := gather(g, func(l *Locker) ([]MasterInfo, error) { return l.Ready(ctx), nil }) // it has no errors
	return list
}

// Masters tells the state of each master, group by group: see [Locker.Masters].
func (g *Groups) Masters() []MasterInfo {
	list, _ := gather(g, func(l *Locker) ([]MasterInfo, error) { return l.Masters(), nil }) // it has no errors
	return list
}

// Warnings tells what is unwise about the configuration of each group: see [Locker.Warnings].
func (g *Groups) Warnings() []string {
	list, _ := gather(g, func(l *Locker) ([]string, error) { return l.Warnings(), nil }) // it has no errors
	return list
}

// Check tells what is not as it should be on the masters, group by group: see [Locker.Check]. The findings of groups
// that could be asked are there also where the error is not nil.
func (g *Groups) Check(ctx context.Context) ([]pool.Finding, error) {
	return gather(g, func(l *Locker) ([]pool.Finding, error) { return l.Check(ctx) })
}

// AdmitNow lets the masters of all groups vote at once: see [Locker.AdmitNow].
func (g *Groups) AdmitNow(ctx context.Context) error {
	return g.each(func(_ int, l *Locker) error { return l.AdmitNow(ctx) })
}

// Quarantine puts the master with this address into quarantine: see [Locker.Quarantine].
func (g *Groups) Quarantine(ctx context.Context, addr string) error {
	var known atomic.Bool // beside a cluster a master is in the group of each bucket
	err := g.each(func(_ int, l *Locker) error {
		if !slices.ContainsFunc(l.Masters(), func(m MasterInfo) bool { return m.Addr == addr }) {
			return nil
		}
		known.Store(true)
		return l.Quarantine(ctx, addr)
	})
	if !known.Load() {
		return invalid("no master of any group is named %q", addr)
	}
	return err
}

// RaiseGuardTime allows TTLs up to d in all groups: see [Locker.RaiseGuardTime].
func (g *Groups) RaiseGuardTime(ctx context.Context, d time.Duration) error {
	return g.each(func(_ int, l *Locker) error { return l.RaiseGuardTime(ctx, d) })
}

// Close closes the Lockers of all groups at once: see [Locker.Close]. Their pools stay open.
func (g *Groups) Close(ctx context.Context) error {
	return g.each(func(_ int, l *Locker) error { return l.Close(ctx) })
}

// each calls f for all groups at once, and joins the errors.
func (g *Groups) each(f func(i int, l *Locker) error) error {
	errs := make([]error, len(g.lockers))
	var wg sync.WaitGroup
	for i, l := range g.lockers {
		wg.Go(func() {
			if err := f(i, l); err != nil {
				errs[i] = fmt.Errorf("%s: %w", l.fleet(), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// gather puts together what all groups answer, group by group.
func gather[T any](g *Groups, ask func(l *Locker) ([]T, error)) ([]T, error) {
	lists := make([][]T, len(g.lockers))
	err := g.each(func(i int, l *Locker) (err error) {
		lists[i], err = ask(l)
		return err
	})
	return slices.Concat(lists...), err
}
