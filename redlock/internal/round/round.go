package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// A Sender is what all rounds of one Locker share.
type Sender struct {
	Pool  *pool.Pool
	Clock *clock.Clock
	// Doubt is told that a master has shown another admission record than the View says.
	Doubt func(master int, shown string)
	// OnVote queues the report of a vote, before the vote takes effect; nil: votes are not reported. It must not block.
	OnVote func(r *Round, master int, v *Vote, decides bool)
}

// A Vote is what one master answered in one round.
type Vote struct {
	scripts.Vote
	Err   error         // why Kind is Failed, or why the master was not asked
	After time.Duration // how long after the beginning of the round it came
	in    bool
}

// At returns when the vote v of r came.
func (r *Round) At(v *Vote) time.Time { return r.began.Add(v.After) }

// Unsure reports whether the call may have had, or may yet have, an effect on the master.
func (v *Vote) Unsure() bool {
	if !v.in {
		return true
	}
	var e *pool.Error
	return v.Kind == scripts.Failed && errors.As(v.Err, &e) && (e.Unknown || pool.Answered(v.Err))
}

// A Booker is told of each vote by the goroutine that brings it, with no lock held. It must not block. decides is
// true for the vote that decided the round, last for the last one.
type Booker interface {
	Booked(r *Round, master int, v *Vote, decides, last bool)
}

// A Round is one script sent to all masters. Make it with New or Init. It is safe for concurrent use.
type Round struct {
	Op    string
	View  *admission.View
	Start clock.Instant // before the first byte was queued
	Key   string        // what it is about, for errors
	Grant string        // the id that an acquire asks for

	sender *Sender
	booker Booker     // nil: nobody is told
	asked  quorum.Set // the masters that vote here; those outside of the rule decide nothing
	done   chan struct{}
	began  time.Time

	mu      sync.Mutex
	tally   quorum.Tally
	votes   []Vote
	decided quorum.Verdict
	all     chan struct{} // closed with the last vote; nil while nobody waits for it
	room    [5]Vote       // what votes is cut from, up to five masters
}

// New makes a round that goes by view.
func (s *Sender) New(view *admission.View, op string, b Booker) *Round {
	r := &Round{}
	r.Init(s, view, op, b)
	return r
}

// Init makes the zero Round one that can be sent, for those who keep it inside of something else.
func (r *Round) Init(s *Sender, view *admission.View, op string, b Booker) {
	r.sender, r.View, r.Op, r.booker, r.Start = s, view, op, b, s.Clock.Now()
	r.tally.Rule, r.asked = view.Config.Rule, view.Config.Rule.All()
	r.done, r.began = make(chan struct{}), time.Now()
	r.votes = slices.Grow(r.room[:0], len(view.Masters))[:len(view.Masters)]
}

// Judge has the round decided by another rule, and asks further masters, which may decide nothing. It is called before
// anything is sent.
func (r *Round) Judge(rule quorum.Rule, also quorum.Set) {
	r.tally.Rule, r.asked = rule, rule.All()|also
}

// Asked is the set of masters that vote here.
func (r *Round) Asked() quorum.Set { return r.asked }

// An Unsent is the vote of a master that was not asked.
type Unsent struct {
	Master int
	Vote   Vote
}

// SendAll queues the call to every master of the round, each with its session and record, and returns to which. The
// others need not be asked, as [Sender.Refusal] says, or could not be: CastAll casts their votes, when no lock is held.
func (r *Round) SendAll(c *scripts.Call, ttl time.Duration, need Need) (sent quorum.Set, unsent []Unsent) {
	for i := range r.asked.All() {
		v, no := r.sender.Refusal(r.View, i, ttl, need)
		if !no {
			m := &r.View.Masters[i]
			v.Err = r.sender.Pool.Send(i, c, pool.Stamp{Session: m.Session, Text: m.Stamp}, r)
		}
		if v.Err != nil {
			unsent = append(unsent, Unsent{i, v})
		} else {
			sent |= quorum.One(i)
		}
	}
	return sent, unsent
}

// CastAll casts the votes of masters that were not asked.
func (r *Round) CastAll(unsent []Unsent) {
	for i := range unsent {
		r.Cast(unsent[i].Master, unsent[i].Vote)
	}
}

// Reply implements pool.Receiver.
func (r *Round) Reply(i int, value any, err error) {
	v := Vote{Err: err}
	switch {
	case err != nil:
		if pool.NotLoaded(err) { // the script was not there, and nothing was done: like a ballot that was refused
			v.Kind = scripts.Stale
		}
	case value == int64(0): // only a release answers so: the grant was not there
		v.Kind = scripts.Missing
	default:
		// No script of ours answers so: the effect is unknown.
		if v.Vote, err = scripts.DecodeVote(value); err != nil {
			v.Vote, v.Err = scripts.Vote{}, &pool.Error{Addr: r.sender.Pool.Addr(i), Op: r.Op, Err: err, Unknown: true}
		}
	}
	r.Cast(i, v)
}

// Cast counts the vote of master i. Each master has one vote.
func (r *Round) Cast(i int, v Vote) {
	v.in, v.After = true, time.Since(r.began)
	r.mu.Lock()
	r.votes[i] = v
	vote := &r.votes[i] // never written again
	r.tally.Add(i, v.Kind)
	decides := false
	if r.decided == quorum.Pending {
		r.decided = r.tally.Verdict()
		decides = r.decided != quorum.Pending
	}
	last := r.asked&^r.tally.In() == 0
	if last && r.all != nil {
		close(r.all)
	}
	r.mu.Unlock()
	if f := r.sender.OnVote; f != nil {
		f(r, i, vote, decides)
	}
	r.book(i, vote, decides, last)
}

// book tells of a vote that was counted.
func (r *Round) book(i int, v *Vote, decides, last bool) {
	if (v.Kind == scripts.Abstained || v.Kind == scripts.Refused) && v.Err == nil {
		r.sender.Doubt(i, v.Record)
	}
	if r.booker != nil {
		r.booker.Booked(r, i, v, decides, last)
	}
	if decides {
		close(r.done)
	}
}

// Done is closed when the round is decided.
func (r *Round) Done() <-chan struct{} { return r.done }

// Verdict is what the round has been decided as.
func (r *Round) Verdict() quorum.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decided
}

// Tally is a copy of the count so far.
func (r *Round) Tally() quorum.Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Each calls f for the vote of every master that was asked, with the lock of the round held. A vote that has not come
// yet is Unsure and has the kind Failed.
func (r *Round) Each(f func(i int, v *Vote)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.asked.All() {
		f(i, &r.votes[i])
	}
}

// Vote is the vote of master i so far.
func (r *Round) Vote(i int) Vote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.votes[i]
}

// Complete waits until every vote is in, and reports whether that came before ctx ended.
func (r *Round) Complete(ctx context.Context) bool {
	r.mu.Lock()
	if r.asked&^r.tally.In() == 0 {
		r.mu.Unlock()
		return true
	}
	if r.all == nil {
		r.all = make(chan struct{})
	}
	all := r.all
	r.mu.Unlock()
	select {
	case <-all:
		return true
	case <-ctx.Done():
		return false
	}
}

// ContextError is why ctx ended: its error, joined with its cause where that says more.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
