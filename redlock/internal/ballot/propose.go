package ballot

import (
	"errors"
	"slices"
	"sync"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// ErrTokensExhausted means that a ballot would be 2^53 or more, beyond which the masters' numbers are not exact.
var ErrTokensExhausted = errors.New("redlock: fencing tokens of this name exhausted")

// maxHigh bounds the number of stored names with a fence above the present time. Dropping one costs a refusal, but not
// safety.
const maxHigh = 4096

// Ballots proposes ballots. A fence that was set far ahead of the clock, by mistake or on purpose, raises only the
// ballots of its own name, by one with each try. Ballots are safe for concurrent use.
type Ballots struct {
	*Clocks

	mu   sync.Mutex
	high map[string]int64 // of each name: the fence, or our last ballot, if that is above the present time
}

// New returns the ballots of a client that uses the masters in set.
func New(set quorum.Set) *Ballots {
	return &Ballots{Clocks: NewClocks(set), high: make(map[string]int64)}
}

// Propose returns a range of ballots for name, from first to last. It begins at the present time, or just above the
// larger of above and the stored fence of the name. With spare, the range has that many more ballots, for local
// hand-offs, but only if it begins at the present time, so that a name with frequent hand-offs does not run ahead of
// the clock.
//
// Ranges of one name cannot overlap: a range that does not begin above the end of the last one is refused as stale.
func (b *Ballots) Propose(now clock.Instant, name string, above int64, spare int) (first, last int64, err error) {
	t := b.Median(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	first = max(t, next(above))
	if high, ok := b.high[name]; ok && high >= t {
		first = max(first, next(high))
	} else if ok {
		delete(b.high, name)
	}
	switch {
	case first >= scripts.MaxBallot:
		delete(b.high, name) // the next call asks the masters again, since the fence may have been fixed
		return 0, 0, ErrTokensExhausted
	case first > t:
		b.rememberLocked(name, first)
		return first, first, nil
	}
	return first, min(first+int64(spare), scripts.MaxBallot-1), nil
}

// Repair returns a ballot for one master that has this fence. It does not use the stored fence of the name, because the
// fence of one master does not affect the others.
func (b *Ballots) Repair(now clock.Instant, fence int64) (int64, error) {
	ballot := max(b.Median(now), next(fence))
	if ballot >= scripts.MaxBallot {
		return 0, ErrTokensExhausted
	}
	return ballot, nil
}

// Saw stores the fence that the votes of a round show for name; see [Floor]. It replaces the previous fence, since a
// fence that is too high, because there were few votes, must not stay forever, whereas a fence that is too low costs
// only a refusal.
func (b *Ballots) Saw(now clock.Instant, name string, fence int64) {
	t := b.Median(now)
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

// next returns the ballot above a fence, which may be any number.
func next(fence int64) int64 { return min(fence, scripts.MaxBallot) + 1 }

// Floor returns a fence above which a ballot can win: the quorum-th smallest of the fences that the votes of a round
// show. n is the number of masters, of which ill are known to have failed. A minority of the masters may be faulty, so
// those of the minority that have not failed may have shown fences that are too high: Floor ignores as many of the
// largest fences. If a round was lost early, so few masters have voted that all their fences may be too high, and
// Floor returns 0. It sorts fences.
func Floor(fences []int64, n, ill int) int64 {
	q := quorum.Quorum(n)
	at := min(q, len(fences)-max(0, n-q-ill)) - 1
	if at < 0 {
		return 0
	}
	slices.Sort(fences)
	return fences[at]
}
