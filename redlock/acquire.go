package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
)

// maxReproposals is how often an attempt whose ballot was refused is sent again at once, with a better one. After that
// it counts as contention.
const maxReproposals = 2

// An attempt is one try to acquire: one hold, and up to 1 + maxReproposals rounds for it.
type attempt struct {
	l    *Locker
	name string
	op   string
	mode scripts.Mode
	cfg  *lockConfig
	h    *hold

	keep    bool      // a failure is not rolled back: the caller goes on with the same hold
	snap    *snapshot // what the last round went by
	rounds  int
	before  []int64 // the largest ballot each master had been sent before the last round; nil: none
	touched uint64  // masters on which a round may have had an effect
	floor   int64   // the ballot must be above it
}

// run tries once and returns nil when the hold is won. On failure everything that may have been touched is being rolled
// back; nothing of that is waited for. sent reports whether anything was sent at all.
func (a *attempt) run(ctx context.Context) (sent bool, err error) {
	if a.snap, err = a.l.guard.ready(ctx); err != nil {
		return false, &LockError{Op: a.op, Name: a.name, Cause: err, Masters: a.l.statesOf(a.snap)}
	}
	for try := 0; ; try++ {
		var again bool
		if again, err = a.round(ctx, try < maxReproposals); !again {
			break
		}
		sent = true
		a.snap = a.l.guard.snap.Load()
	}
	if err != nil && !a.keep {
		a.rollBack()
	}
	return sent || a.rounds > 0, err
}

// round sends one complete round and waits for its decision.
func (a *attempt) round(ctx context.Context, mayRepeat bool) (again bool, err error) {
	if a.snap.voting < quorumOf(a.l.n) && a.mode == scripts.ModeAcquire {
		return false, &LockError{
			Op: a.op, Name: a.name, Decision: ErrNoQuorum, Quorum: quorumOf(a.l.n), N: a.l.n, Masters: a.l.statesOf(a.snap),
		}
	}
	start := a.l.now() // anew for each round, and before its first byte
	ballot, err := a.l.ballots.propose(start, a.name, a.floor)
	if err != nil {
		return false, &LockError{Op: a.op, Name: a.name, Decision: err}
	}
	if a.rounds++; a.rounds > 1 {
		a.h.another()
		a.before = slices.Clone(a.h.sentTo)
	}
	r := a.l.newRound(a.op, nil)
	a.send(r, ballot)
	return a.decide(ctx, r, start, ballot, mayRepeat)
}

// send queues the round to every master that may vote in it; the others' votes are cast here.
func (a *attempt) send(r *round, ballot int64) {
	call := a.snap.fleet.AcquireCall(a.h.id, a.mode, a.cfg.ttl, ballot, ballot, 1)
	for i := range a.snap.masters {
		m := &a.snap.masters[i]
		if v, no := a.l.refusal(i, m, a.cfg.ttl, a.mode, a.op); no {
			r.add(i, v)
			continue
		}
		stamp := m.stamp
		if a.mode != scripts.ModeAcquire {
			stamp.Text = m.text
		}
		a.h.touch(i, ballot)
		if err := a.l.pool.Send(i, call, stamp, r); err != nil {
			r.fail(i, err)
		}
	}
}

// refusal is the vote of a master that need not be asked.
func (l *Locker) refusal(i int, m *masterState, ttl time.Duration, mode scripts.Mode, op string) (vote, bool) {
	v := vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: m.err}
	switch {
	case m.phase == phaseDown:
	case m.phase == phaseConnecting && m.stamp.Session == 0:
		v.err = l.masterError(i, op, errNotYet)
	case m.guard > 0 && ttl > m.guard:
		v.Kind = scripts.Refused
		v.err = l.masterError(i, op, fmt.Errorf("%w: TTL %v, guard time of the fleet %v, of this Locker %v", ErrGuardTime, ttl, m.guard, l.cfg.guard))
	case mode != scripts.ModeAcquire, m.phase == phaseAdmitted:
		return vote{}, false
	case m.phase == phaseBlocked:
		v.Kind = scripts.Abstained
		v.err = l.masterError(i, op, m.err)
	default:
		v.Kind = scripts.Abstained
		v.err = l.masterError(i, op, l.quarantine(i, m))
	}
	if v.err == nil {
		v.err = l.masterError(i, op, errNotYet)
	}
	return v, true
}

var (
	errNotYet = errors.New("it was not heard of so far")
	errLookup = errors.New("its admission is being looked up")
)

// quarantine says for how long a master does not vote.
func (l *Locker) quarantine(i int, m *masterState) error {
	if m.phase != phasePending {
		return errLookup
	}
	_, own := l.ballots.time(l.now(), i)
	left := max(0, fromMicros(m.pending-own)).Round(time.Millisecond)
	return fmt.Errorf("%w for another %v, since it is new or may have forgotten locks; if nobody can hold a lock here, Locker.AdmitNow ends it", ErrQuarantine, left)
}

