package redlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
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
	//mutant:outer-loss = false
	case !errors.Is(cause, ErrReleased):
		return lockError("do", k.Name(), cause)
	case errors.As(err, &e) && errors.Is(e.failure.Decision, ErrLost): // the masters had lost the lock
		e.Op = "do"
		return e
	case err != nil:
		k.l.events.Log(slog.LevelWarn, "redlock: release not confirmed, resending in the background",
			slog.String("lock", k.Name()), slog.Int64("token", k.Token()), slog.Any("error", err))
	}
	//mutant:unconfirmed-release = err
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

// ofFunction returns err, the error of the function of a Do, as the Do returns it.
func ofFunction(err error) error {
	var e *LockError
	if errors.As(err, &e) || isOwn(err) {
		//mutant:inner-errors = err
		return &functionError{err}
	}
	return err
}

// A functionError is an error of the function of a Do that wraps errors of this package. Those errors are about other
// locks. errors.Is and errors.As do not find them, so that they are not mistaken for errors of the lock of the Do.
type functionError struct{ err error }

// Error returns the text of the function's error.
func (e *functionError) Error() string { return e.err.Error() }

// Is reports whether the error wraps target. It returns false for targets that are errors of this package.
func (e *functionError) Is(target error) bool { return !isOwn(target) && errors.Is(e.err, target) }

// As finds targets that are not errors of this package.
func (e *functionError) As(target any) bool {
	switch target.(type) {
	case **LockError, **transport.Error:
		return false
	}
	return errors.As(e.err, target)
}

// isOwn reports whether err is or wraps an error of this package. Errors of a context do not count.
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

// do implements Do and TryDo of Locker, and Do and DoRead of RWLock. take acquires the lock.
func (l *shard) do(
	ctx context.Context, name string, take func(ctx context.Context) (*Lock, error),
	f func(ctx context.Context, lock *Lock) error,
) error {
	if err := l.beginWork(ctx, "do", name); err != nil {
		return err
	}
	defer l.endWork()
	ctx = l.events.within(ctx, name)
	run := func(*tracedCall) error {
		lock, err := take(ctx)
		if err != nil {
			return err
		}
		err, lost := during(ctx, lock, f)
		return joinErrors(ofFunction(err), lost)
	}
	if l.cfg.trace.Event == nil {
		return run(nil)
	}
	return l.events.call(ctx, "do", name, run)
}

// leadPause is the minimum pause after a leader has failed; the maximum is twice as long. The actual pause is random.
const leadPause = time.Second

// Lead campaigns for the leadership of name, which is the lock of that name, and runs f while this client leads. The
// context of f ends when the leadership is lost, before another client can lead. The token of the leadership is that of
// lock.
//
//   - If f returns nil while this client leads, Lead gives up the leadership and returns nil.
//   - If f returns an error, Lead gives up the leadership, logs the error as a warning, and campaigns again after a
//     pause of one to two seconds.
//   - If the leadership was lost before f returned, Lead campaigns again after such a pause, regardless of what f
//     returns.
//   - If f panics, Lead gives up the leadership, and the panic continues.
//   - If f does not return when its context ends, another client may lead while Lead waits for f. In that time only the
//     token can stop the writes of f.
//
// If the leading client dies, or is stopped for longer than the TTL, another client can lead. When a stopped client
// resumes, its first call of Err reports the loss. While no quorum of masters can be reached, no client leads, and Lead
// continues to campaign.
//
// Lead campaigns until ctx ends. It returns the error of ctx once ctx has ended and f has returned, [ErrClosed] after
// Close, and immediately ErrInvalid or ErrTTLTooLong. If ctx owns the name by a lock that has ended, Lead returns the
// reason of that end. opts are those of Lock, and [WithWaitLimit] has no effect; when the tries of [WithRetry] are used
// up, Lead campaigns again after such a pause.
func (l *Locker) Lead(
	ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) {
		c.Long, c.waitLimit = true, min(0, c.waitLimit) // check still refuses an invalid limit
	}))
	s := l.of(name)
	if err := s.beginWork(ctx, opOf(scripts.Plain, true), name); err != nil {
		return err
	}
	defer s.endWork()
	for {
		lock, err := l.take(ctx, name, opts, true)
		if err == nil {
			var lost error
			err, lost = during(ctx, lock, f)
			switch {
			case errors.Is(lost, ErrClosed):
				return ErrClosed
			//mutant:lost-leader 2= true
			case err == nil && lost == nil:
				return nil
			//mutant:shutdown-no-failure = false
			case ctx.Err() != nil:
				return joinErrors(contextError(ctx), err)
			}
			lock.l.logTerm(lock, err, lost)
		} else if own := l.owner(ctx, name, opts); own != nil && own.Err() != nil || !mayCampaign(err) {
			return err // for example, ctx owns the name by a lock that has ended, so another try must fail
		}
		select {
		case <-time.After(leadPause + time.Duration(jitter.Float64()*float64(leadPause))):
		case <-ctx.Done():
			return joinErrors(contextError(ctx), err)
		case <-s.closing:
			return ErrClosed
		}
	}
}

// mayCampaign reports whether another campaign may succeed after one that failed with err: other clients or too few
// masters refused the lock, or it was lost before the call returned. Otherwise a context or Close has ended the
// campaign, or the call is wrong.
func mayCampaign(err error) bool {
	var e *LockError
	return errors.As(err, &e) && e.failure.Cause == nil && (round.Waitable(&e.failure) || errors.Is(err, ErrLost))
}

// logTerm logs why a leader campaigns again: f failed with err, or the leadership was lost.
func (l *shard) logTerm(k *Lock, err, lost error) {
	level, text := slog.LevelWarn, "redlock: leader function failed, campaigning again"
	attrs := []slog.Attr{slog.String("lock", k.Name()), slog.Int64("token", k.Token())}
	switch {
	case errors.Is(lost, ErrMaxHold): // requested by WithMaxHold
		level, text = slog.LevelInfo, "redlock: leadership ended at its max hold, campaigning again"
	case lost != nil:
		text = "redlock: leadership was lost, campaigning again"
		attrs = append(attrs, slog.String("reason", plain(lost)))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	l.events.Log(level, text, attrs...)
}

// watchPause is the interval between two inspections of a Watch.
const watchPause = time.Second

// Watch reports the holder or leader of name: immediately, and then whenever the holder or its value ([Lock.SetValue])
// changes. Without a holder, the ID is "", and Free shows whether that is certain. Watch inspects the name once a
// second and does not compete for the lock. If inspections fail, Watch reports the first error, and nothing more until
// an inspection succeeds. Watch ends when ctx ends, when the Locker is closed, or when the loop ends:
//
//	for h, err := range locker.Watch(ctx, "orders/leader") { ... }
//
// Reports are at least a round trip old: they are for people and monitoring, and must not be used to decide whether
// something is safe to do.
func (l *Locker) Watch(ctx context.Context, name string) iter.Seq2[redlockinfo.Inspection, error] {
	return func(yield func(redlockinfo.Inspection, error) bool) {
		reported, failing := false, false
		type report struct {
			id, value string
			free      bool
		}
		for last := (report{}); ; {
			h, err := l.Inspect(ctx, name)
			switch {
			case ctx.Err() != nil || errors.Is(err, ErrClosed):
				return
			case err != nil && !failing, err == nil && (!reported || failing || last != report{h.ID, h.Value, h.Free}):
				if !yield(h, err) {
					return
				}
				last, reported, failing = report{h.ID, h.Value, h.Free}, true, err != nil
			}
			if l.of(name).rest(ctx, watchPause) != nil {
				return
			}
		}
	}
}
