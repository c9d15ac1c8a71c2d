package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/several"
)

// ErrOrder: the context holds several names by [Locker.LockAll], and the name that it asks for comes before one of
// them. Two programs that lock in different orders could wait for each other for ever, so nothing was sent. Lock all
// the names by one LockAll, or use TryLock, which does not wait.
var ErrOrder = errors.New("redlock: the name comes before one that this context holds by LockAll, " +
	"so waiting for it could deadlock: lock all of them by one LockAll, or use TryLock")

// Locks are the locks of several names that were taken as one. All methods are safe for concurrent use.
type Locks struct {
	locks []*Lock // by name, each once
}

// LockAll takes the locks of all names, or none. It waits as [Locker.Lock] does, and returns when all of them are held
// at once. Programs that lock the same names in whatever order never wait for each other in a circle: names are sorted,
// and whoever waits for one holds only names before it.
//
// All names are asked for at once. Where some are refused, those before the first of them are kept, the others are
// released, and that one is waited for; then the rest is asked for again. Repeated names count once. Names that ctx
// owns are re-entered. Within a context of [Locks.Context] a name that comes before the last of those Locks is
// [ErrOrder], for Lock as well.
//
// The options apply to each name, the wait limit to all together; the longest hold counts from when all are held.
// Errors are those of Lock; its LockError names the one name that could not be had. On failure nothing is held, as with
// Lock.
func (l *Locker) LockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return takeAll(ctx, l.only, names, opts, true)
}

// TryLockAll takes the locks of all names in one attempt each, or none, and does not wait for other holders. Errors are
// those of [Locker.TryLock] for the first name that was refused.
func (l *Locker) TryLockAll(ctx context.Context, names []string, opts ...LockOption) (*Locks, error) {
	return takeAll(ctx, l.only, names, opts, false)
}

// DoAll runs f while holding the locks of all names, as [Locker.Do] does for one. [TokenFor] tells the token of each.
func (l *Locker) DoAll(
	ctx context.Context, names []string, f func(ctx context.Context) error, opts ...LockOption,
) error {
	locks, err := l.LockAll(ctx, names, opts...)
	return locks.during(ctx, f, err)
}

// only is the Locker of every name.
func (l *Locker) only(string) *Locker { return l }

// during runs f while s is held, where taken, the error of taking it, is nil.
func (s *Locks) during(ctx context.Context, f func(ctx context.Context) error, taken error) (err error) {
	if taken != nil {
		return taken
	}
	defer func() {
		lost := s.each(func(k *Lock) error { return k.finish(ctx) })
		err = errors.Join(ofFunction(err), lost)
	}()
	return f(s.Context(ctx))
}

// takeAll is LockAll and TryLockAll; of is the Locker of a name. The Lockers share their defaults.
func takeAll(
	ctx context.Context, of func(name string) *Locker, names []string, opts []LockOption, wait bool,
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
		if wait && grant.OutOfOrder(ctx, of(name).grants, name) {
			return nil, &LockError{Op: "lock", Name: name, Decision: ErrOrder}
		}
	}
	caller := ctx
	ctx, cancel := cfg.limited(caller)
	defer cancel()
	// The wait limit is that of ctx. While some are waited for, those that are held are extended, without a longest hold.
	opts = append(slices.Clip(opts), WithWaitLimit(0), WithExtension(true), WithMaxHold(0))
	for {
		locks, err := several.Take(len(names), wait, &several.Source[*Lock]{
			Try:  func(i int) (*Lock, error) { return of(names[i]).TryLock(ctx, names[i], opts...) },
			Wait: func(i int) (*Lock, error) { return of(names[i]).Lock(ctx, names[i], opts...) },
			Good: func(k *Lock) bool { return k.Remaining() > 0 },
			Drop: dropAll,
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
		case <-time.After(DefaultDelays.Fixed):
		case <-ctx.Done():
		}
	}
}

// settle is called when all are held, some of them for a while: each is to have the wanted validity, and from now on
// the extension and the longest hold that the caller asked for. An error means that one of them cannot.
func (s *Locks) settle(ctx context.Context, cfg *lockConfig) error {
	err := s.each(func(k *Lock) error {
		if k.good(cfg) {
			return nil
		}
		return k.extend(ctx)
	})
	if err != nil {
		return err
	}
	for _, k := range s.locks {
		k.handle.Settle(&cfg.Terms)
		if !k.good(cfg) {
			return &LockError{Op: "lock", Name: k.Name(), Decision: ErrTooSlow}
		}
	}
	return nil
}

// dropAll releases locks at once, as a call does whose context has ended: it hardly waits.
func dropAll(locks []*Lock) {
	for _, k := range locks {
		k.handle.Forgo()
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = (&Locks{locks}).Unlock(over)
}

// Names are the names that are locked, sorted.
func (s *Locks) Names() []string {
	names := make([]string, len(s.locks))
	for i, k := range s.locks {
		names[i] = k.Name()
	}
	return names
}

// Of is the lock of one of the names; nil for another name. Unlocked by itself it ends the context of all.
func (s *Locks) Of(name string) *Lock {
	if i := slices.Index(s.Names(), name); i >= 0 {
		return s.locks[i]
	}
	return nil
}

// Token is the fencing token of one of the names: see [Lock.Token]. It is 0 for another name.
func (s *Locks) Token(name string) int64 {
	if k := s.Of(name); k != nil {
		return k.Token()
	}
	return 0
}

// Context returns a copy of parent that ends when the first of the locks ends, with its cause, and that owns all the
// names. See [Lock.Context].
func (s *Locks) Context(parent context.Context) context.Context {
	handles := make([]*grant.Handle, len(s.locks))
	for i, k := range s.locks {
		handles[i] = &k.handle
	}
	return grant.Owning(parent, handles, true)
}

// Err is nil while all the locks are held, and afterwards why the first of them by name that has ended did. It compares
// with the clocks when it is called.
func (s *Locks) Err() error {
	for _, k := range s.locks {
		if err := k.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Remaining is the least validity left of all; not positive where one has ended.
func (s *Locks) Remaining() time.Duration {
	left := s.locks[0].Remaining()
	for _, k := range s.locks[1:] {
		left = min(left, k.Remaining())
	}
	return left
}

// Extend prolongs all the locks at once: see [Lock.Extend]. The errors of those that could not be are joined.
func (s *Locks) Extend(ctx context.Context) error {
	return s.each(func(k *Lock) error { return k.Extend(ctx) })
}

// Unlock releases all the locks at once: see [Lock.Unlock]. The errors of each are joined.
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
