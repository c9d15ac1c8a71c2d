package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Env is what a Queue needs of its Locker.
type Env struct {
	Keeper *grant.Keeper
	Clock  *clock.Clock
	// Ready waits for a view in which it makes sense to ask; Changed is closed when the view changes.
	Ready   func(ctx context.Context) (*admission.View, error)
	Changed func() <-chan struct{}
	// Listen subscribes to the inbox: hints come by Queue.Hint and Queue.Gap.
	Listen  func() Subscription
	Closing <-chan struct{}
}

// A Queue is the waiting of one Locker. Its methods are safe for concurrent use.
type Queue struct {
	Env
	inbox  inbox
	number atomic.Uint64 // of waiters
	calls  atomic.Uint64 // of calls, in the order in which they came
	away   atomic.Bool   // the last complete round had no quorum of voters

	mu    sync.Mutex
	names map[string]*line
}

// A line is what this Locker knows of one name. It is in Queue.names while somebody here holds or wants the name.
type line struct {
	holder    *grant.Grant // nil: nobody here
	contender *Call        // nil: nobody here
	waiting   []*Call      // the others, by priority and then by call
	failure   error        // how the last round of a contender failed since the name was held here
}

// A Call is one Lock that waits.
type Call struct {
	Name     string
	Keys     *scripts.Keys
	Terms    *grant.Terms
	Handle   *grant.Handle // becomes the first handle of the grant
	Priority int
	Fair     bool
	Called   clock.Instant // dates the ticket
	// PausesFunc makes the pauses for as long as the call cannot hear the masters.
	PausesFunc func() func() time.Duration

	seq  uint64
	wake chan struct{} // capacity 1: look again
	turn turn          // guarded by Queue.mu
	w    *waiter       // made with the first ticket; guarded by inbox.mu
	over bool          // the call has returned; guarded by inbox.mu
}

// A turn says what a call may do.
type turn uint8

const (
	stands   turn = iota // it stands in the local queue
	contends             // it asks the masters
	chosen               // it is being handed the grant, in a moment it has it
	handed               // it has the grant
)

// New makes the Queue of one Locker.
func New(env Env) *Queue {
	q := &Queue{Env: env, names: make(map[string]*line)}
	q.inbox.init(q)
	return q
}

// Lock waits for the name until the grant of c.Handle is live, or until ctx ends. An error is a *round.Failure, or
// one of grant or ballot; then nothing is held, and what may have been granted is being rolled back.
func (q *Queue) Lock(ctx context.Context, c *Call) error {
	c.seq = q.calls.Add(1)
	c.wake = make(chan struct{}, 1)
	defer q.inbox.remove(c)
	q.join(c)
	for {
		if t, err := q.park(ctx, c); err != nil || t == handed {
			return err
		}
		g, err := q.contend(ctx, c)
		if errors.Is(err, errYield) {
			q.standBack(c)
			continue
		}
		if err == nil {
			err = q.begin(c, g)
		} else {
			q.resign(c)
		}
		return err
	}
}

// join makes c the contender, or puts it into the local queue.
func (q *Queue) join(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.names[c.Name]
	if ln == nil {
		ln = &line{}
		q.names[c.Name] = ln
	}
	if ln.holder == nil && ln.contender == nil {
		ln.contender, c.turn = c, contends
		return
	}
	ln.insert(c)
	if c.Fair {
		q.inbox.add(c) // it is to hear the masters by the time of the release; see Releasing
	}
	if ln.contender != nil && c.Priority > ln.contender.Priority {
		ln.contender.signal()
	}
}

// signal has the call look again.
func (c *Call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// insert puts c behind all calls of its priority that came before it.
func (ln *line) insert(c *Call) {
	at := len(ln.waiting)
	for at > 0 && ln.waiting[at-1].after(c) {
		at--
	}
	ln.waiting = slices.Insert(ln.waiting, at, c)
}

// after reports whether c has its turn after o.
func (c *Call) after(o *Call) bool {
	return c.Priority < o.Priority || c.Priority == o.Priority && c.seq > o.seq
}

// park waits for the turn of c.
func (q *Queue) park(ctx context.Context, c *Call) (turn, error) {
	for {
		if t := q.turnOf(c); t == contends || t == handed {
			return t, nil
		}
		var cause error
		select {
		case <-c.wake:
			continue
		case <-ctx.Done():
			cause = round.ContextError(ctx)
		case <-q.Closing:
			cause = grant.ErrClosed
		}
		why := q.why(c.Name)
		switch q.quit(c) { // a turn that has come at this moment goes to the next
		case stands:
			q.giveUp(c) // a fair call may have joined the masters' queues
		case handed:
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.Handle.Unlock(over, q.Heir(c.Name)) // sent, and not waited for
		case contends:
			q.resign(c)
		}
		return stands, Told(why, &round.Failure{Cause: cause})
	}
}

// learn takes note of how a round of a contender has failed.
func (q *Queue) learn(name string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.names[name].failure = err
}

// why is what keeps the calls in the local queue of name from it.
func (q *Queue) why(name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ln := q.names[name]; ln != nil && ln.holder == nil && ln.failure != nil {
		return ln.failure
	}
	return &round.Failure{Decision: round.ErrHeld, Left: -1}
}

func (q *Queue) turnOf(c *Call) turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return c.turn
}

