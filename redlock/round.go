package redlock

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// A vote is what is known of one master in one round.
type vote struct {
	scripts.Vote
	in  bool
	err error // Kind Failed: why
}

// unsure reports whether the call may have had, or may yet have, an effect on the master.
func (v *vote) unsure() bool {
	if !v.in {
		return true
	}
	var e *pool.Error
	return v.Kind == scripts.Failed && errors.As(v.err, &e) && e.Unknown
}

// A round is one call sent to all masters, and the votes that come back. Votes are added by the goroutines of the
// connections; done is closed by the one that decides, and later votes are still booked.
type round struct {
	l       *Locker
	op      string
	release bool // replies are those of a release
	booker  booker

	of    *members // what it goes by
	asked uint64   // the masters that are to vote; those beyond the rule decide nothing

	queued clock.Instant // when the first call was about to be; zero where nobody is told of votes

	done chan struct{} // closed when the verdict is no longer pending
	all  chan struct{} // guarded by mu: closed with the last vote; nil where nobody waits for it

	mu      sync.Mutex
	tally   tally  // guarded by mu
	votes   []vote // guarded by mu
	early   uint64 // guarded by mu: masters that have granted by a message before their answer came
	decided verdict
	keeper  *hold   // guarded by mu: who waits for the last vote
	room    [5]vote // what votes is cut from where there are no more masters
}

// A booker is told of each vote, in the goroutine of the connection, outside of all locks; decides is true for the vote
// that decided the round, and last for the last one. It must not block.
type booker interface {
	booked(r *round, i int, v vote, decides, last bool)
}

func (l *Locker) newRound(set *members, op string, b booker) *round {
	r := &round{}
	r.init(l, set, op, b)
	return r
}

// init makes a zero round one that can be sent. It stays where it is: its votes may be in it.
func (r *round) init(l *Locker, set *members, op string, b booker) {
	r.l, r.of, r.op, r.booker, r.done = l, set, op, b, make(chan struct{})
	r.tally.rule, r.asked = set.rule, set.rule.all()
	if t := l.cfg.trace; t != nil && t.Vote != nil {
		r.queued = l.now()
	}
	if n := set.slots; n <= len(r.room) {
		r.votes = r.room[:n:n]
	} else {
		r.votes = make([]vote, n)
	}
}

// Reply implements pool.Receiver.
func (r *round) Reply(i int, value any, err error) {
	v := vote{in: true}
	if err == nil {
		if v.Vote, err = r.decode(value); err != nil {
			// An answer that no script of ours gives: whatever runs there may have done anything.
			err = &pool.Error{Addr: r.l.pool.Addr(i), Op: r.op, Err: err, Unknown: true}
		}
	}
	if err != nil {
		v.Vote, v.err = scripts.Vote{Kind: scripts.Failed}, err
	}
	r.add(i, v)
}

func (r *round) decode(value any) (scripts.Vote, error) {
	if !r.release {
		return scripts.DecodeVote(value)
	}
	present, err := scripts.DecodeReleased(value)
	if present {
		return scripts.Vote{Kind: scripts.Granted}, err
	}
	return scripts.Vote{Kind: scripts.Missing}, err
}

// add counts one vote. Each master has one.
func (r *round) add(i int, v vote) {
	v.in = true
	r.mu.Lock()
	if v.Kind == scripts.Held && r.early&(1<<i) != 0 {
		v.Vote = scripts.Vote{Kind: scripts.Granted}
	}
	r.votes[i] = v
	r.tally.add(i, v.Kind)
	decides := r.decidesLocked()
	last := r.tally.in() == r.asked
	var keeper *hold
	if last {
		keeper, r.keeper = r.keeper, nil
		if r.all != nil {
			close(r.all)
		}
	}
	r.mu.Unlock()
	if keeper != nil {
		keeper.settle(r)
	}
	if !r.queued.IsZero() {
		r.traceVote(i, v.Kind, decides)
	}
	if v.Kind == scripts.Abstained && v.err == nil {
		r.l.guard.doubt(i)
	}
	if r.booker != nil {
		r.booker.booked(r, i, v, decides, last)
	}
	if decides {
		close(r.done)
	}
}

// keep has h settle what r says once all votes are in. h.mu is not held.
func (r *round) keep(h *hold) {
	r.mu.Lock()
	over := r.tally.in() == r.asked
	if !over {
		r.keeper = h
	}
	r.mu.Unlock()
	if over {
		h.settle(r)
	}
}

// decidesLocked decides the round where its votes do, and reports whether they do so now.
func (r *round) decidesLocked() bool {
	if r.decided != pending {
		return false
	}
	r.decided = r.tally.verdict()
	return r.decided != pending
}

