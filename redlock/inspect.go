package redlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// A Holder is who holds a name, as a quorum of the masters says.
type Holder struct {
	// ID is the id of the hold: that of its Locker, a colon, and a number; "" where no hold has a quorum.
	ID string
	// Depth is how deep it is locked.
	Depth int
	// Left is for how long at least a quorum keeps it if it is not extended: the quorum-th largest TTL, less the time of
	// the question and the drift.
	Left time.Duration
	// On is the number of masters that have it, of those that answered.
	On, Answered int
}

// Inspect tells who holds name. It is a snapshot for people and monitoring: the answer may be out of date when it
// arrives, and must not be used to decide whether something is safe to do. It waits for a quorum of answers that agree,
// or for all; where fewer than a quorum answered, it fails with ErrNoQuorum, or the error of ctx.
func (l *Locker) Inspect(ctx context.Context, name string) (Holder, error) {
	if err := scripts.CheckName(name); err != nil {
		return Holder{}, invalid("%v", err)
	}
	if !l.enter() {
		return Holder{}, ErrClosed
	}
	defer l.leave()
	snap, err := l.guard.ready(ctx)
	if err != nil {
		return Holder{}, &LockError{Op: "inspect", Name: name, Cause: err}
	}
	q := &inquiry{l: l, start: l.now(), done: make(chan struct{}), answers: make([]*scripts.Holding, l.n), left: l.n}
	call := snap.fleet.InspectCall(scripts.Prefix(l.cfg.prefix).Keys(name))
	for i := range l.n {
		if err := l.pool.Send(i, call, pool.Stamp{}, q); err != nil {
			q.Reply(i, nil, err)
		}
	}
	var cause error
	select {
	case <-q.done:
	case <-ctx.Done():
		cause = contextError(ctx)
	case <-l.closing:
		return Holder{}, ErrClosed
	}
	return q.result(name, cause)
}

// An inquiry is one inspection under way.
type inquiry struct {
	l     *Locker
	start clock.Instant
	done  chan struct{}

	mu      sync.Mutex
	answers []*scripts.Holding
	errs    []error
	left    int // answers to come
	over    bool
}

// Reply implements pool.Receiver.
func (q *inquiry) Reply(i int, value any, err error) {
	var h scripts.Holding
	if err == nil {
		if h, err = scripts.DecodeHolding(value); err != nil {
			err = &pool.Error{Addr: q.l.pool.Addr(i), Op: "inspect", Err: err}
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left--; err != nil {
		q.errs = append(q.errs, err)
	} else {
		q.answers[i] = &h
	}
	if _, n := q.commonLocked(); !q.over && (q.left == 0 || n >= quorumOf(q.l.n)) {
		q.over = true
		close(q.done)
	}
}

// commonLocked returns the answer that most masters give, and how many do.
func (q *inquiry) commonLocked() (id string, n int) {
	count := make(map[string]int, 2)
	for _, h := range q.answers {
		if h != nil {
			if count[h.ID]++; count[h.ID] > n {
				id, n = h.ID, count[h.ID]
			}
		}
	}
	return id, n
}

func (q *inquiry) result(name string, cause error) (Holder, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	quorum := quorumOf(q.l.n)
	id, n := q.commonLocked()
	answered := 0
	var lefts []time.Duration
	depth := 0
	for _, h := range q.answers {
		if h == nil {
			continue
		}
		if answered++; h.ID == id {
			lefts = append(lefts, h.Left)
			depth = max(depth, h.Depth)
		}
	}
	if answered < quorum {
		return Holder{}, &LockError{
			Op: "inspect", Name: name, Decision: ErrNoQuorum, Cause: cause,
			Granted: answered, Quorum: quorum, N: q.l.n, Masters: listErrors(slices.Clone(q.errs)),
		}
	}
	if id == "" || n < quorum {
		return Holder{Answered: answered}, nil
	}
	slices.Sort(lefts)
	left := lefts[len(lefts)-quorum]
	left -= q.l.now().Sub(q.start) + q.l.cfg.drift.Of(left)
	return Holder{ID: id, Depth: depth, Left: left, On: n, Answered: answered}, nil
}
