package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// A Sender sends rounds. All rounds of one client share it.
type Sender struct {
	Pool  *transport.Transport
	Clock *clock.Clock
	// Doubt is called when a master shows an admission record that differs from the one in the View.
	Doubt func(master int, shown string)
	// Quarantine returns how much is left of the quarantine of a master in this state; 0 if it is not in quarantine, or
	// the time is not known.
	Quarantine func(master int, m *admission.State) time.Duration
	// Health records the votes on acquires, and the errors of other calls.
	Health *Health
	// OnVote, if not nil, is called with each vote before the VoteObserver of the round. It must not block.
	OnVote func(r *Round, master int, v *Vote, decides bool)
}

// A Vote is the answer of one master in one round.
type Vote struct {
	scripts.Vote
	Err   error         // why Outcome is Failed, or why no call was sent to the master
	After time.Duration // time from the beginning of the round to the vote
	in    bool          // whether the vote has arrived
}

// At returns when the vote v of r arrived.
func (r *Round) At(v *Vote) time.Time { return r.began.Add(v.After) }

// Unsure reports whether the call may have had, or may still have, an effect on the master.
func (v *Vote) Unsure() bool {
	if !v.in {
		return true
	}
	var e *transport.Error
	return v.Outcome == quorum.Failed && errors.As(v.Err, &e) && (e.Unknown || transport.Answered(v.Err))
}

// A VoteObserver is notified of each vote of a round. OnVote is called with no lock held, by the goroutine that
// received the vote. It must not block. decides reports whether the vote decided the round, and last whether it is the
// last vote.
type VoteObserver interface {
	OnVote(r *Round, master int, v *Vote, decides, last bool)
}

// A Round is one script sent to all masters. Make it with New or Init. It is safe for concurrent use.
type Round struct {
	Op       redlockinfo.Op
	View     *admission.View
	Start    clock.Instant // before the first byte was queued
	LeaseID  string        // the id in an acquire
	Ticketed bool          // whether the acquire has a ticket
	Extends  bool          // whether the call prolongs a lease

	sender   *Sender
	key      string       // the key of the lock, for errors
	observer VoteObserver // nil if there is none
	asked    quorum.Set   // the masters of the round; votes of masters that are not in tally.Rule decide nothing
	skipped  []skipped    // votes for RecordSkipped
	done     chan struct{}
	began    time.Time

	mu    sync.Mutex
	tally quorum.Tally
	votes []Vote
	all   chan struct{} // closed with the last vote; nil if no caller waits for it
	room  [5]Vote       // storage for votes, up to five masters
}

// New returns a round about the lock with this key, which uses view.
func (s *Sender) New(view *admission.View, op redlockinfo.Op, key string, o VoteObserver) *Round {
	r := &Round{}
	r.Init(s, view, op, key, o)
	return r
}

// Init initializes a zero Round for sending, for callers that embed it.
func (r *Round) Init(s *Sender, view *admission.View, op redlockinfo.Op, key string, o VoteObserver) {
	r.sender, r.View, r.Op, r.key, r.observer, r.Start = s, view, op, key, o, s.Clock.Now()
	//mutant:configured-quorum = quorum.Rule{Old: view.Voting}, view.Config.Rule.All()
	r.tally.Rule, r.asked = view.Config.Rule, view.Config.Rule.All()
	r.done, r.began = make(chan struct{}), time.Now()
	r.votes = slices.Grow(r.room[:0], len(view.Masters))[:len(view.Masters)]
}

// Judge makes rule decide the round. The masters of the round are those of rule, which decide, and others. It must be
// called before anything is sent.
func (r *Round) Judge(rule quorum.Rule, others quorum.Set) {
	r.tally.Rule, r.asked = rule, rule.All()|others
}

// Asked returns the set of masters that vote in this round.
func (r *Round) Asked() quorum.Set { return r.asked }

// A skipped is the vote of a master to which no call was sent.
type skipped struct {
	master int
	vote   Vote
}

// SendAll queues the call to the masters of the round, with the session and the record of each, and returns the masters
// to which the call was queued. It skips a master that need not be sent the call (see [Sender.Refusal]), or to which
// sending fails. The caller must call RecordSkipped as soon as it holds no lock.
func (r *Round) SendAll(c *frame.Call, ttl time.Duration, need Need) (sent quorum.Set) {
	for i := range r.asked.All() {
		v := r.sender.Refusal(r.View, i, ttl, need)
		if v.Err == nil {
			m := &r.View.Masters[i]
			v.Err = r.sender.Pool.Send(i, c, transport.Condition{Session: m.Session, Stamp: m.Stamp}, r)
		}
		if v.Err != nil {
			r.Skip(i, v)
		} else {
			sent |= quorum.One(i)
		}
	}
	return sent
}

// A Need is the condition for sending a call to a master.
type Need uint8

// Each Need includes the ones before it.
const (
	NeedsConnection Need = iota // for an extension, which only confirms existing locks, even in quarantine
	NeedsRecord                 // for a downgrade, which is accepted only under the record in the view
	NeedsVote                   // for an acquire or an import
)

