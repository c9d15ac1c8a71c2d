package redlock

import (
	"context"
	"errors"
	"fmt"
)

// A held is a Lock or Locks, which during releases.
type held interface {
	Context(parent context.Context) context.Context
	finish(ctx context.Context) error
}

// during runs f while k is held, and then releases k. err is the error of f; lost is the reason if k ended before f
// returned.
func during[K held](ctx context.Context, k K, f func(ctx context.Context, k K) error) (err, lost error) {
	defer func() { lost = k.finish(ctx) }()
	return f(k.Context(ctx), k), nil
}

// finish releases k. It returns nil, or the reason if k was lost or closed earlier. If f has unlocked or exported k,
// finish does nothing. A release that no quorum confirmed in time is not an error: finish logs it, and the pool
// delivers it in the background.
func (k *Lock) finish(ctx context.Context) error {
	if err := k.Err(); errors.Is(err, ErrReleased) || errors.Is(err, ErrExported) {
		return nil
	}
	err := k.Unlock(ctx)
	var e *LockError
	switch cause := k.Err(); {
	case !errors.Is(cause, ErrReleased):
		return lockError("do", k.Name(), cause)
	case errors.As(err, &e) && errors.Is(e.failure.Decision, ErrLost): // the masters had lost the lock
		e.Op = "do"
		return e
	case err != nil:
		k.l.journal.unconfirmed(k, err)
	}
	return nil
}

// joinErrors joins errors like errors.Join, but its text has one line.
func joinErrors(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// do implements Do and TryDo of Locker, and Do and DoRead of RWLock. take acquires the lock.
func (l *shard) do(
	ctx context.Context, name string, take func(ctx context.Context) (*Lock, error),
	f func(ctx context.Context, lock *Lock) error,
) error {
	if err := l.beginWork(ctx, "do", name); err != nil {
		return notRun(err)
	}
	defer l.endWork()
	ctx = l.events.within(ctx, name)
	run := func(c *tracedCall) error {
		lock, err := take(ctx)
		if err != nil {
			return notRun(err)
		}
		if c != nil {
			c.Token = lock.Token()
		}
		return afterRun(during(ctx, lock, f))
	}
	if l.cfg.trace.Event == nil {
		return run(nil)
	}
	return l.events.call(ctx, "do", name, run)
}
