package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/teeth"
	"github.com/redlock-go/redlock/pool"
)

// maxReproposals is how often an attempt whose ballot was refused is sent again at once, with a better one. After that
// it counts as contention.
const maxReproposals = 2

// maxOffer is for how long after an ask a release may write the hold that it was about: while its sender is likely to be
// awake, since one that is not costs the others the TTL.
const maxOffer = time.Second

// oldestFrom is how old the ballot of a waiter may be that asks again and keeps its place among the ballots.
const oldestFrom = 3 * time.Second

// An attempt is one try to acquire: one hold, and up to 1 + maxReproposals rounds for it. That of a waiter stays open while
// it is parked, and asks again, as long as nothing of it is rolled back: releases may write its hold meanwhile.
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
	before  []int64  // the largest ballot each master had been sent before the last round; nil: none
	touched uint64   // masters on which a round whose votes are all in has had an effect
	open    []*round // the other rounds
	floor   int64    // the ballot must be above it
	lowest  int64    // of all ballots of the hold
	highest int64    // of them, with their blocks
	ahead   bool     // the last round was refused as ahead by so many masters that a larger ballot is of no use
	kept    uint64   // with a tooth out: masters that granted an earlier round
	mend    uint64   // masters that an import gives the hold to, a majority of another set having confirmed it

	w       *waiter // whose ticket the rounds carry; nil: none
	offered bool    // rounds have offered the hold to releases
	tried   bool    // the last ask has gone on from grants of the one before
	from    int64   // the ballot of the next round, rather than the present time; 0: none
	dead    bool    // it is rolled back: its hold is not asked for again
	unclear bool    // a round whose votes are all in has a vote of unknown outcome

	start   clock.Instant // of the last round, like all below
	ballot  int64
	end     int64 // of the block of ballots
	spare   int64 // tokens to be reserved for those whom the hold is handed on to
	last    *round
	elapsed time.Duration // of the last round
	split   bool          // the last round was lost, but nobody has won
	keeping bool          // we keep what we have, and ask again
	place   int           // in the masters' queues
}

// run tries once and returns nil when the hold is won. On failure everything that may have been touched is being rolled
// back, and nothing of that is waited for; or the attempt of a waiter stays open. sent reports whether anything was sent at
// all.
func (a *attempt) run(ctx context.Context) (sent bool, err error) {
	before := a.rounds
	a.tried, a.keeping, a.split = a.last != nil && a.last.granted() > 0, false, false
	if a.snap, err = a.l.guard.ready(ctx); err != nil {
		return false, &LockError{Op: a.op, Name: a.name, Cause: err, Masters: a.l.statesOf(a.snap)}
	}
	err = a.ask(ctx)
	for n := 0; err != nil && a.keeps(ctx, err) && n < maxReasks; n++ {
		a.keeping = true
		a.snap = a.l.guard.snap.Load()
		err = a.ask(ctx)
	}
	if err != nil && !a.keep && (a.w == nil || worthAnother(err) && !a.parks(err)) {
		a.rollBack() // where a waiter gives up, it does
	}
	return a.rounds > before, err
}

// parks reports whether the attempt, which has failed with err, stays open while its waiter sleeps: another holds the name,
// and will hand it on. What some masters have granted is kept until it has asked once more, where the other has a majority of
// all: its release is on its way, as a rule. A master that may have granted without being heard is told of the end at once.
func (a *attempt) parks(err error) bool {
	var e *LockError
	if !a.w.queuing || a.split || a.ahead || !errors.As(err, &e) || !errors.Is(e.Decision, ErrHeld) {
		return false
	}
	return !a.clouded() && (a.last.granted() == 0 || !a.tried && a.last.heldByMost())
}

// clouded reports whether a vote has come whose outcome is unknown.
func (a *attempt) clouded() bool {
	return a.unclear || slices.ContainsFunc(a.open, (*round).clouded)
}

