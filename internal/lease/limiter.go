package lease

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/transport/fault"
)

// The minimum, initial and maximum bound of a limiter, in rounds. leastRounds is still enough to fill the batches that
// are sent to the masters.
const (
	leastRounds = 64
	firstRounds = 256
	mostRounds  = 1024
)

// A limiter bounds the number of rounds of one client that are under way. A Manager has one limiter for acquires and
// one for re-entries. So the queues to the masters stay short, and messages that are not bounded, such as releases and
// heartbeats, are sent soon. Calls beyond the bound wait in the order of their arrival.
//
// The bound adapts to the delay of the rounds. Each round that is decided in time raises the bound by one, and each
// round that is decided later lowers it by one. So the bound settles where half of the rounds are in time, or at its
// minimum or maximum.
type limiter struct {
	mu      sync.Mutex
	limit   int
	active  int       // number of rounds under way
	waiting list.List // of *waiting
}

// A waiting is a call that waits for its turn.
type waiting struct {
	ctx  context.Context
	turn chan struct{} // closed when the call may begin
}

// enter waits until one more round may begin. If it returns nil, the caller must call leave at the end of the round.
// Otherwise the call must not begin a round. The error is round.ErrOverloaded after patience (0: no such limit), the
// error of ctx, or ErrClosed if closing was closed.
func (l *limiter) enter(ctx context.Context, closing <-chan struct{}, patience time.Duration) error {
	l.mu.Lock()
	if l.active < l.limit && l.waiting.Len() == 0 {
		l.active++
		l.mu.Unlock()
		return nil
	}
	w := &waiting{ctx, make(chan struct{})}
	place := l.waiting.PushBack(w)
	l.mu.Unlock()
	var impatient <-chan time.Time
	if patience > 0 {
		impatient = time.After(patience)
	}
	var err error
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		err = fault.ContextError(ctx)
	case <-closing:
		err = ErrClosed
	case <-impatient:
		err = round.ErrOverloaded
	}
	return l.giveUp(place, w, err)
}

// giveUp ends the wait of a call because of err, and returns err. It returns nil instead if err is round.ErrOverloaded
// and the turn of the call has come meanwhile.
func (l *limiter) giveUp(place *list.Element, w *waiting, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn: // the turn came before this goroutine ran
		if errors.Is(err, round.ErrOverloaded) {
			return nil
		}
		l.active--
		l.admitLocked()
	default:
		l.waiting.Remove(place)
	}
	return err
}

// leave ends a round. inTime reports whether the round was decided within a quarter of the time after which a silent
// master is considered down.
func (l *limiter) leave(inTime bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if inTime {
		l.limit = min(l.limit+1, mostRounds)
	} else {
		l.limit = max(l.limit-1, leastRounds)
	}
	l.admitLocked()
}

// admitLocked gives waiting calls their turn, in order, as many as the bound allows. It drops calls whose contexts have
// ended: in a busy process, it may take a while until the goroutine of such a call runs.
func (l *limiter) admitLocked() {
	for l.active < l.limit && l.waiting.Len() > 0 {
		w := l.waiting.Remove(l.waiting.Front()).(*waiting)
		if w.ctx.Err() == nil {
			l.active++
			close(w.turn)
		}
	}
}

// failurePace is the time for which a call that found no quorum is counted as a round under way. This slows down
// callers that try again immediately. Otherwise they would leave no processor time for connecting to the masters.
const failurePace = 20 * time.Millisecond

// reportNotSent reports f, the failure of an attempt that has sent nothing, and returns f.
func (m *Manager) reportNotSent(a *Attempt, f *round.Failure) *round.Failure {
	m.Events.NotSent(a.Op, a.Name, f)
	return f
}

// overloaded returns the failure of a call that limiter.enter has rejected.
func overloaded(err error) *round.Failure {
	f := &round.Failure{Decision: round.ErrOverloaded, Left: -1}
	if !errors.Is(err, round.ErrOverloaded) {
		f.Cause = err
	}
	return f
}
