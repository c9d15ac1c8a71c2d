package ballot

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// ErrTokensExhausted means that a ballot would be 2^53 or more. Redis scripts cannot represent all such numbers
// exactly.
var ErrTokensExhausted = errors.New("redlock: fencing tokens of this name exhausted")

// maxHigh limits the number of names in Ballots.high. A dropped name may cost a refused attempt, but not safety.
const maxHigh = 4096

// Ballots proposes ballots. A fence far ahead of the clock, set by mistake or on purpose, affects only the ballots of
// its own name, which then increase by one with each attempt. Ballots are safe for concurrent use.
type Ballots struct {
	*Clocks

	mu   sync.Mutex
	high map[string]int64 // maps a name to its fence, or to its last ballot, if that was above the present time
}

// New returns the ballots of a client that uses the masters of rule.
func New(rule quorum.Rule) *Ballots {
	return &Ballots{Clocks: NewClocks(rule), high: make(map[string]int64)}
}

// Propose returns a range of ballots for name, from first to last. The range begins at the present time, or just above
// fence or the stored fence of the name if one of these is larger. A range that begins at the present time has
// additional ballots for local hand-offs, whose number is spare. Any other range has one ballot, so that a name with
// frequent hand-offs does not run ahead of the clock.
//
// Granted ranges of one name never overlap: the masters refuse a range that does not begin above the end of the last
// one.
func (b *Ballots) Propose(now clock.Instant, name string, fence int64, spare int) (first, last int64, err error) {
	t := b.Ballot(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	high := b.high[name]
	if high < t {
		delete(b.high, name)
	}
	first = max(t, next(fence), next(high))
	switch {
	case first >= scripts.MaxBallot:
		delete(b.high, name) // the next call may try a ballot of the present time: the fence may have been fixed
		return 0, 0, ErrTokensExhausted
	case first > t:
		b.rememberLocked(name, first)
		return first, first, nil
	}
	return first, min(first+int64(spare), scripts.MaxBallot-1), nil
}

// Term returns the term of a lease that begins at now. Its deadline counts from a time that is not earlier than any
// correct clock that is known, as long as a minority of the masters has a wrong one and the correct ones are within
// skew.Window of each other. A clock that is not read any more is known up to its drift. If ttl is 0, the result is the
// zero Term.
func (c *Clocks) Term(now clock.Instant, ttl time.Duration) scripts.Term {
	if ttl == 0 {
		return scripts.Term{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := micros(now)
	until := asked + (ttl + time.Microsecond - 1).Microseconds()
	if c.known != 0 {
		asked, until = c.ballotLocked(now), until+c.until+c.driftLocked(now)
	}
	within := func(us int64) int64 { return min(max(us, 0), scripts.MaxBallot) }
	return scripts.Term{TTL: ttl, Until: within(until), Asked: within(asked)}
}

// LatestCorrect returns the masters' time at now from which deadlines count: see Term.
func (c *Clocks) LatestCorrect(now clock.Instant) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until + micros(now) + c.driftLocked(now)
}

// Ballot returns the masters' time at now for ballots: not later than some correct clock, as long as a minority of the
// masters has a wrong one.
func (c *Clocks) Ballot(now clock.Instant) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ballotLocked(now)
}

func (c *Clocks) ballotLocked(now clock.Instant) int64 {
	if c.known == 0 {
		return micros(now)
	}
	return c.ballot + micros(now) - c.driftLocked(now)
}

// Repair returns a ballot for the repair of a lease on one master, which has this fence. It neither uses nor changes
// the stored fence of the name, because the fence of one master does not affect the others.
func (b *Ballots) Repair(now clock.Instant, fence int64) (int64, error) {
	ballot := max(b.Ballot(now), next(fence))
	if ballot >= scripts.MaxBallot {
		return 0, ErrTokensExhausted
	}
	return ballot, nil
}

// Saw stores the fence of name that [Floor] has determined from the votes of a round. The fence replaces the stored
// one, even a larger one: a fence that is too high, because few masters have voted, must not stay forever. A fence that
// is too low costs only a refused attempt.
func (b *Ballots) Saw(now clock.Instant, name string, fence int64) {
	t := b.Ballot(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.high, name)
	if fence >= t {
		b.rememberLocked(name, min(fence, scripts.MaxBallot))
	}
}

func (b *Ballots) rememberLocked(name string, fence int64) {
	if _, ok := b.high[name]; !ok && len(b.high) >= maxHigh {
		clear(b.high)
	}
	b.high[name] = max(b.high[name], fence)
}

// next returns the smallest ballot above fence, or scripts.MaxBallot+1 if fence is too large for that.
func next(fence int64) int64 { return min(fence, scripts.MaxBallot) + 1 }

// Floor returns a fence above which a ballot can win: the quorum-th smallest of fences, which the votes of a round have
// shown. Of the n masters, failed are known to have failed. A minority of the masters may be faulty. Those of this
// minority that have not failed may have shown fences that are too high, so Floor ignores the largest fences, one for
// each such master. If only a few masters have voted before the round was lost, all fences may be too high, and Floor
// returns 0. Floor sorts fences.
func Floor(fences []int64, n, failed int) int64 {
	q := quorum.Quorum(n)
	index := min(q, len(fences)-max(0, n-q-failed)) - 1
	if index < 0 {
		return 0
	}
	slices.Sort(fences)
	return fences[index]
}
