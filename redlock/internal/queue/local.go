package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Env is what a Queue needs of its Locker.
type Env struct {
	Keeper *grant.Keeper
	// Ready waits for a view in which it makes sense to ask; Changed is closed when the view changes.
	Ready   func(ctx context.Context) (*admission.View, error)
	Changed func() <-chan struct{}
	// Listen subscribes to the inbox: hints come by Queue.Hint and Queue.Gap.
	Listen func() Subscription
}

// A Queue is the waiting of one Locker. Its methods are safe for concurrent use.
type Queue struct {
	Env

	mu      sync.Mutex
	calls   uint64 // so far
	away    bool   // by the last ask that was told: no quorum of masters can vote, whatever the name
	names   map[string]*line
	inbox   Subscription // nil: nobody waits, or has for a while
	idle    *time.Timer  // closes inbox
	hearers map[uint64]*Call

	attempts uint64 // so far, of calls that do not queue
	trying   map[string]*attempt
}

// A line is what this Locker knows of one name. It is in Queue.names while somebody here holds or wants the name.
type line struct {
	holder    *grant.Grant   // nil: nobody here
	contender *Call          // nil: nobody here
	waiting   []*Call        // the others, by priority and then by call
	keeps     *round.Failure // what keeps the others from the name: heldHere, or how the contender's last ask failed
}

// heldHere is what keeps a call from a name that is held by the same Locker.
var heldHere = &round.Failure{Decision: round.ErrHeld, Left: -1}

// A Call is one Lock that waits. To the masters it is one waiter.
type Call struct {
	Name     string
	Keys     *scripts.Keys
	Terms    *grant.Terms
	Handle   *grant.Handle // becomes the first handle of a new grant, or of a new tenure where it is handed one
	Priority int
	Fair     bool
	Called   clock.Instant // dates the ticket
	// PausesFunc makes the pauses for as long as the call cannot hear the masters.
	PausesFunc func() func() time.Duration
	Course     *grant.Course // nil: nobody wants to know

	line *line
	seq  uint64        // in the order of the calls; also the number of the waiter
	wake chan struct{} // capacity 1: look again

	standing
}

// A standing is where a Call stands. It is guarded by Queue.mu.
type standing struct {
	turn   turn
	ticket *scripts.Ticket // made when it is first sent, and kept
	queued bool            // the masters may have it in their queues
	unsure bool            // it is not known yet whether a quorum of masters can vote
	hinted quorum.Set      // masters that have given a hint since the last ask
	first  time.Time       // when the first of them did
}

// A turn says what a call may do.
type turn uint8

const (
	stands   turn = iota // it stands in the local queue
	contends             // it asks the masters
	chosen               // the grant is being handed on to it; in a moment it has it
	has                  // it has the grant
	gone                 // it has given up
)

// New makes the Queue of one Locker.
func New(env Env) *Queue {
	return &Queue{
		Env: env, names: make(map[string]*line), hearers: make(map[uint64]*Call), trying: make(map[string]*attempt),
	}
}

// Lock waits for the name until the grant of c.Handle is live, or until ctx ends. An error is a *round.Failure, or
// one of ballot; then nothing is held, and what may have been granted is being rolled back.
func (q *Queue) Lock(ctx context.Context, c *Call) error {
	q.join(c)
	defer q.quit(c)
	for {
		if handed, err := q.park(ctx, c); handed || err != nil {
			return err
		}
		if g, err := q.contend(ctx, c); err == nil {
			return q.begin(c, g)
		} else if !errors.Is(err, errYield) {
			return err
		}
	}
}

// lineLocked is the line of name, a new one where there is none.
func (q *Queue) lineLocked(name string) *line {
	ln := q.names[name]
	if ln == nil {
		ln = &line{keeps: heldHere}
		q.names[name] = ln
	}
	return ln
}

