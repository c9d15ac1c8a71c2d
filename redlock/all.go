package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/multilock"
)

// errOrder is returned if the context holds several names by LockAll and the requested name sorts before one of them.
// Clients that lock in different orders could wait for each other forever. Nothing was sent.
var errOrder = misuse("redlock: the name comes before one that this context holds by LockAll, " +
	"so waiting for it could deadlock: lock all of them by one LockAll, or use TryLock")

// Locks holds the locks of several names that were acquired as one. All methods are safe for concurrent use.
type Locks struct {
	locks []*Lock // sorted by name, without duplicates
}

// during runs f while s is held, unless acquiring s failed with the error taken.
func (s *Locks) during(ctx context.Context, f func(ctx context.Context) error, taken error) (err error) {
	if taken != nil {
		return taken
	}
	defer func() {
		lost := s.each(func(k *Lock) error { return k.finish(ctx) })
		err = joinErrors(ofFunction(err), lost)
	}()
	return f(s.Context(ctx))
}

// takeAll implements LockAll and TryLockAll; of returns the shard of a name. All shards have the same defaults.
func takeAll(
	ctx context.Context, of func(name string) *shard, names []string, opts []LockOption, wait bool,
) (*Locks, error) {
	if len(names) == 0 {
		return nil, invalid("no names: LockAll needs one at least")
	}
	first := of(names[0])
	cfg, err := first.cfg.lock.with(opts, &first.cfg)
	if err != nil {
		return nil, err
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if err := of(name).checkName(name); err != nil {
			return nil, err
		}
		if wait && lease.OutOfOrder(ctx, of(name).leases, name) {
			return nil, &LockError{Op: "lock", Name: name, decided: errOrder}
		}
	}
	caller := ctx
	ctx, cancel := cfg.limited(caller)
	defer cancel()
	// ctx carries the wait limit. While the call waits for some names, held ones are extended, without a maximum hold.
	opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) { c.waitLimit = 0 }), WithExtension(true),
		WithMaxHold(0), WithLinger(0))
	for {
		locks, err := multilock.Acquire(len(names), wait, &multilock.Source[*Lock]{
			Try:     func(i int) (*Lock, error) { return of(names[i]).take(ctx, names[i], scripts.Plain, opts, false) },
			Wait:    func(i int) (*Lock, error) { return of(names[i]).take(ctx, names[i], scripts.Plain, opts, true) },
			Held:    func(k *Lock) bool { return k.Remaining() > 0 },
			Release: dropAll,
		})
		if err != nil {
			return nil, waited(caller, ctx, err)
		}
		s := &Locks{locks}
		if err = s.settle(ctx, cfg); err == nil {
			return s, nil
		}
		dropAll(locks)
		if !wait || ctx.Err() != nil {
			return nil, waited(caller, ctx, err)
		}
		select {
		case <-time.After(defaultDelays.Fixed):
		case <-ctx.Done():
		}
	}
}

// settle extends those locks that lack the required validity, when all locks are held, and applies the extension and
// the maximum hold of the caller's options. It fails if one of the locks cannot be extended.
func (s *Locks) settle(ctx context.Context, cfg *lockConfig) error {
	err := s.each(func(k *Lock) error {
		if k.hold.HasLeft(cfg.Least) {
			return nil
		}
		return k.extend(ctx)
	})
	if err != nil {
		return err
	}
	for _, k := range s.locks {
		k.hold.Settle(&cfg.Terms)
		if !k.hold.HasLeft(cfg.Least) {
			return &LockError{Op: "lock", Name: k.Name(), decided: errTooSlow}
		}
	}
	return nil
}

// dropAll releases locks with an ended context, so it hardly waits.
func dropAll(locks []*Lock) {
	for _, k := range locks {
		k.hold.Forgo()
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = (&Locks{locks}).Unlock(over)
}

// Context returns a copy of parent that ends when the first of the locks ends, with the cause of that lock, and that
// owns all the names. See [Lock.Context].
func (s *Locks) Context(parent context.Context) context.Context {
	handles := make([]*lease.Hold, len(s.locks))
	for i, k := range s.locks {
		handles[i] = &k.hold
	}
	return lease.Owning(parent, handles, true)
}

// Unlock releases all the locks at once: see [Lock.Unlock]. It joins their errors.
func (s *Locks) Unlock(ctx context.Context) error {
	if s == nil {
		return errNoLock
	}
	return s.each(func(k *Lock) error { return k.Unlock(ctx) })
}

func (s *Locks) each(f func(*Lock) error) error {
	errs := make([]error, len(s.locks))
	var wg sync.WaitGroup
	for i, k := range s.locks {
		wg.Go(func() { errs[i] = f(k) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