// turn makes the refusal of master i a grant: a release has written there what this round has asked for. A refusal that
// is still on its way becomes one when it comes. A round that was lost stays so; see taken.
func (r *round) turn(i int) {
	r.mu.Lock()
	v := &r.votes[i]
	decides := false
	switch {
	case !v.in:
		r.early |= 1 << i
	case v.Kind == scripts.Held:
		v.Vote = scripts.Vote{Kind: scripts.Granted}
		r.tally.turn(i, scripts.Held, scripts.Granted)
		decides = r.decidesLocked()
	}
	r.mu.Unlock()
	if decides {
		close(r.done)
	}
}

// taken reports whether a quorum has granted by now, also where the round was lost before.
func (r *round) taken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.verdict() == won
}

// fail counts a vote that was never asked for.
func (r *round) fail(i int, err error) {
	r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: r.l.masterError(i, r.op, err)})
}

// clouded reports whether a vote has come whose outcome is unknown.
func (r *round) clouded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.votes {
		if v := &r.votes[i]; v.in && v.unsure() {
			return true
		}
	}
	return false
}

// verdict is what the votes say now.
func (r *round) verdict() verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decided
}

// granted is the number of masters that have said yes by now.
func (r *round) granted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.of(scripts.Granted)
}

// set is the set of masters that have answered with k.
func (r *round) set(k scripts.Kind) (set uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.set(k)
}

// pending is the set of masters whose votes are still to come.
func (r *round) pending() (set uint64) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked &^ r.tally.in()
}

// masterError names master i in an error, unless it is named already.
func (l *Locker) masterError(i int, op string, err error) error {
	var e *pool.Error
	if errors.As(err, &e) {
		return err
	}
	return &pool.Error{Addr: l.pool.Addr(i), Op: op, Err: err}
}

// failures lists what went wrong on which master, and when the refusals let a quorum be free. r.mu is held.
func (r *round) failuresLocked() (errs []error, left time.Duration) {
	for i := range r.votes {
		v := &r.votes[i]
		switch {
		case !v.in:
		case v.Kind == scripts.Failed:
			errs = append(errs, v.err)
		case v.Kind == scripts.Abstained:
			err := v.err
			if err == nil {
				err = fmt.Errorf("%w: it has forgotten its admission and begins a quarantine", ErrQuarantine)
				if v.Marker != "" {
					err = fmt.Errorf("%w: its marker is another than was known, and is being looked at", ErrQuarantine)
				}
			}
			errs = append(errs, r.l.masterError(i, r.op, err))
		case v.Kind == scripts.Refused:
			err := v.err
			if err == nil {
				err = fmt.Errorf("%w: its marker is %q", ErrGuardTime, v.Marker)
			}
			errs = append(errs, r.l.masterError(i, r.op, err))
		case v.Kind == scripts.Held:
			if v.Holder == "" { // it is free; others are first
				v.Left = 0
			} else if v.Left < 0 { // a key without a TTL is not ours, and does not end by itself
				v.Left = math.MaxInt64
			}
		}
	}
	for _, set := range r.tally.rule.sets() {
		left = max(left, r.freeInLocked(set))
	}
	return errs, left
}

// freeInLocked is freeIn for the masters of one set.
func (r *round) freeInLocked(set uint64) time.Duration {
	held := r.tally.set(scripts.Held) & set
	if held == 0 {
		return 0
	}
	times := make([]time.Duration, 0, bits.OnesCount64(held))
	for held != 0 {
		times = append(times, r.votes[popFirst(&held)].Left)
	}
	ill := r.tally.set(scripts.Failed) | r.tally.set(scripts.Abstained) | r.tally.set(scripts.Refused)
	return freeIn(times, bits.OnesCount64(set), bits.OnesCount64(ill&set))
}

// freeIn is when enough of the refusing masters are free for a quorum: all that did not refuse count as free.
func freeIn(left []time.Duration, n, failed int) time.Duration {
	need := quorumOf(n) - (n - failed - len(left))
	if need <= 0 || need > len(left) {
		return 0
	}
	for i := 1; i < len(left); i++ { // insertion sort: there are a handful
		for j := i; j > 0 && left[j] < left[j-1]; j-- {
			left[j], left[j-1] = left[j-1], left[j]
		}
	}
	if left[need-1] == math.MaxInt64 {
		return 0
	}
	return left[need-1]
}

// error describes how the round failed. decision may be nil where a context ended the wait.
func (r *round) error(name string, decision, cause error) *LockError {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs, left := r.failuresLocked()
	return &LockError{
		Op: r.op, Name: name, Decision: decision, Cause: cause,
		Granted: r.tally.of(scripts.Granted), Missing: r.tally.of(scripts.Missing), Quorum: r.tally.rule.least(), N: r.tally.rule.n(),
		Left: left, Masters: listErrors(errs),
	}
}

// passing reports whether what failed may succeed later: everything but an error reply that will be the same again.
func passing(err error) bool { return !pool.Answered(err) || pool.Transient(err) }
