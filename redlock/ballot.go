package redlock

import (
	"slices"
	"sync"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// Ballots proposes the numbers that acquires carry: the masters' own time in microseconds, as this client reckons it.
//
// It reads no clock: the present instant is an argument. What it knows of the masters' time is one offset a master,
// taken from INFO when a connection is made and on its heartbeat, and corrected by what refusals say; the median is
// used, so one master with a wrong clock moves nothing. Where a name's bar is above that time, the largest bar seen is
// remembered for that name alone: a bar that somebody poisoned costs its own name one step each, and no other name
// anything.
//
// Safe for concurrent use.
type ballots struct {
	mu      sync.Mutex
	offsets []int64          // master's time - own steady time, in us, by master
	known   []bool           // whether offsets[i] has been read
	scratch []int64          // for the median
	offset  int64            // the median of the known ones
	high    map[string]int64 // names whose bar is above the present time
}

// maxHigh bounds the memory for names with a bar above the present time. Forgetting one costs a refusal, no safety.
const maxHigh = 4096

func newBallots(n int) *ballots {
	return &ballots{offsets: make([]int64, n), known: make([]bool, n), high: make(map[string]int64)}
}

// learn takes note that master i showed the time t, in microseconds, at the instant at.
func (b *ballots) learn(i int, t int64, at clock.Instant) {
	if t <= 0 || t >= scripts.MaxBallot {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offsets[i], b.known[i] = t-micros(at), true
	b.scratch = b.scratch[:0]
	for j, ok := range b.known {
		if ok {
			b.scratch = append(b.scratch, b.offsets[j])
		}
	}
	slices.Sort(b.scratch)
	b.offset = b.scratch[(len(b.scratch)-1)/2]
}

// time reckons what the masters' clocks show at now, in microseconds: the median of those known, and master i's own
// where it is known.
func (b *ballots) time(now clock.Instant, i int) (median, own int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	median = b.offset + micros(now)
	if i >= 0 && b.known[i] {
		return median, b.offsets[i] + micros(now)
	}
	return median, median
}

// reckon is what the admission of masters goes by: of two middle clocks the later, since an early one would let a
// quarantine end early.
func (b *ballots) reckon(now clock.Instant) reckoning {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scratch = b.scratch[:0]
	for j, ok := range b.known {
		if ok {
			b.scratch = append(b.scratch, b.offsets[j])
		}
	}
	if len(b.scratch) == 0 {
		return reckoning{}
	}
	slices.Sort(b.scratch)
	return reckoning{median: b.scratch[len(b.scratch)/2] + micros(now), clocks: len(b.scratch)}
}

// propose returns a ballot for name: the present time, or one above floor and above the bars seen for the name where
// that is more. It fails with ErrTooFar where no exact number is left.
func (b *ballots) propose(now clock.Instant, name string, floor int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.offset + micros(now)
	ballot := max(t, min(floor, scripts.MaxBallot)+1) // a bar is any number that a master has
	if len(b.high) > 0 {
		if high, ok := b.high[name]; ok {
			if high >= t {
				ballot = max(ballot, high+1)
			} else {
				delete(b.high, name)
			}
		}
	}
	if ballot >= scripts.MaxBallot {
		delete(b.high, name) // the next call asks the masters anew; they may have been mended
		return 0, ErrTooFar
	}
	if ballot > t {
		b.rememberLocked(name, ballot, t)
	}
	return ballot, nil
}

// heal returns a ballot for one master whose bar is floor. It neither goes by what is remembered of the name nor adds to
// it: what one master's bar says is no matter of the others.
func (b *ballots) heal(now clock.Instant, floor int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ballot := max(b.offset+micros(now), min(floor, scripts.MaxBallot)+1)
	if ballot >= scripts.MaxBallot {
		return 0, ErrTooFar
	}
	return ballot, nil
}

// saw takes note of the floor that the votes of a round show for name. It replaces what was remembered: a floor that was
// too high, for want of votes, must not stay for ever, and one that is too low costs a refusal.
func (b *ballots) saw(now clock.Instant, name string, bar int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.high, name)
	if t := b.offset + micros(now); bar > t {
		b.rememberLocked(name, min(bar, scripts.MaxBallot), t)
	}
}

func (b *ballots) rememberLocked(name string, bar, t int64) {
	if _, ok := b.high[name]; !ok && len(b.high) >= maxHigh {
		for n, high := range b.high {
			if high < t || len(b.high) >= maxHigh {
				delete(b.high, n)
			}
		}
	}
	b.high[name] = max(b.high[name], bar)
}

func micros(at clock.Instant) int64 { return at.Steady() / 1000 }

// floorOf is the quorum-th smallest of the bars that the votes of a round show: a ballot above it can win, and a single
// master whose bar was poisoned does not drag the ballot up. For the same reason the largest never counts while not all
// masters have shown theirs: a round that is lost early has heard of few, and the poisoned one may be among them.
func floorOf(bars []int64, n int) int64 {
	known := len(bars)
	if known < n {
		known--
	}
	if known <= 0 {
		return 0
	}
	slices.Sort(bars)
	return bars[min(quorumOf(n), known)-1]
}