// outranked reports whether a call with a better priority than the contender c waits behind it.
func (q *Queue) outranked(c *Call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.names[c.Name]
	return len(ln.waiting) > 0 && ln.waiting[0].Priority > c.Priority
}

// quit takes c out of the local queue. It returns the turn that c has got instead, if it was not there any more.
func (q *Queue) quit(c *Call) turn {
	for {
		if t := q.tryQuit(c); t != chosen {
			return t
		}
		<-c.wake // whoever hands it the grant waits for nothing
	}
}

func (q *Queue) tryQuit(c *Call) turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.turn == stands {
		ln := q.names[c.Name]
		ln.waiting = slices.DeleteFunc(ln.waiting, func(o *Call) bool { return o == c })
		q.nextLocked(c.Name, ln)
	}
	return c.turn
}

// resign ends the contending of c: it has failed.
func (q *Queue) resign(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.names[c.Name]
	ln.contender = nil
	q.nextLocked(c.Name, ln)
}

// standBack puts the contender c into the local queue, in front of which somebody with a better priority stands.
func (q *Queue) standBack(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.names[c.Name]
	ln.contender, c.turn = nil, stands
	ln.insert(c)
	q.nextLocked(c.Name, ln)
}

// nextLocked makes the first of the local queue the contender where there is none, and forgets a line that is empty.
func (q *Queue) nextLocked(name string, ln *line) {
	switch {
	case ln.holder != nil || ln.contender != nil:
	case len(ln.waiting) > 0:
		c := ln.waiting[0]
		ln.waiting = slices.Delete(ln.waiting, 0, 1)
		ln.contender, c.turn = c, contends
		c.signal()
	default:
		delete(q.names, name)
	}
}

// begin makes the won grant of c live.
func (q *Queue) begin(c *Call, g *grant.Grant) error {
	q.mu.Lock()
	ln := q.names[c.Name]
	ln.contender, ln.holder, ln.failure = nil, g, nil
	q.mu.Unlock()
	if err := g.Begin(c.Handle, c.Terms); err != nil {
		q.Over(g)
		return err
	}
	return nil
}

// Holder is the grant of name that this Locker has; nil where it has none.
func (q *Queue) Holder(name string) *grant.Grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ln := q.names[name]; ln != nil {
		return ln.holder
	}
	return nil
}

// Held takes note of a grant that was not waited for here: a TryLock, an Import.
func (q *Queue) Held(g *grant.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ln := q.names[g.Name]
	if ln == nil {
		ln = &line{}
		q.names[g.Name] = ln
	}
	ln.holder, ln.failure = g, nil
}

// Over takes note that a grant is not held here any more: the first of the local queue contends.
func (q *Queue) Over(g *grant.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ln := q.names[g.Name]; ln != nil && ln.holder == g {
		ln.holder = nil
		q.nextLocked(g.Name, ln)
	}
}

// Heir chooses who gets a grant of name by handing on. The grant's lock is held when the function is called.
func (q *Queue) Heir(name string) grant.Next {
	return func(left, ttl time.Duration) *grant.Heir {
		q.mu.Lock()
		defer q.mu.Unlock()
		ln := q.names[name]
		if ln == nil || len(ln.waiting) == 0 {
			return nil
		}
		c := ln.waiting[0]
		if c.Fair || left < c.Terms.Least || ttl > c.Terms.TTL { // the masters would keep it for longer than c asked for
			return nil
		}
		ln.waiting, c.turn = slices.Delete(ln.waiting, 0, 1), chosen
		return &grant.Heir{Handle: c.Handle, Terms: c.Terms, Take: func() { q.hand(c) }}
	}
}

// hand tells c that the grant is its own.
func (q *Queue) hand(c *Call) {
	q.mu.Lock()
	c.turn = handed
	q.mu.Unlock()
	c.signal()
}
