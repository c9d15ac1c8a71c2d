package waitqueue

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// A sharedAttempt is one round, or a few, of a call that does not queue. Such calls of one Locker for one name share
// attempts, so that any number of calls costs the masters one round at a time. A refusal is a result for each call that
// has seen no later attempt; each call then has its own pauses and its own limit.
type sharedAttempt struct {
	number uint64 // number of the attempt in the order of attempts
	terms  *lease.Terms
	done   chan struct{}
	// The result; set before done is closed. Without a failure, the other calls make attempts of their own.
	failure *round.Failure
	round   *round.Round // the last round; nil: nothing was sent
}

// trials are the calls for one name that do not queue. They are guarded by Queue.mu.
type trials struct {
	calls  int            // number of calls; when it reaches 0, the trials are removed from Queue.trials
	latest *sharedAttempt // nil: there was none
}

// A trial is one call that does not queue.
type trial struct {
	q    *Queue
	name string
	of   *trials
	seen uint64 // number of the last attempt whose result the call knows, or that began before the call
}

// joinTrial begins a call.
func (q *Queue) joinTrial(name string) *trial {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &trial{q: q, name: name, of: q.trials[name], seen: q.attempts}
	if t.of == nil {
		t.of = &trials{}
		q.trials[name] = t.of
	}
	t.of.calls++
	return t
}

// leave ends the call.
func (t *trial) leave() {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.of.calls--; t.of.calls == 0 {
		delete(t.q.trials, t.name)
	}
}

// share returns the refusal of an attempt that the call has not seen yet, unless the refusal depends on terms that
// differ. If no other call has made such an attempt, the call itself makes one. It never makes an attempt while another
// is under way, which may wait for its turn for longer than the call: Patience also bounds the wait for that attempt.
func (t *trial) share(ctx context.Context, a *lease.Attempt, h *lease.Hold) (*round.Round, error) {
	q, began := t.q, time.Now()
	var impatient <-chan time.Time
	q.mu.Lock()
	for {
		at := t.of.latest
		if at == nil || at.number <= t.seen && at.over() {
			break
		}
		q.mu.Unlock()
		if impatient == nil && a.Patience > 0 {
			impatient = time.After(a.Patience)
		}
		select {
		case <-at.done:
		case <-impatient:
			return nil, &round.Failure{Decision: round.ErrOverloaded, Left: -1}
		case <-ctx.Done():
			return nil, &round.Failure{Cause: fault.ContextError(ctx), Left: -1}
		case <-q.Manager.Closing:
			return nil, &round.Failure{Cause: lease.ErrClosed, Left: -1}
		}
		if at.number > t.seen {
			t.seen = at.number
			if at.failure != nil && (*at.terms == *a.Terms || !ofTerms(at.failure)) {
				return at.round, at.failure
			}
		}
		q.mu.Lock()
	}
	q.attempts++
	at := &sharedAttempt{number: q.attempts, terms: a.Terms, done: make(chan struct{})}
	t.of.latest, t.seen = at, at.number
	q.mu.Unlock()
	defer close(at.done)
	if err := q.heldHere(t.name); err != nil {
		return nil, err
	}
	own := *a
	if own.Patience > 0 {
		own.Patience = max(own.Patience-time.Since(began), 1)
	}
	l, r, err := q.Manager.Acquire(ctx, &own)
	if err == nil {
		return r, q.Start(l, h, a.Terms)
	}
	if f, ok := round.AsFailure(err); ok && f.Cause == nil {
		at.failure, at.round = f, r
	}
	return r, err
}

// over reports whether the attempt has its result.
func (a *sharedAttempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// ofTerms reports whether a refusal depends on the terms of the call.
func ofTerms(f *round.Failure) bool {
	return errors.Is(f.Decision, round.ErrTooSlow) || errors.Is(f.Decision, round.ErrTTLTooLong)
}
