package redlock

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// leadPause is the minimum pause after a leader has failed; the maximum is twice as long. The actual pause is random.
const leadPause = time.Second

// Lead campaigns for the leadership of name, which is the lock of that name, and runs f while this client leads. The
// context of f ends when the leadership is lost, before another client can lead. lock is the leadership: its token goes
// with each write, and its value ([Lock.SetValue]) shows the leader to other clients.
//
//   - If f returns nil while this client leads, the work is finished: Lead gives up the leadership and returns nil.
//   - If f returns an error, Lead gives up the leadership, logs the error, and campaigns again after a pause of one to
//     two seconds. The record is a warning, unless another client has requested the release ([Lock.ReleaseRequested]).
//   - If the leadership was lost or has reached its [WithMaxHold] before f returned, Lead campaigns again after such a
//     pause, regardless of what f returns.
//   - If f panics, Lead gives up the leadership, and the panic continues.
//   - If f does not return when its context ends, another client may lead while Lead waits for f. In that time only the
//     token can stop the writes of f.
//
// If the leading client dies, or is stopped for longer than the TTL, another client can lead. When a stopped client
// resumes, its first call of Err reports the loss. While no quorum of masters can be reached, no client leads, and Lead
// continues to campaign.
//
// Lead campaigns until ctx ends. Then it waits for f, and returns the error of ctx, or nil if f has returned nil while
// this client led. It returns [ErrClosed] after Close, and immediately an error that another try cannot change, such as
// ErrInvalid, ErrTTLTooLong or ErrKind. If ctx owns the name by a lock that has ended, Lead returns the reason of that
// end. opts are those of Lock; [WithWaitLimit] has no effect, and when the tries of [WithTries] are used up, Lead
// campaigns again after such a pause.
func (l *Locker) Lead(
	ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, opts ...LockOption,
) error {
	if f == nil {
		return notRun(noFunction(name))
	}
	opts = append(slices.Clip(opts), ofLock(func(s *client.Settings) {
		s.HoldWarning = 0
		s.WaitLimit, s.QuorumWait = min(0, s.WaitLimit), min(0, s.QuorumWait) // invalid limits are still refused
	}))
	ran, err, why := l.request(name, opts, true).campaign(ctx, f)
	if !ran {
		return notRun(client.Join(why, err))
	}
	return afterRun(err, why)
}

// campaign implements Lead, with the options for a leader. It reports whether f was called, and returns the error of
// the last leadership or campaign, and why Lead ended.
func (r request) campaign(
	ctx context.Context, f func(ctx context.Context, lock *Lock) error,
) (ran bool, err, why error) {
	if err := r.client.Begin(ctx, r.Op, r.Name); err != nil {
		return false, nil, err
	}
	defer r.client.End()
	for {
		lock, err := r.acquire(ctx)
		if err == nil {
			var lost error
			ran = true
			level := slog.LevelWarn
			err, lost = during(ctx, lock, func(ctx context.Context, lock *Lock) error {
				err := f(ctx, lock)
				if err != nil && requested(lock) {
					level = slog.LevelInfo
				}
				return err
			})
			switch {
			case errors.Is(lost, ErrClosed):
				return true, err, lease.ErrClosed
			case err == nil && lost == nil:
				return true, nil, nil
			case ctx.Err() != nil:
				return true, otherThan(ctx, err), fault.ContextError(ctx)
			}
			r.logTerm(level, lock, err, lost)
		} else if r.client.Ended(ctx, r.Name) || !mayCampaign(err) {
			return ran, nil, err // for example, ctx owns the name by a lock that has ended, so another try must fail
		}
		pause := leadPause + time.Duration(jitter.Float64()*float64(leadPause))
		switch ended := r.client.Rest(ctx, pause); {
		case errors.Is(ended, ErrClosed):
			return ran, err, ended
		case ended != nil:
			return ran, otherThan(ctx, err), ended
		}
	}
}

// otherThan returns err, the error of the last leadership or campaign of a Lead whose ctx has ended, or nil if err is
// only the error or the cause of ctx.
func otherThan(ctx context.Context, err error) error {
	if errors.Is(fault.ContextError(ctx), err) {
		return nil
	}
	return err
}

// mayCampaign reports whether another campaign may succeed after one that failed with err: other clients or too few
// masters refused the lock, or it was lost before the call returned. Otherwise a context or Close has ended the
// campaign, or the call is wrong.
func mayCampaign(err error) bool {
	var e *LockError
	return errors.As(err, &e) && e.err.Failure.Cause == nil && (round.Waitable(&e.err.Failure) || errors.Is(err, ErrLost))
}

// requested reports whether another client has requested the release of k.
func requested(k *Lock) bool {
	select {
	case <-k.ReleaseRequested():
		return true
	default:
		return false
	}
}

// logTerm logs why a leader campaigns again: it resigned because f returned err, or the leadership was lost. level is
// that of a resignation.
func (r request) logTerm(level slog.Level, k *Lock, err, lost error) {
	text := "redlock: leader resigned, because its function returned an error; campaigning again"
	attrs := []slog.Attr{slog.String("lock", k.Name()), slog.Int64("token", k.Token())}
	switch {
	case errors.Is(lost, ErrMaxHold): // requested by WithMaxHold
		level, text = slog.LevelInfo, "redlock: leadership ended at its max hold, campaigning again"
	case lost != nil:
		level, text = slog.LevelWarn, "redlock: leadership was lost, campaigning again"
		attrs = append(attrs, slog.String("reason", client.Shortened(client.Plain(lost))))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", client.Shortened(err.Error())))
	}
	r.client.Log(level, text, attrs...)
}