// offer is for how long a release may write the hold of a round that begins now: what is left after that must be what was
// asked for, with as much again for the word of it. A hold is written only by the word of a marker.
func (a *attempt) offer() time.Duration {
	if a.l.cfg.guard == 0 || !a.w.queuing {
		return 0
	}
	return max(0, min(maxOffer, (a.cfg.ttl-a.l.cfg.drift.Of(a.cfg.ttl)-a.cfg.least())/2))
}

// ask sends rounds until one is decided by more than its ballot.
func (a *attempt) ask(ctx context.Context) error {
	for try := 0; ; try++ {
		again, err := a.round(ctx, try < maxReproposals)
		if !again {
			return err
		}
		a.snap = a.l.guard.snap.Load()
	}
}

// round sends one complete round and waits for its decision.
func (a *attempt) round(ctx context.Context, mayRepeat bool) (again bool, err error) {
	if rule := a.snap.set.rule; !rule.has(a.snap.voting) && a.mode == scripts.ModeAcquire && !teeth.QuorumOfConnected {
		return false, &LockError{
			Op: a.op, Name: a.name, Decision: ErrNoQuorum, Quorum: rule.least(), N: rule.n(), Masters: a.l.statesOf(a.snap),
		}
	}
	start := a.l.now() // anew for each round, and before its first byte
	ballot, last, err := a.propose(start)
	if err != nil {
		return false, &LockError{Op: a.op, Name: a.name, Decision: err}
	}
	if a.rounds++; a.rounds > 1 {
		a.h.another()
		a.before = slices.Clone(a.h.sentTo)
	}
	var b booker
	if a.w != nil {
		b = a.w
	}
	r := a.l.newRound(a.snap.set, a.op, b)
	a.last, a.start, a.ballot, a.end = r, start, ballot, last
	if a.w != nil {
		a.w.asks(&asked{round: r, hold: a.h.id().ID, ballot: ballot, masters: a.snap.masters})
	}
	a.send(r, ballot, last)
	return a.decide(ctx, r, start, ballot, last, mayRepeat)
}

// propose returns the ballots of the next round. No two rounds of a hold have the same: a master that has the hold, and has it
// by this ballot, says yes and writes nothing, since it takes it for the same round; and word of it may have been written in
// answer to the earlier, so its time would be counted from a start that is too late. A hold that should go lower, its ballots
// being ahead, goes below all of them, or is given up.
func (a *attempt) propose(start clock.Instant) (ballot, last int64, err error) {
	age := min(oldestFrom, a.l.window(a.l.cfg.guard)/4)
	ballot, last, err = a.l.ballots.proposeFrom(start, a.name, a.floor, a.spare, a.from, age)
	if err == nil && ballot <= a.highest && (!a.ahead || last >= a.lowest) && !teeth.SameBallots {
		ballot, last, err = a.l.ballots.proposeFrom(start, a.name, a.highest, a.spare, 0, age)
	}
	a.from, a.ahead = 0, false
	if err != nil {
		return 0, 0, err
	}
	if a.highest == 0 {
		a.lowest = ballot
	}
	a.lowest, a.highest = min(a.lowest, ballot), max(a.highest, last)
	return ballot, last, nil
}

