package redlock

import (
	"slices"
	"sync"
	"time"

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
	within  []time.Duration  // by how much offsets[i] may be wrong, as far as refinements know; 0: it was not refined
	members uint64           // those that count
	scratch []int64          // for the median
	offset  int64            // the median of the known ones that count
	high    map[string]int64 // names whose bar is above the present time
}

// maxHigh bounds the memory for names with a bar above the present time. Forgetting one costs a refusal, no safety.
const maxHigh = 4096

func newBallots(n int) *ballots {
	b := &ballots{high: make(map[string]int64)}
	b.change(oneSet(n).all(), n)
	return b
}

// learn takes note that master i showed the time t, in microseconds, at the instant at.
func (b *ballots) learn(i int, t int64, at clock.Instant) {
	if t <= 0 || t >= scripts.MaxBallot {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.growLocked(i + 1) // another Locker of the pool may have named it
	b.within[i] = 0
	b.setLocked(i, t-micros(at))
}

// refine is learn for a reading that came by the way, and may be wrong by as much as within: it is taken where it is
// better than the last refinement. Waiters need it: they follow each other within a round trip, and one whose ballot
// lags behind the clock of its predecessor is refused once more.
func (b *ballots) refine(i int, t int64, at clock.Instant, within time.Duration) {
	if t <= 0 || t >= scripts.MaxBallot {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[i] && (b.within[i] == 0 || within < b.within[i]) {
		b.within[i] = max(within, 1)
		b.setLocked(i, t-micros(at))
	}
}

func (b *ballots) setLocked(i int, offset int64) {
	b.offsets[i], b.known[i] = offset, true
	b.middleLocked()
}

func (b *ballots) middleLocked() {
	if b.gatherLocked() != 0 {
		b.offset = b.scratch[(len(b.scratch)-1)/2]
	}
}

// gatherLocked sorts the offsets that count into scratch, and returns whose they are.
func (b *ballots) gatherLocked() (known uint64) {
	b.scratch = b.scratch[:0]
	for j, ok := range b.known {
		if ok && b.members&bit(j) != 0 {
			b.scratch = append(b.scratch, b.offsets[j])
			known |= bit(j)
		}
	}
	slices.Sort(b.scratch)
	return known
}

// change has only the masters of a set count from here on; slots is above the number of each.
func (b *ballots) change(set uint64, slots int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.growLocked(slots)
	b.members = set
	b.middleLocked()
}

func (b *ballots) growLocked(slots int) {
	if n := slots - len(b.known); n > 0 {
		b.offsets = append(b.offsets, make([]int64, n)...)
		b.known = append(b.known, make([]bool, n)...)
		b.within = append(b.within, make([]time.Duration, n)...)
	}
}

// time reckons what the masters' clocks show at now, in microseconds: the median of those known, and master i's own
// where it is known.
func (b *ballots) time(now clock.Instant, i int) (median, own int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	median = b.offset + micros(now)
	if i >= 0 && i < len(b.known) && b.known[i] {
		return median, b.offsets[i] + micros(now)
	}
	return median, median
}

// reckon is what the admission of masters goes by: of two middle clocks the later, since an early one would let a
// quarantine end early.
func (b *ballots) reckon(now clock.Instant) reckoning {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.gatherLocked()
	if known == 0 {
		return reckoning{}
	}
	return reckoning{median: b.scratch[len(b.scratch)/2] + micros(now), known: known}
}

// propose returns a ballot for name: the present time, or one above floor and above the bars seen for the name where
// that is more. It fails with ErrTooFar where no exact number is left.
//
// With spare tokens it is the first of a block that ends with last. A block begins at the present time or before, or there is
// none: then bars stay within one block of the clock however fast the name changes hands. Blocks of one name cannot overlap:
// each is refused as stale where it does not begin above the end of the one before.
func (b *ballots) propose(now clock.Instant, name string, floor, spare int64) (ballot, last int64, err error) {
	return b.proposeFrom(now, name, floor, spare, 0, 0)
}

// newestFrom is how far ahead of the present time a ballot may be that is proposed in its place: the clients' reckonings of it
// differ.
const newestFrom = 50 * time.Millisecond

// proposeFrom is propose with another number in the place of the present time, where it is not older than age; 0 is the
// present.
func (b *ballots) proposeFrom(now clock.Instant, name string, floor, spare, from int64, age time.Duration) (ballot, last int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.offset + micros(now)
	if from < t-age.Microseconds() || from > t+newestFrom.Microseconds() {
		from = t
	}
	ballot = max(from, min(floor, scripts.MaxBallot)+1) // a bar is any number that a master has
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
		return 0, 0, ErrTooFar
	}
	if ballot > t {
		b.rememberLocked(name, ballot, t)
		return ballot, ballot, nil
	}
	return ballot, min(ballot+spare, scripts.MaxBallot-1), nil
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
	if t := b.offset + micros(now); bar >= t {
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

// floorOf is the quorum-th smallest of the bars that the votes of a round show: a ballot above it can win. Of n masters a
// minority may be ill. Those known to be ill are of it, those that this client has yet to hear of are not known to be, and
// each of the others may show a bar that was poisoned. So as many of the largest never count as may still be: a round that
// is lost early has heard of few, and all of those may be among them.
func floorOf(bars []int64, n, ill int) int64 {
	quorum := quorumOf(n)
	at := min(quorum, len(bars)-max(0, n-quorum-ill)) - 1
	if at < 0 {
		return 0
	}
	slices.Sort(bars)
	return bars[at]
}
