package redlock

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// leadPause is the minimum pause of a failed leader; the maximum is twice as long, the length random.
const leadPause = time.Second

// lead implements [Locker.Lead].
func (l *Locker) lead(ctx context.Context, name string, f func(ctx context.Context) error, opts []LockOption) error {
	opts = append(slices.Clip(opts), lockOption(func(c *lockConfig) { c.Long = true }))
	for {
		lock, err := l.take(ctx, name, opts, true)
		if err == nil {
			var lost error
			err, lost = lock.term(ctx, f)
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
		} else if own := l.owner(ctx, name, opts); own != nil && own.Err() != nil ||
			!errors.Is(err, errTooSlow) && !errors.Is(err, ErrLost) {
			return err // also if ctx owns the name by a lock that has ended: ctx can never lock it again
		}
		select {
		case <-time.After(leadPause + time.Duration(jitter.Float64()*float64(leadPause))):
		case <-ctx.Done():
			return joinErrors(contextError(ctx), err)
		case <-l.of(name).closing:
			return ErrClosed
		}
	}
}

// term runs f while k, the leadership, is held. It returns the error of f and, if k ended before f returned, why.
func (k *Lock) term(ctx context.Context, f func(ctx context.Context) error) (err, lost error) {
	defer func() { lost = k.finish(ctx) }()
	return f(k.Context(ctx)), nil
}

// logTerm logs why a leader campaigns again: f failed with err, or the leadership was lost.
func (l *shard) logTerm(k *Lock, err, lost error) {
	level, text := slog.LevelWarn, "redlock: leader function failed, campaigning again"
	attrs := []slog.Attr{slog.String("lock", k.Name()), slog.Int64("token", k.Token())}
	switch {
	case errors.Is(lost, ErrMaxHold): // WithMaxHold requested it
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

// watchPause is the time between two inspections of a Watch.
const watchPause = time.Second

func watch(
	ctx context.Context, closing <-chan struct{}, inspect func() (redlockinfo.Inspection, error),
) iter.Seq2[redlockinfo.Inspection, error] {
	return func(yield func(redlockinfo.Inspection, error) bool) {
		reported, failing := false, false
		for last := [2]string{}; ; {
			h, err := inspect()
			switch {
			case ctx.Err() != nil || errors.Is(err, ErrClosed):
				return
			case err != nil && !failing, err == nil && (!reported || failing || last != [2]string{h.ID, h.Value}):
				if !yield(h, err) {
					return
				}
				last, reported, failing = [2]string{h.ID, h.Value}, true, err != nil
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