// send queues the round to every master that may vote in it; the others' votes are cast here.
func (a *attempt) send(r *round, ballot, last int64) {
	var call *scripts.Call
	if a.w != nil {
		offer := a.offer()
		a.offered = a.offered || offer > 0
		call = a.snap.fleet.QueueCall(*a.h.id(), a.w.ticket, a.w.inTurn && !a.keeping, a.cfg.ttl, offer, ballot, last)
	} else {
		call = a.snap.fleet.AcquireCall(*a.h.id(), a.mode, a.cfg.ttl, ballot, last, 1)
	}
	for rest := r.asked; rest != 0; {
		i := popFirst(&rest)
		m := &a.snap.masters[i]
		if teeth.KeepGrants && a.kept&(1<<i) != 0 {
			r.add(i, vote{Vote: scripts.Vote{Kind: scripts.Granted}})
			continue
		}
		if v, no := a.l.refusal(i, m, a.cfg.ttl, a.mode, a.op); no {
			r.add(i, v)
			continue
		}
		stamp := m.stamp
		if a.mode != scripts.ModeAcquire {
			stamp.Text = m.text
		}
		a.h.touch(i, last)
		c := call
		if a.mend&bit(i) != 0 {
			c = a.snap.fleet.AcquireCall(*a.h.id(), scripts.ModeHeal, a.cfg.ttl, ballot, last, 1)
		}
		if err := a.l.pool.Send(i, c, stamp, r); err != nil {
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
	case m.guard > 0 && ttl > m.guard && !teeth.OwnGuardTime:
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
	for _, i := range s.set.order {
		if m := &s.masters[i]; m.phase != phaseAdmitted {
			v, _ := l.refusal(i, m, 0, scripts.ModeAcquire, "acquire")
			errs = append(errs, v.err)
		}
	}
	return listErrors(errs)
}

// decide waits for the round and says what follows from it: success (nil), an error, or another round at once.
func (a *attempt) decide(ctx context.Context, r *round, start clock.Instant, ballot, last int64, mayRepeat bool) (again bool, err error) {
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
		case left < a.cfg.least() && !teeth.NoRecheck:
			e := r.error(a.name, ErrTooSlow, nil)
			e.Decision = fmt.Errorf("%w: %v of validity left of %v, at least %v wanted", ErrTooSlow, left.Round(time.Microsecond), a.cfg.ttl, a.cfg.least())
			err = e
		default:
			a.h.token, a.h.blockEnd, a.h.lease, a.h.since = ballot, last, ls, start
			a.h.holdBy(r)
			r.keep(a.h)
		}
	case cause != nil:
		err = r.error(a.name, nil, cause)
	default:
		again = a.mends(ctx, r) && mayRepeat
		again = a.learn(r, start, now) && mayRepeat || again
		err = a.lostError(r)
	}
	a.elapsed = now.Sub(start)
	a.open = append(a.open, r)
	a.fold()
	a.traceAttempt(ballot, a.elapsed, r, err)
	if teeth.KeepGrants {
		a.kept |= r.set(scripts.Granted)
	}
	return again, err
}

// takes reports whether a quorum has granted the last round after all, by messages, and too little validity was not left by
// then: the hold is won. late is true where it was.
func (a *attempt) takes(now clock.Instant) (takes, late bool) {
	if a.dead || a.last == nil || !a.last.taken() {
		return false, false
	}
	ls := lease{start: a.start, ttl: a.cfg.ttl, drift: a.l.cfg.drift}
	if ls.left(now) < a.cfg.least() && !teeth.NoRecheck {
		return false, true
	}
	// It has been waited for since it was asked for. The time for which it is handed on, and the longest that it may be
	// held, begin now.
	a.h.token, a.h.blockEnd, a.h.lease, a.h.since = a.ballot, a.end, ls, now
	if a.cfg.maxHold > 0 {
		a.h.maxEnd = now.Add(a.cfg.maxHold)
	}
	a.h.holdBy(a.last)
	a.last.keep(a.h)
	a.traceAttempt(a.ballot, now.Sub(a.start), a.last, nil)
	return true, false
}

// lostError says how a round was lost. An import that a majority knows nothing of has nothing left to take over.
func (a *attempt) lostError(r *round) error {
	r.mu.Lock()
	decision := r.tally.decision()
	rule := r.tally.rule
	if a.mode == scripts.ModeImport && !rule.either(rule.all()&^r.tally.set(scripts.Missing)&^r.tally.set(scripts.Held)) {
		decision = ErrLost
	}
	r.mu.Unlock()
	return r.error(a.name, decision, nil)
}

// mends reports whether an import that one of two sets has confirmed is to be asked for again, and given to the masters of
// the other that know nothing of it: the hold was won by one set alone.
func (a *attempt) mends(ctx context.Context, r *round) bool {
	if a.mode != scripts.ModeImport || !r.tally.rule.joint() || !r.complete(ctx, r.of.slowest) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.tally.rule.either(r.tally.set(scripts.Granted)) {
		return false
	}
	a.mend |= r.tally.set(scripts.Missing)
	return a.mend != 0
}

