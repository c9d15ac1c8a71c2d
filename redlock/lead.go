package redlock

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/redlock/internal/grant"
)

// leadPause is how long a leader that has failed stays away, and up to twice as long, by chance.
const leadPause = time.Second

// Lead campaigns for the leadership of name, which is the lock of that name, and runs f while it leads. The context
// that f gets ends when the leadership is lost, before another can lead; [TokenOf] tells its token.
//
//   - f returns nil while it leads: the leadership is given up, and Lead returns nil.
//   - f returns an error: the leadership is given up, and after a pause of one to two seconds Lead campaigns again. The
//     log has the error, as a warning.
//   - The leadership was lost before f returned: whatever f returns, Lead campaigns again after such a pause.
//   - f panics: the leadership is given up, and the panic goes on.
//   - f does not return when its context ends: another leads, and Lead waits for f. Only the token can stop what f
//     writes meanwhile.
//
// A program that dies, or is stopped for longer than the TTL, is followed by another; after it resumes, the first call
// of Err reports the loss. While no quorum of masters can be had nobody leads, and Lead goes on campaigning.
//
// It returns the error of ctx once that has ended and f has returned, [ErrClosed] after Close, and ErrInvalidOption or
// ErrGuardTime at once, and why the lock has ended by which ctx owns the name. opts are those of Lock; with [WithTries]
// it gives up after as many tries.
func (l *Locker) Lead(ctx context.Context, name string, f func(ctx context.Context) error, opts ...LockOption) error {
	for {
		lock, err := l.Lock(ctx, name, opts...)
		if err == nil {
			var lost error
			err, lost = lock.term(ctx, f)
			switch {
			case errors.Is(lost, ErrClosed):
				return ErrClosed
			case err == nil && lost == nil:
				return nil
			case ctx.Err() != nil:
				return errors.Join(contextError(ctx), err)
			}
			l.logTerm(lock, err, lost)
		} else if own := grant.Owner(ctx, l.grants, name); own != nil && own.Err() != nil ||
			!errors.Is(err, ErrTooSlow) && !errors.Is(err, ErrLost) {
			return err // also where ctx owns the name by a lock that has ended: it can never lock it again
		}
		select {
		case <-time.After(leadPause + time.Duration(jitter.Float64()*float64(leadPause))):
		case <-ctx.Done():
			return errors.Join(contextError(ctx), err)
		case <-l.closing:
			return ErrClosed
		}
	}
}

// term runs f while k, the leadership, is held. It returns the error of f, and why k ended before f returned.
func (k *Lock) term(ctx context.Context, f func(ctx context.Context) error) (err, lost error) {
	defer func() { lost = k.finish(ctx) }()
	return f(k.Context(ctx)), nil
}

// logTerm logs why a leader campaigns again: f has failed with err, or the leadership was lost.
func (l *Locker) logTerm(k *Lock, err, lost error) {
	level, text := slog.LevelWarn, "redlock: leader function failed, campaigning again"
	attrs := []slog.Attr{slog.String("lock", k.Name()), slog.Int64("token", k.Token())}
	switch {
	case errors.Is(lost, ErrMaxHold): // its limit was asked for
		level, text = slog.LevelInfo, "redlock: leadership ended at its longest hold, campaigning again"
	case lost != nil:
		text = "redlock: leadership was lost, campaigning again"
		attrs = append(attrs, slog.Any("cause", lost))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	l.events.Log(level, text, attrs...)
}

// watchPause is the time between two inspections of a Watch.
const watchPause = time.Second

// Watch tells who holds or leads name: at once, and then whenever another does, or nobody (ID is ""). It asks the
// masters once a second, and takes no part in the contest. Where they cannot be asked it tells the error, once until
// they can be. It ends with ctx, with the Locker, or with the loop:
//
//	for h, err := range locker.Watch(ctx, "orders/leader") { ... }
//
// What it tells is at least a round trip old: it is for people and monitoring, and must not be used to decide whether
// something is safe to do.
func (l *Locker) Watch(ctx context.Context, name string) iter.Seq2[Holder, error] {
	return watch(ctx, l.closing, func() (Holder, error) { return l.Inspect(ctx, name) })
}

func watch(ctx context.Context, closing <-chan struct{}, inspect func() (Holder, error)) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		told, failing := false, false
		for last := ""; ; {
			h, err := inspect()
			switch {
			case ctx.Err() != nil || errors.Is(err, ErrClosed):
				return
			case err != nil && !failing, err == nil && (!told || failing || h.ID != last):
				if !yield(h, err) {
					return
				}
				last, told, failing = h.ID, true, err != nil
			}
			select {
			case <-time.After(watchPause):
			case <-ctx.Done():
				return
			case <-closing:
				return
			}
		}
	}
}
