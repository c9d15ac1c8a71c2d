package redlock

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// ErrUpgrade: the context holds a reader's lock of the name, and asks for the writer's. It would wait for itself: for
// ever, where two readers do so. Nothing was sent. Unlock the reader's lock first, and look again at what was read; or
// take the writer's lock from the start, and [Lock.Downgrade] it.
var ErrUpgrade = errors.New("redlock: this context holds a reader's lock of the name, and a reader cannot become the " +
	"writer: it would wait for itself; unlock it first, or begin as the writer and use Downgrade")

// ErrKind: the name is used as the other kind of lock, or a program other than this library has written its keys. A
// name has either plain locks (Lock, TryLock, Do, LockAll, Lead) or readers and writers ([Locker.Shared]). The call
// ends at once. It is a way of having no quorum: errors.Is(err, ErrNoQuorum) is true as well.
var ErrKind = round.ErrKind

// A Shared is a name that any number of readers hold at once, or one writer alone. Each of their locks is a [Lock] of
// its own, with its own validity, extension, repair, loss and release: a reader that dies keeps writers out for one TTL
// at the most, and other readers not at all.
//
// Who comes first is first: a reader that comes after a waiting writer waits behind it, so readers never starve
// writers. The queue is that of the masters, by priority and time of the call, also among the calls of one Locker.
// Nothing is handed on within a Locker.
//
// A writer's token is larger than those of all readers and writers before it. A reader's token is larger than those of
// all writers before it, and smaller than those of all writers after it: a resource that keeps the largest token of a
// writer can refuse what a reader brings that comes from before. Tokens of readers that hold the name at the same time
// are in no order, and may be equal.
//
// A master that is full (maxmemory) extends no lock of a Shared, unlike plain ones; while a majority is full, those
// end.
//
// The methods take the options of Lock, except [WithMinHold], which is refused; [WithFair] changes nothing. A Shared is
// safe for concurrent use.
type Shared struct {
	l    *Locker
	name string
}

// Shared is the lock of name with readers and a writer. It sends nothing; the name is checked by the calls.
func (l *Locker) Shared(name string) *Shared { return &Shared{l, name} }

// Name is the name.
func (s *Shared) Name() string { return s.name }

// RLock takes the lock of a reader. It waits while a writer holds the name, and behind those that came before. With a
// context of [Lock.Context] that owns the name it re-enters: also that of a writer, which may read. Otherwise it is as
// [Locker.Lock], with its errors, and [ErrKind] where the name has plain locks.
func (s *Shared) RLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.l.take(ctx, s.name, scripts.Reader, opts, true)
}

// TryRLock takes the lock of a reader in one attempt, as [Locker.TryLock] does: it gets it only where no writer holds
// the name and nobody waits for it.
func (s *Shared) TryRLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.l.take(ctx, s.name, scripts.Reader, opts, false)
}

// DoRead runs f while holding the lock of a reader, as [Locker.Do] does.
func (s *Shared) DoRead(ctx context.Context, f func(ctx context.Context) error, opts ...LockOption) error {
	return s.l.do(ctx, s.name, scripts.Reader, f, opts)
}

// Lock takes the lock of the writer. It waits while anybody holds the name. With a context that owns a reader's lock it
// is [ErrUpgrade], with that of the writer it re-enters. Otherwise it is as [Locker.Lock].
func (s *Shared) Lock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.l.take(ctx, s.name, scripts.Writer, opts, true)
}

// TryLock takes the lock of the writer in one attempt, as [Locker.TryLock] does.
func (s *Shared) TryLock(ctx context.Context, opts ...LockOption) (*Lock, error) {
	return s.l.take(ctx, s.name, scripts.Writer, opts, false)
}

// Do runs f while holding the lock of the writer, as [Locker.Do] does.
func (s *Shared) Do(ctx context.Context, f func(ctx context.Context) error, opts ...LockOption) error {
	return s.l.do(ctx, s.name, scripts.Writer, f, opts)
}

// Downgrade makes the writer's lock of a [Shared] a reader's, without a gap in which another writer could come: on each
// master the reader's share begins as the writer's ends. Other readers are let in from then on. The lock k ends first,
// with its contexts, as by Unlock (ErrReleased); the reader's lock has a larger token and contexts of its own, and what
// the options say.
//
// It tries until a majority has said yes, ctx ends, or the tries are used up, as [Locker.Import] does, and needs a
// majority that still has the writer's lock: else it is ErrLost. A lock that was entered more than once goes on, and so
// does one that is not the writer's: both are ErrInvalidOption. After any other error nothing is held.
func (k *Lock) Downgrade(ctx context.Context, opts ...LockOption) (*Lock, error) {
	if k == nil {
		return nil, errNoLock
	}
	if k.l.cfg.trace.Call == nil {
		return k.downgrade(ctx, opts, nil)
	}
	return k.l.events.acquiring(ctx, "downgrade", k.Name(), func(c *grant.Course) (*Lock, error) {
		return k.downgrade(ctx, opts, c)
	})
}

// downgrade is Downgrade without its trace.
func (k *Lock) downgrade(ctx context.Context, opts []LockOption, course *grant.Course) (*Lock, error) {
	l, name := k.l, k.Name()
	if k.handle.Grant().Role() != scripts.Writer {
		return nil, invalid("downgrade %.80q: it is not the lock of a writer (Shared.Lock)", name)
	}
	cfg, err := l.cfg.lock.with(opts, &l.cfg)
	if err == nil {
		cfg, err = cfg.shared()
	}
	if err != nil {
		return nil, err
	}
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	id, ballot, err := k.handle.Downgrade()
	switch {
	case errors.Is(err, grant.ErrNested):
		return nil, invalid("downgrade %.80q: %s", name, plain(err))
	case err != nil:
		return nil, &LockError{Op: "downgrade", Name: name, Decision: err}
	}
	reader := &Lock{l: l, keys: scripts.Prefix(l.cfg.prefix).KeysOf(name, scripts.Reader)}
	g := l.grants.NewImport(name, &reader.keys, id)
	g.Inherits(ballot)
	return l.importAs(ctx, "downgrade", exportedLock{name: name, id: id, token: ballot}, g, reader, cfg, course)
}

// shared is c for a lock of Shared.
func (c *lockConfig) shared() (*lockConfig, error) {
	if c.MinHold > 0 {
		return nil, invalid("a minimum hold of %v: a lock of Shared has none", c.MinHold)
	}
	changed := *c
	changed.HandOns = 0
	return &changed, nil
}

// mayEnter is why a context whose lock of a name is own must not ask for another one in this role; nil where it may.
func mayEnter(own *grant.Handle, role scripts.Role) error {
	if own == nil {
		return nil
	}
	switch has := own.Grant().Role(); {
	case (has == scripts.Plain) != (role == scripts.Plain):
		return ErrKind
	case has == scripts.Reader && role == scripts.Writer:
		return ErrUpgrade
	}
	return nil
}

// opOf is the name of a call that takes a lock.
func opOf(role scripts.Role, wait bool) string {
	op := "lock"
	if role == scripts.Reader {
		op = "rlock"
	}
	if !wait {
		op = "try " + op
	}
	return op
}