// join makes c the contender, or puts it into the local queue.
func (q *Queue) join(c *Call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	c.seq, c.wake = q.calls, make(chan struct{}, 1)
	if c.Keys.Role() != scripts.Plain { // it asks beside the others, and the masters know the order
		c.line, c.turn = &line{contender: c, keeps: heldHere}, contends
		return
	}
	ln := q.lineLocked(c.Name)
	c.line = ln
	if ln.holder == nil && ln.contender == nil {
		ln.contender, c.turn = c, contends
		return
	}
	place := 1 + ln.insert(c)
	if ln.contender != nil {
		place++
	}
	c.Course.StoodAt(place)
	if c.Fair {
		q.hearLocked(c) // it is to hear the masters by the time of the release; see Releasing
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

// insert puts c behind all calls of its priority that came before it, and returns behind how many in all.
func (ln *line) insert(c *Call) (behind int) {
	at := len(ln.waiting)
	for at > 0 && ln.waiting[at-1].after(c) {
		at--
	}
	ln.waiting = slices.Insert(ln.waiting, at, c)
	return at
}

// after reports whether c has its turn after o.
func (c *Call) after(o *Call) bool {
	return c.Priority < o.Priority || c.Priority == o.Priority && c.seq > o.seq
}

// sleep waits until c is to look again: it was signalled, the view has changed, or pause is over. It returns why the
// call must end, nil where it need not.
func (q *Queue) sleep(ctx context.Context, c *Call, changed <-chan struct{}, pause <-chan time.Time) error {
	select {
	case <-c.wake:
	case <-changed:
	case <-pause:
	case <-ctx.Done():
		return round.ContextError(ctx)
	case <-q.Keeper.Closing:
		return grant.ErrClosed
	}
	return nil
}

// park waits for the turn of c in the local queue, and reports whether the grant was handed on to it. If c must end
// while it is chosen, it waits until it has the grant, and gives it back.
func (q *Queue) park(ctx context.Context, c *Call) (handed bool, err error) {
	for {
		if t, _ := q.turnOf(c); t == contends || t == has {
			return t == has, nil
		}
		cause := q.sleep(ctx, c, nil, nil)
		if cause == nil {
			continue
		}
		_, last := q.turnOf(c)
		t := q.quit(c)
		for t == chosen {
			<-c.wake // a moment: the holder that hands the grant on waits for nothing
			t = q.quit(c)
		}
		if t == has {
			over, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.Handle.Unlock(over, q.Heir(c.Name)) // sent, and not waited for
		}
		return false, last.Ended(cause)
	}
}

// turnOf returns the turn of c, and what keeps it from the name.
func (q *Queue) turnOf(c *Call) (turn, *round.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return c.turn, c.line.keeps
}

// learn takes note of how an ask of a contender has failed.
func (q *Queue) learn(c *Call, f *round.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.line.keeps = f
}

// yieldLocked puts the contender c back into the local queue if one with a better priority stands there, and reports
// whether it did.
func (q *Queue) yieldLocked(c *Call) bool {
	ln := c.line
	if len(ln.waiting) == 0 || ln.waiting[0].Priority <= c.Priority {
		return false
	}
	q.leaveLocked(c)
	ln.contender, c.turn = nil, stands
	ln.insert(c)
	q.promoteLocked(c.Name, ln)
	return true
}

// quit ends the waiting of c, here and on the masters; its place is the next one's. It returns the turn of c: gone, or
// where the grant is its own by now, chosen or has.
func (q *Queue) quit(c *Call) turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.turn == stands || c.turn == contends {
		q.leaveLocked(c)
		ln := c.line
		if c.turn == contends {
			ln.contender = nil
		}
		ln.waiting = slices.DeleteFunc(ln.waiting, func(o *Call) bool { return o == c })
		q.promoteLocked(c.Name, ln)
		c.turn = gone
	}
	q.deafLocked(c)
	return c.turn
}

// promoteLocked makes the first of the local queue the contender where there is none, and forgets a line that is empty.
func (q *Queue) promoteLocked(name string, ln *line) {
	switch {
	case ln.holder != nil || ln.contender != nil:
	case len(ln.waiting) > 0:
		c := ln.waiting[0]
		ln.waiting = slices.Delete(ln.waiting, 0, 1)
		ln.contender, c.turn = c, contends
		c.signal()
	case q.names[name] == ln:
		delete(q.names, name)
	}
}

// begin makes the won grant of c live.
func (q *Queue) begin(c *Call, g *grant.Grant) error {
	q.mu.Lock()
	c.line.contender, c.turn = nil, has
	if g.Role() == scripts.Plain {
		q.heldLocked(g)
	}
	q.mu.Unlock()
	err := g.Begin(c.Handle, c.Terms)
	if err != nil {
		q.Over(g)
	}
	return err
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
	q.heldLocked(g)
}

func (q *Queue) heldLocked(g *grant.Grant) {
	ln := q.lineLocked(g.Name)
	ln.holder, ln.keeps = g, heldHere
}

// Over implements grant.Waiters: the grant is not held here any more, and the first of the local queue contends.
func (q *Queue) Over(g *grant.Grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ln := q.names[g.Name]; ln != nil && ln.holder == g {
		ln.holder = nil
		q.promoteLocked(g.Name, ln)
	}
}

// Heir chooses who gets a grant of name by handing on; see package grant. It looks at the first of the local queue
// alone, so that nobody is passed over: a fair call there, or one that asks for a shorter TTL or more validity than the
// grant has, ends the handing on. The grant's lock is held when the function is called.
func (q *Queue) Heir(name string) grant.Next {
	return func(left, ttl time.Duration) *grant.Heir {
		q.mu.Lock()
		defer q.mu.Unlock()
		ln := q.names[name]
		if ln == nil || len(ln.waiting) == 0 || ln.contender != nil { // the contender comes before those that stand
			return nil
		}
		c := ln.waiting[0]
		if c.Fair || left < c.Terms.Least || ttl > c.Terms.TTL { // the masters would keep it for longer than c asked for
			return nil
		}
		ln.waiting, c.turn = slices.Delete(ln.waiting, 0, 1), chosen
		return &grant.Heir{Handle: c.Handle, Terms: c.Terms, Take: func() { q.handed(c) }}
	}
}

// handed tells c that the grant is its own.
func (q *Queue) handed(c *Call) {
	q.mu.Lock()
	c.turn = has
	q.mu.Unlock()
	c.signal()
}
