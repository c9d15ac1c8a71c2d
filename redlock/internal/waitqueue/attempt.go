package waitqueue

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// An attempt is one try of a call that does not queue. Such calls of one Locker for one name share attempts, so that
// any number of calls costs the masters one round at a time.
type attempt struct {
	number uint64 // number of the attempt in the order of attempts
	terms  *lease.Terms
	done   chan struct{}
	err    error // the result of all calls that share the attempt; nil: they try again; set before done is closed
}

// Share runs try for a call that does not queue, or waits for another call of this Locker that tries the same name. If
// the attempt of the other call began after the call of Share, and is refused, the refusal is also the result of this
// call, unless it depends on terms that differ.
func (q *Queue) Share(ctx context.Context, name string, terms *lease.Terms, try func() error) error {
	q.mu.Lock()
	before := q.attempts
	for {
		a := q.trying[name]
		//mutant:shared-attempts = true
		if a == nil {
			break
		}
		q.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			return &round.Failure{Cause: fault.ContextError(ctx), Left: -1}
		case <-q.Manager.Closing:
			return &round.Failure{Cause: lease.ErrClosed, Left: -1}
		}
		if a.number > before && a.err != nil && (*a.terms == *terms || !ofTerms(a.err)) {
			return a.err
		}
		q.mu.Lock()
	}
	q.attempts++
	a := &attempt{number: q.attempts, terms: terms, done: make(chan struct{})}
	q.trying[name] = a
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.trying, name)
		q.mu.Unlock()
		close(a.done)
	}()
	err := try()
	if f, ok := round.AsFailure(err); ok && f.Cause == nil {
		a.err = err
	}
	return err
}

// ofTerms reports whether a refusal depends on the terms of the call.
func ofTerms(err error) bool {
	f, ok := round.AsFailure(err)
	return ok && (errors.Is(f.Decision, round.ErrTooSlow) || errors.Is(f.Decision, round.ErrTTLTooLong))
}
