package lease

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/transport/fault"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// The bounds of a limiter, in acquire rounds under way. The least still fills the batches that the masters are sent.
const (
	leastRounds = 64
	firstRounds = 256
	mostRounds  = 1024
)

// A limiter bounds the acquire rounds of one Locker that are under way, so that the queues to the masters stay short:
// extensions, releases and heartbeats, which are not bounded, are then never far from the front. Calls beyond the bound
// wait here, first come, first served.
//
// The bound follows the delay of the rounds. Each round decided in time raises it by one, and each later one lowers it
// by one. So it settles where half of the rounds are in time, or at its end.
type limiter struct {
	mu      sync.Mutex
	limit   int
	active  int       // rounds under way
	waiting list.List // of *waiting
}

// A waiting is a call that waits for its turn.
type waiting struct {
	ctx  context.Context
	turn chan struct{} // closed when the call may begin
}

// enter waits until one more round may begin; leave ends it. It returns the reason if the call may not begin:
// round.ErrOverloaded after patience, unless that is 0, the error of ctx, or ErrClosed once closing is closed.
func (l *limiter) enter(ctx context.Context, closing <-chan struct{}, patience time.Duration) error {
	l.mu.Lock()
	//mutant:bounded-rounds = true
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

// giveUp ends the wait of a call, and returns err. It returns nil if the call got its turn meanwhile and can use it.
func (l *limiter) giveUp(place *list.Element, w *waiting, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.turn: // it came before this goroutine ran
		//mutant:late-turn = false
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

// leave ends a round. inTime reports whether it was decided within a quarter of the time after which a silent master
// counts as down.
func (l *limiter) leave(inTime bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	//mutant:bound-follows-delay = true
	if inTime {
		l.limit = min(l.limit+1, mostRounds)
	} else {
		l.limit = max(l.limit-1, leastRounds)
	}
	l.admitLocked()
}

// admitLocked lets the first waiting calls begin, as many as the bound allows. Those whose contexts have ended are
// passed over: in a busy process they may take a while to run and to leave.
func (l *limiter) admitLocked() {
	for l.active < l.limit && l.waiting.Len() > 0 {
		w := l.waiting.Remove(l.waiting.Front()).(*waiting)
		if w.ctx.Err() == nil {
			l.active++
			close(w.turn)
		}
	}
}

// failurePace is for how long a call that found no quorum counts as a round under way. It slows down callers that try
// again at once, and which would leave the connections to the masters no processor time to be made again.
const failurePace = 20 * time.Millisecond

// reportNotSent reports a call that ends before anything was sent.
func (m *services) reportNotSent(a *Attempt, f *round.Failure) *round.Failure {
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
