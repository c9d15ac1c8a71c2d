package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/round"
)

// entering calls enter in a separate goroutine.
func entering(ctx context.Context, l *limiter, closing <-chan struct{}, patience time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.enter(ctx, closing, patience) }()
	synctest.Wait()
	return done
}

// H101: calls above the limit begin in the order of their arrival, one for each round that ends.
func TestLimiterAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{limit: leastRounds, active: leastRounds}
		var calls []<-chan error
		for range 3 {
			calls = append(calls, entering(t.Context(), l, nil, 0))
		}
		for i := range calls {
			l.leave(false)
			synctest.Wait()
			for j, c := range calls {
				if begun := len(c) == 1; begun != (j <= i) {
					t.Errorf("after %d rounds call %d has begun: %t", i+1, j, begun)
				}
			}
		}
	})
}

// H101: a call that gives up leaves the waiting list, and returns the reason.
func TestLimiterCallsGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{limit: leastRounds, active: leastRounds}
		ended, cancel := context.WithCancel(t.Context())
		closing := make(chan struct{})
		calls := []<-chan error{
			entering(t.Context(), l, nil, time.Second), entering(ended, l, nil, 0), entering(t.Context(), l, closing, 0),
		}
		cancel()
		close(closing)
		time.Sleep(time.Second)
		synctest.Wait()
		for i, want := range []error{round.ErrOverloaded, context.Canceled, ErrClosed} {
			if err := <-calls[i]; !errors.Is(err, want) {
				t.Errorf("call %d returned %v, want %v", i, err, want)
			}
		}
		if l.waiting.Len() > 0 || l.active != leastRounds {
			t.Errorf("%d calls wait, and %d rounds are under way", l.waiting.Len(), l.active)
		}
	})
}

// H101: a call whose patience has ended still uses a turn that comes before the call has left the list, because in a
// busy process most turns come that late.
func TestLimiterUsesATurnThatComesLate(t *testing.T) {
	l := &limiter{limit: leastRounds, active: leastRounds}
	w := &waiting{t.Context(), make(chan struct{})}
	place := l.waiting.PushBack(w)
	l.leave(false)
	if err := l.giveUp(place, w, round.ErrOverloaded); err != nil || l.active != leastRounds {
		t.Errorf("giveUp returned %v, and %d rounds are under way", err, l.active)
	}
	if err := l.giveUp(place, w, context.Canceled); err == nil || l.active != leastRounds-1 {
		t.Errorf("giveUp returned %v, and %d rounds are under way", err, l.active)
	}
}

// H101: a call whose context has ended does not use its turn, and the next call gets it.
func TestLimiterWastesNoTurn(t *testing.T) {
	l := &limiter{limit: leastRounds, active: leastRounds}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l.waiting.PushBack(&waiting{ended, make(chan struct{})})
	next := &waiting{t.Context(), make(chan struct{})}
	l.waiting.PushBack(next)
	l.leave(false)
	select {
	case <-next.turn:
	default:
		t.Error("the turn was given to a call whose context has ended")
	}
}

// H101: the limit grows with each round that is decided in time and shrinks with each other round, between a minimum
// and a maximum.
func TestLimiterFollowsTheDelay(t *testing.T) {
	l := &limiter{limit: firstRounds}
	var limits []int
	for _, inTime := range []bool{true, false} {
		for range mostRounds + 1 {
			l.active++
			l.leave(inTime)
			limits = append(limits, l.limit)
		}
	}
	if limits[0] != firstRounds+1 || slices.Max(limits) != mostRounds || l.limit != leastRounds {
		t.Errorf("the limit changed from %d to %d, and then to %d", limits[0], slices.Max(limits), l.limit)
	}
}
