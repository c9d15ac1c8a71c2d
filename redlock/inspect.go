package redlock

import (
	"context"
	"math"
	"math/bits"
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
	set := snap.set
	q := &inquiry{l: l, rule: set.rule, start: l.now(), done: make(chan struct{}), answers: make([]*scripts.Holding, set.slots), left: set.n()}
	call := snap.fleet.InspectCall(scripts.Prefix(l.cfg.prefix).Keys(name))
	for _, i := range set.order {
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
	rule  rule
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
	if scripts.IsReservation(h.ID) { // kept for a waiter, held by nobody
		h.ID, h.Depth = "", 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left--; err != nil {
		q.errs = append(q.errs, err)
	} else {
		q.answers[i] = &h
	}
	if _, on := q.commonLocked(); !q.over && (q.left == 0 || q.rule.has(on)) {
		q.over = true
		close(q.done)
	}
}

// commonLocked returns the answer that most masters give, and which do. Where the masters are changed, one that has a
// majority of a set goes before all others: those who have not heard of the change hold so.
func (q *inquiry) commonLocked() (id string, on uint64) {
	given := make(map[string]uint64, 2)
	for i, h := range q.answers {
		if h != nil {
			given[h.ID] |= bit(i)
		}
	}
	for one, set := range given {
		if one != "" && q.rule.either(set) {
			return one, set
		}
		if bits.OnesCount64(set) > bits.OnesCount64(on) {
			id, on = one, set
		}
	}
	return id, on
}

func (q *inquiry) result(name string, cause error) (Holder, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id, on := q.commonLocked()
	answered, depth := uint64(0), 0
	for i, h := range q.answers {
		if h == nil {
			continue
		}
		if answered |= bit(i); h.ID == id {
			depth = max(depth, h.Depth)
		}
	}
	if !q.rule.has(answered) {
		return Holder{}, &LockError{
			Op: "inspect", Name: name, Decision: ErrNoQuorum, Cause: cause,
			Granted: bits.OnesCount64(answered), Quorum: q.rule.least(), N: q.rule.n(), Masters: listErrors(slices.Clone(q.errs)),
		}
	}
	if id == "" || !q.rule.either(on) {
		return Holder{Answered: bits.OnesCount64(answered)}, nil
	}
	left := q.leftLocked(on)
	left -= q.l.now().Sub(q.start) + q.l.cfg.drift.Of(left)
	return Holder{ID: id, Depth: depth, Left: left, On: bits.OnesCount64(on), Answered: bits.OnesCount64(answered)}, nil
}

// leftLocked is for how long a majority of each set keeps the hold that has one there.
func (q *inquiry) leftLocked(on uint64) time.Duration {
	left := time.Duration(math.MaxInt64)
	for _, set := range q.rule.sets() {
		if set == 0 || !majority(on, set) {
			continue
		}
		var lefts []time.Duration
		for rest := on & set; rest != 0; {
			lefts = append(lefts, q.answers[popFirst(&rest)].Left)
		}
		slices.Sort(lefts)
		left = min(left, lefts[len(lefts)-quorumOf(bits.OnesCount64(set))])
	}
	return left
}