// learn takes from the refusals what the next round, or the next attempt, needs to know: bars, times, markers. It
// reports whether another round of this attempt, with a better ballot or an up-to-date marker, may win.
func (a *attempt) learn(r *round, start, now clock.Instant) bool {
	arrived := start.Add(now.Sub(start) / 2)
	r.mu.Lock()
	defer r.mu.Unlock()
	bars, known, ill := make([]int64, 2*len(r.votes)), uint64(0), r.tally.unable()
	for i := range r.votes {
		v := &r.votes[i]
		if errors.Is(v.err, errNotYet) || errors.Is(v.err, errLookup) {
			ill &^= bit(i) // it is well, as far as is known
		}
		switch v.Kind {
		case scripts.Granted:
			bars[i], known = a.h.ballot, known|bit(i)
		case scripts.Held, scripts.Missing:
			bars[i], known = v.Bar, known|bit(i)
			a.l.ballots.refine(i, v.Time, arrived, now.Sub(start)/2)
		case scripts.Stale, scripts.Ahead:
			bars[i], known = v.Bar, known|bit(i)
			a.l.ballots.learn(i, v.Time, arrived)
			if v.Kind == scripts.Ahead {
				a.unsend(i)
			}
		}
	}
	if r.tally.of(scripts.Stale)+r.tally.of(scripts.Ahead) == 0 {
		return false
	}
	a.ahead = !r.tally.rule.has(r.tally.rule.all() &^ r.tally.set(scripts.Ahead))
	a.floor = 0
	for _, set := range r.tally.rule.sets() {
		some := bars[len(r.votes):len(r.votes)]
		for rest := known & set; rest != 0; {
			some = append(some, bars[popFirst(&rest)])
		}
		a.floor = max(a.floor, floorOf(some, bits.OnesCount64(set), bits.OnesCount64(ill&set)))
	}
	a.l.ballots.saw(now, a.name, a.floor)
	return r.tally.mayRepropose()
}

// unsend takes back that the last ballot went to master i: refused as ahead, it can have no effect there, and a release
// that carried it would be refused the raising of the bar.
func (a *attempt) unsend(i int) {
	a.h.another()
	a.h.sentTo[i] = 0
	if i < len(a.before) {
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
		if v := &r.votes[i]; v.Kind == scripts.Granted || (v.unsure() || v.Kind == scripts.Failed && pool.Answered(v.err)) && !teeth.NoUnknown {
			set |= 1 << i
		}
	}
	return set
}

// fold takes the rounds whose votes are all in into touched.
func (a *attempt) fold() {
	a.open = slices.DeleteFunc(a.open, func(r *round) bool {
		over := r.pending() == 0
		if over {
			a.touched |= a.effects(r)
			a.unclear = a.unclear || r.clouded()
		}
		return over
	})
}

// all is the set of masters on which the attempt has had an effect, or may still have one.
func (a *attempt) all() uint64 {
	set := a.touched
	for _, r := range a.open {
		set |= a.effects(r)
	}
	return set
}

// rollBack releases what was taken, and bars what may still be on its way, or be written by a release. It returns at once.
// The hold is not asked for again: a release of it that comes late must find nothing.
func (a *attempt) rollBack() {
	a.dead = true
	queued := uint64(0)
	if a.w != nil {
		queued = a.w.forget() // from here on no message counts
	}
	set := a.all()
	if a.offered {
		set |= queued
	}
	if set &= a.h.sent; set != 0 {
		next := scripts.Nothing // whoever holds it tells the waiters
		if a.split || a.last == nil || !a.last.heldByOne() {
			next = scripts.Tell
		}
		a.h.sendRelease("roll back", set, next)
	}
}

func (a *attempt) traceAttempt(ballot int64, elapsed time.Duration, r *round, err error) {
	if t := a.l.cfg.trace; t != nil && t.Attempt != nil {
		t.Attempt(AttemptInfo{
			Name: a.name, ID: a.h.id().ID, Ballot: ballot, Elapsed: elapsed, Granted: r.granted(),
			Quorum: r.tally.rule.least(), N: r.tally.rule.n(), Err: err,
		})
	}
}
