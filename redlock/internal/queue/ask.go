package queue

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// What all calls use that ask for a name, also those that do not wait in a queue: TryLock, and calls with a bound of
// the tries or a backoff of their own.

// asksAtOnce is how many asks may follow each other at once, while only their ballots are refused.
const asksAtOnce = 3

// Ask asks the masters for a grant. Where only the ballot was refused it asks again at once: up to three asks in all,
// each with an id and a block of ballots of its own.
func (q *Queue) Ask(ctx context.Context, a *grant.Ask) (*grant.Grant, *round.Round, error) {
	for try := 1; ; try++ {
		g, r, err := q.Keeper.Ask(ctx, a)
		if err == nil || r == nil || try == asksAtOnce || !Waitable(err) {
			return g, r, err
		}
		if t := r.Tally(); !t.BallotOnly() {
			return g, r, err
		}
	}
}

// Waitable reports whether a call that waits goes on after err.
func Waitable(err error) bool {
	f, ok := round.AsFailure(err)
	if !ok || f.Cause != nil || errors.Is(f.Decision, round.ErrKind) {
		return false
	}
	return errors.Is(f.Decision, round.ErrHeld) || errors.Is(f.Decision, round.ErrNoQuorum) ||
		errors.Is(f.Decision, round.ErrTooSlow)
}

// Told is err, or where a caller stopped waiting before the masters had said enough, what they said last.
func Told(last, err error) error {
	now, ok := round.AsFailure(err)
	if before, told := round.AsFailure(last); told && ok && now.Decision == nil && now.Cause != nil {
		return before.Ended(now.Cause)
	}
	return err
}
