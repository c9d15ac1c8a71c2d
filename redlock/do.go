package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redlock-go/redlock/internal/transport"
)

// during runs f while k is held, and releases k. It returns the error of f, joined with the loss of k if it ended
// before f returned.
func (k *Lock) during(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() { err = joinErrors(ofFunction(err), k.finish(ctx)) }()
	return f(k.Context(ctx))
}

// finish releases k and returns nil, or why k had ended before. A release that no quorum confirmed in time does not
// count as an error: the pool delivers it in the background, and finish logs it.
func (k *Lock) finish(ctx context.Context) error {
	err := k.Unlock(ctx)
	var e *LockError
	switch cause := k.Err(); {
	//mutant:outer-loss = false
	case !errors.Is(cause, ErrReleased):
		return &LockError{Op: "do", Name: k.Name(), decided: cause}
	case errors.As(err, &e) && errors.Is(e.decided, ErrLost): // the masters had lost it
		e.Op = "do"
		return e
	case err != nil:
		k.l.events.Log(slog.LevelWarn, "redlock: release not confirmed, resending in the background",
			slog.String("lock", k.Name()), slog.Int64("token", k.Token()), slog.Any("error", err))
	}
	//mutant:unconfirmed-release = err
	return nil
}

// joinErrors joins like errors.Join, with a text of one line.
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

// ofFunction returns the error of the function of a Do in the form in which Do returns it.
func ofFunction(err error) error {
	var e *LockError
	if errors.As(err, &e) || isOwn(err) {
		//mutant:inner-errors = err
		return &functionError{err}
	}
	return err
}

// A functionError is an error of the function of a Do that wraps errors of this package. Those are about other locks,
// so errors.Is and errors.As do not find them: otherwise they would be mistaken for errors of the lock of the Do.
type functionError struct{ err error }

// Error implements error.
func (e *functionError) Error() string { return e.err.Error() }

// Is reports whether the error is target, which is not of this package.
func (e *functionError) Is(target error) bool { return !isOwn(target) && errors.Is(e.err, target) }

// As finds an error that is not of this package.
func (e *functionError) As(target any) bool {
	switch target.(type) {
	case **LockError, **transport.Error:
		return false
	}
	return errors.As(e.err, target)
}

// isOwn reports whether err is or wraps an error of this package.
func isOwn(err error) bool {
	for _, o := range outcomes {
		if fromContext := errors.Is(o.err, context.DeadlineExceeded) || errors.Is(o.err, context.Canceled); fromContext {
			continue
		}
		if errors.Is(err, o.err) {
			return true
		}
	}
	return false
}

// do implements Do of Locker and RWLock; take acquires the lock.
func (l *shard) do(
	ctx context.Context, name string, take func(ctx context.Context) (*Lock, error), f func(ctx context.Context) error,
) error {
	ctx = l.events.within(ctx, name)
	if l.cfg.trace.Event == nil {
		return within(ctx, take, f)
	}
	return l.events.call(ctx, "do", name, func(*tracedCall) error { return within(ctx, take, f) })
}

// within implements do without its trace.
func within(
	ctx context.Context, take func(ctx context.Context) (*Lock, error), f func(ctx context.Context) error,
) error {
	lock, err := take(ctx)
	if err != nil {
		return err
	}
	return lock.during(ctx, f)
}
