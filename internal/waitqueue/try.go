package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/jitter"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// The times of a call that does not wait for a holder, if the votes are split.
const (
	DefaultUndecided = 500 * time.Millisecond // how long the call tries again
	lateVotes        = 50 * time.Millisecond  // how long the call waits for missing votes after a lost round
	leastRound       = time.Millisecond       // minimum of the round trip, of which the pauses are multiples
)

// Try acquires a name for a call that does not wait for another holder. While the votes are split it tries again, after
// pauses that grow (see the package documentation), until limit has passed. If limit is 0, Try makes one attempt.
//
// h becomes the first hold of the lease. The calls of this Locker for one name share attempts: see attempt.go. A name
// that this Locker itself holds is refused without a message; if its lease lingers, h takes it over.
func (q *Queue) Try(ctx context.Context, a *lease.Attempt, h *lease.Hold, limit time.Duration) error {
	if l := q.takeIdle(a.Name, nil); l != nil && h.TakeOver(l, a.Terms) {
		return nil
	}
	if err := q.heldHere(a.Name); err != nil {
		return err
	}
	t := q.joinTrial(a.Name)
	defer t.leave()
	return q.try(ctx, limit, func() (*round.Round, error) { return t.share(ctx, a, h) })
}

// try calls attempt for Try until the votes decide, or limit has passed.
func (q *Queue) try(ctx context.Context, limit time.Duration, attempt func() (*round.Round, error)) error {
	began, last := time.Now(), error(nil)
	for n := 1; ; n++ {
		r, err := attempt()
		if f, _ := round.AsFailure(err); r == nil || f == nil || !undecided(f) {
			return WithLastFailure(last, err)
		}
		f := lateFailure(ctx, r, limit-time.Since(began))
		if !undecided(f) {
			return f
		}
		trips := float64(n - 1)
		if !r.Leads() {
			trips += 2 + 2*jitter.Float64()
		}
		pause := time.Duration(trips * float64(roundTrip(r)))
		if time.Since(began)+pause > limit {
			switch {
			case f.Lingers:
			case errors.Is(f.Decision, round.ErrHeld): // not ErrHeld, since the waiter may be dead, and nobody has the lock
				f = r.Failure(round.ErrReserved, nil)
			default:
				f = r.Failure(round.ErrUndecided, nil)
			}
			f.Again = max(pause, leastRound)
			return f
		}
		last = f
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return f.Ended(fault.ContextError(ctx))
		case <-q.Manager.Closing:
			return f.Ended(lease.ErrClosed)
		}
	}
}

// lateFailure waits for missing votes for up to lateVotes, and returns how the round failed according to all votes so
// far. If all votes name the same holder, lateFailure waits for up to limit, since the missing votes may show that this
// holder has a majority.
func lateFailure(ctx context.Context, r *round.Round, limit time.Duration) *round.Failure {
	wait := lateVotes
	if nameOneHolder(r) {
		wait = max(wait, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r.Complete(ctx)
	return r.Failure(r.Decision(), nil)
}

// nameOneHolder reports whether all votes so far, except failed ones, name the same holder.
func nameOneHolder(r *round.Round) bool {
	holder, one := "", true
	r.Each(func(_ int, v *round.Vote) {
		switch {
		case v.Outcome == quorum.Failed:
		case v.Outcome != quorum.Held || v.Free || holder != "" && v.Holder != holder:
			one = false
		default:
			holder = v.Holder
		}
	})
	return one && holder != ""
}

// roundTrip returns how long the slowest vote of a round took, but at least leastRound.
func roundTrip(r *round.Round) time.Duration {
	trip := leastRound
	r.Each(func(_ int, v *round.Vote) { trip = max(trip, v.After) })
	return trip
}

// undecided reports whether a call that does not wait for a holder tries again after f, because the name may have no
// holder: no lease has a majority, or the masters keep the name for a waiter, or the lease lingers.
func undecided(f *round.Failure) bool {
	return f.Cause == nil && (errors.Is(f.Decision, round.ErrUndecided) ||
		errors.Is(f.Decision, round.ErrHeld) && (f.Holder == "" || f.Lingers))
}

// WithLastFailure returns err. If err only says why the caller stopped waiting, WithLastFailure adds last, the failure
// of the last attempt.
func WithLastFailure(last, err error) error {
	now, ok := round.AsFailure(err)
	if before, failed := round.AsFailure(last); failed && ok && now.Decision == nil && now.Cause != nil {
		return before.Ended(now.Cause)
	}
	return err
}