// statesOf lists the masters of s that do not vote, and why.
func (l *Locker) statesOf(s *snapshot) *multierror.Error {
	var errs []error
	for i := range s.masters {
		if m := &s.masters[i]; m.phase != phaseAdmitted {
			v, _ := l.refusal(i, m, 0, scripts.ModeAcquire, "acquire")
			errs = append(errs, v.err)
		}
	}
	return listErrors(errs)
}

// decide waits for the round and says what follows from it: success (nil), an error, or another round at once.
func (a *attempt) decide(ctx context.Context, r *round, start clock.Instant, ballot int64, mayRepeat bool) (again bool, err error) {
	var cause error
	select {
	case <-r.done:
	default:
		select {
		case <-r.done:
		case <-ctx.Done():
			cause = contextError(ctx)
		case <-a.l.closing:
			cause = ErrClosed
		}
	}
	now := a.l.now()
	v := r.verdict()
	switch {
	case v == won:
		ls := lease{start: start, ttl: a.cfg.ttl, drift: a.l.cfg.drift}
		left := ls.left(now)
		switch {
		case cause != nil:
			err = r.error(a.name, nil, cause)
		case left < a.cfg.least() && !unsafeNoRecheck:
			e := r.error(a.name, ErrTooSlow, nil)
			e.Decision = fmt.Errorf("%w: %v of validity left of %v, at least %v wanted", ErrTooSlow, left.Round(time.Microsecond), a.cfg.ttl, a.cfg.least())
			err = e
		default:
			a.h.token, a.h.lease, a.h.held = ballot, ls, r
		}
	case cause != nil:
		err = r.error(a.name, nil, cause)
	default:
		again = a.learn(r, start, now) && mayRepeat
		err = a.lostError(r)
	}
	a.traceAttempt(ballot, now.Sub(start), r, err)
	a.touched |= a.effects(r)
	return again, err
}

// lostError says how a round was lost. An import that a majority knows nothing of has nothing left to take over.
func (a *attempt) lostError(r *round) error {
	r.mu.Lock()
	decision := r.tally.decision()
	if a.mode == scripts.ModeImport && r.tally.n-r.tally.of(scripts.Missing)-r.tally.of(scripts.Held) < quorumOf(r.tally.n) {
		decision = ErrLost
	}
	r.mu.Unlock()
	return r.error(a.name, decision, nil)
}

// learn takes from the refusals what the next round, or the next attempt, needs to know: bars, times, markers. It
// reports whether another round of this attempt, with a better ballot or an up-to-date marker, may win.
func (a *attempt) learn(r *round, start, now clock.Instant) bool {
	arrived := start.Add(now.Sub(start) / 2)
	r.mu.Lock()
	defer r.mu.Unlock()
	bars := make([]int64, 0, a.l.n)
	for i := range r.votes {
		v := &r.votes[i]
		switch v.Kind {
		case scripts.Granted:
			bars = append(bars, a.h.ballot)
		case scripts.Held, scripts.Missing:
			bars = append(bars, v.Bar)
		case scripts.Stale, scripts.Ahead:
			bars = append(bars, v.Bar)
			a.l.ballots.learn(i, v.Time, arrived)
			if v.Kind == scripts.Ahead {
				a.unsend(i)
			}
		}
	}
	if r.tally.of(scripts.Stale)+r.tally.of(scripts.Ahead) == 0 {
		return false
	}
	a.floor = floorOf(bars, r.tally.n)
	a.l.ballots.saw(now, a.name, a.floor)
	return r.tally.mayRepropose()
}

// unsend takes back that the last ballot went to master i: refused as ahead, it can have no effect there, and a release
// that carried it would be refused the raising of the bar.
func (a *attempt) unsend(i int) {
	a.h.another()
	a.h.sentTo[i] = 0
	if a.before != nil {
		a.h.sentTo[i] = a.before[i]
	}
	if a.h.sentTo[i] == 0 {
		a.h.sent &^= 1 << i
	}
}

// effects is the set of masters on which a round had an effect, or may still have one. An error reply counts: a user
// who lacks the right to one of the commands ends the script between two writes.
func (a *attempt) effects(r *round) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := uint64(0)
	for i := range r.votes {
		if v := &r.votes[i]; v.Kind == scripts.Granted || (v.unsure() || v.Kind == scripts.Failed && pool.Answered(v.err)) && !unsafeNoUnknown {
			set |= 1 << i
		}
	}
	return set & a.h.sent
}

// rollBack releases what was taken, and bars what may still be on its way. It returns at once.
func (a *attempt) rollBack() {
	if set := a.touched & a.h.sent; set != 0 {
		a.h.release("roll back", set)
	}
}

func (a *attempt) traceAttempt(ballot int64, elapsed time.Duration, r *round, err error) {
	if t := a.l.cfg.trace; t != nil && t.Attempt != nil {
		t.Attempt(AttemptInfo{
			Name: a.name, ID: a.h.id.ID, Ballot: ballot, Elapsed: elapsed, Granted: r.granted(),
			Quorum: quorumOf(a.l.n), N: a.l.n, Err: err,
		})
	}
}