// Refusal returns the vote of master i if a call with this TTL need not be sent to it, because the master does not meet
// need or refuses the TTL. The reason is the Err of the vote. Err is nil if the call must be sent.
func (s *Sender) Refusal(view *admission.View, i int, ttl time.Duration, need Need) (v Vote) {
	m := &view.Masters[i]
	switch {
	case m.Phase == admission.Down, m.Session == 0:
		v.Err = whyNot(m)
	case m.Record.MaxTTL > 0 && ttl > m.Record.MaxTTL:
		v.Outcome = quorum.Refused
		v.Err = fmt.Errorf("%w: TTL %v, max TTL %v; a held lock is extended, so it needs no long TTL; to raise the max TTL: "+
			"redlock max-ttl --set %v, with the URLs of all masters", ErrTTLTooLong, ttl, m.Record.MaxTTL, ttl)
	case need >= NeedsRecord && m.Stamp == admission.Unread, need == NeedsVote && m.Phase != admission.Voting,
		m.Phase == admission.Blocked && errors.Is(m.Err, admission.ErrMasterList):
		v.Outcome, v.Err = quorum.Abstained, whyNot(m)
	//mutant:extend-incomplete = false
	case m.Record.Final < view.Config.LeastFinal(i): // no lease may outlive the permission for this configuration
		v.Outcome, v.Err = quorum.Abstained, whyNot(m)
	//mutant:extend-unsaved = false
	case m.Phase == admission.Blocked && errors.Is(m.Err, admission.ErrNotDurable): // it would forget the extension
		v.Outcome, v.Err = quorum.Abstained, whyNot(m)
	}
	return v
}

// Skip stores the vote of master i, to which no call was sent, until RecordSkipped records the vote.
func (r *Round) Skip(i int, v Vote) { r.skipped = append(r.skipped, skipped{i, v}) }

// RecordSkipped records the votes of the masters to which no call was sent.
func (r *Round) RecordSkipped() {
	for _, s := range r.skipped {
		r.Record(s.master, s.vote)
	}
}

// Reply implements transport.Receiver.
func (r *Round) Reply(i int, value any, err error) {
	v := Vote{Err: err}
	switch {
	case err != nil:
		if transport.NotLoaded(err) { // treat it like a refused ballot: the script was not loaded, and had no effect
			v.Outcome = quorum.Stale
		}
	case value == int64(0): // only a release returns 0, if it did not find the lease
		v.Outcome = quorum.Missing
	default:
		// A reply that cannot be decoded is from none of our scripts, so the effect of the call is unknown.
		if v.Vote, err = scripts.DecodeVote(value); err != nil {
			v.Vote = scripts.Vote{}
			v.Err = &transport.Error{Addr: r.sender.Pool.Addr(i), Op: string(r.Op), Err: err, Unknown: true}
		}
	}
	r.Record(i, v)
}

// Record counts the vote of master i. It must be called only once for each master.
func (r *Round) Record(i int, v Vote) {
	v.in, v.After = true, time.Since(r.began)
	r.sender.Health.Answers.Add(1)
	switch { // before the vote counts: a caller of Complete may read the health next
	case v.Err != nil:
		r.sender.Health.refused(i, v.Err, r.Extends)
	case v.Outcome == quorum.Granted && r.Extends:
		r.sender.Health.renews(i)
	case v.Outcome == quorum.Granted && r.LeaseID != "" && !r.Ticketed:
		r.sender.Health.grants(i)
	}
	r.mu.Lock()
	r.votes[i] = v
	vote := &r.votes[i] // written only once
	pending := r.tally.Verdict() == quorum.Pending
	r.tally.Add(i, v.Outcome)
	decides := pending && r.tally.Verdict() != quorum.Pending
	last := r.asked&^r.tally.In() == 0
	if last && r.all != nil {
		close(r.all)
	}
	r.mu.Unlock()
	if f := r.sender.OnVote; f != nil {
		f(r, i, vote, decides)
	}
	if (v.Outcome == quorum.Abstained || v.Outcome == quorum.Refused) && v.Err == nil {
		r.sender.Doubt(i, v.Record)
	}
	if r.observer != nil {
		r.observer.OnVote(r, i, vote, decides, last)
	}
	if decides {
		close(r.done)
	}
}

// Done returns a channel that is closed when the round is decided.
func (r *Round) Done() <-chan struct{} { return r.done }

// Verdict returns the decision of the round. Later votes do not change it.
func (r *Round) Verdict() quorum.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.Verdict()
}

// Tally returns a copy of the count so far.
func (r *Round) Tally() quorum.Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Each calls f for the vote of every master of the round, with the lock of the round held. A vote that has not arrived
// yet is Unsure and has the outcome Failed.
func (r *Round) Each(f func(i int, v *Vote)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.asked.All() {
		f(i, &r.votes[i])
	}
}

// Vote returns the vote of master i so far.
func (r *Round) Vote(i int) Vote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.votes[i]
}

// Complete waits until every vote is in, and reports whether that was before ctx ended.
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
