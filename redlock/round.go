package redlock

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

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

	done chan struct{} // closed when the verdict is no longer pending

	mu      sync.Mutex
	tally   tally  // guarded by mu
	votes   []vote // guarded by mu
	decided verdict
}

// A booker is told of each vote, in the goroutine of the connection, outside of all locks; decides is true for the vote
// that decided the round, and last for the last one. It must not block.
type booker interface {
	booked(r *round, i int, v vote, decides, last bool)
}

func (l *Locker) newRound(op string, b booker) *round {
	return &round{l: l, op: op, booker: b, done: make(chan struct{}), tally: tally{n: l.n}, votes: make([]vote, l.n)}
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
	r.votes[i] = v
	r.tally.add(v.Kind)
	decides := false
	if r.decided == pending {
		r.decided = r.tally.verdict()
		decides = r.decided != pending
	}
	last := r.tally.in() == r.tally.n
	r.mu.Unlock()
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

// fail counts a vote that was never asked for.
func (r *round) fail(i int, err error) {
	r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: r.l.masterError(i, r.op, err)})
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
	var times []time.Duration
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
			}
			errs = append(errs, r.l.masterError(i, r.op, err))
		case v.Kind == scripts.Refused:
			err := v.err
			if err == nil {
				err = fmt.Errorf("%w: its marker is %q", ErrGuardTime, v.Marker)
			}
			errs = append(errs, r.l.masterError(i, r.op, err))
		case v.Kind == scripts.Held:
			if v.Left < 0 { // a key without a TTL is not ours, and does not end by itself
				v.Left = math.MaxInt64
			}
			times = append(times, v.Left)
		}
	}
	return errs, freeIn(times, r.tally.n, len(errs))
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
		Granted: r.tally.of(scripts.Granted), Quorum: quorumOf(r.tally.n), N: r.tally.n,
		Left: left, Masters: listErrors(errs),
	}
}

// passing reports whether what failed may succeed later: everything but an error reply that will be the same again.
func passing(err error) bool { return !pool.Answered(err) || pool.Transient(err) }
