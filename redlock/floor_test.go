package redlock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

func TestFloorAsTable(t *testing.T) {
	const poison = scripts.MaxBallot
	for _, c := range []struct {
		n      int
		bars   []int64
		failed int
		want   int64
	}{
		{5, nil, 0, 0},
		{5, []int64{7}, 0, 0},
		{5, []int64{9, 7}, 0, 0},
		{5, []int64{9, 8, 7}, 0, 7},
		{5, []int64{9, 8, 7}, 1, 8},
		{5, []int64{9, 8, 7}, 2, 9},
		{5, []int64{9, 8}, 3, 9},
		{5, []int64{9, 8, 7, 6}, 0, 7},
		{5, []int64{poison}, 0, 0},
		{5, []int64{poison, 7}, 0, 0},
		{5, []int64{poison, 7}, 1, 7},
		{5, []int64{8, 7, poison}, 0, 7},
		{5, []int64{8, poison, poison}, 0, 8},
		{3, []int64{poison, 7}, 0, 7},
		{5, []int64{5, 4, 3, 2, 1}, 0, 3},
		{5, []int64{poison, 4, 3, 2}, 0, 3},
		{5, []int64{poison, poison, 3, 2, 1}, 0, 3},
		{3, []int64{poison, 1, 2}, 0, 2},
		{4, []int64{4, 3, 2, 1}, 0, 3},
		{2, []int64{1, 2}, 0, 2},
		{1, []int64{6}, 0, 6},
	} {
		if got := floorOf(slices.Clone(c.bars), c.n, c.failed); got != c.want {
			t.Errorf("%v of %d masters: %d, want %d", c.bars, c.n, got, c.want)
		}
	}
}

// naiveFloor is the quorum-th smallest bar, or the largest of fewer, once as many of the largest are left out as a minority
// has masters.
func naiveFloor(bars []int64, n int) int64 {
	var sorted []int64
	for _, bar := range bars {
		at := 0
		for at < len(sorted) && sorted[at] < bar {
			at++
		}
		sorted = slices.Insert(sorted, at, bar)
	}
	sorted = sorted[:max(0, len(sorted)-(n-(n/2+1)))]
	if len(sorted) > n/2+1 {
		sorted = sorted[:n/2+1]
	}
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}

// H59: of three masters or more, whatever bar one has, the floor is no higher than some other master's bar.
func TestOnePoisonedBarDoesNotRaiseTheFloor(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n := 3 + r.IntN(6)
		honest := make([]int64, r.IntN(n))
		highest := int64(0)
		for i := range honest {
			honest[i] = r.Int64N(1000)
			highest = max(highest, honest[i])
		}
		bars := slices.Insert(slices.Clone(honest), r.IntN(len(honest)+1), 1000+r.Int64N(math.MaxInt64-1000))
		if got := floorOf(slices.Clone(bars), n, 0); got > highest {
			t.Errorf("%v of %d masters: %d", bars, n, got)
		}
	})
}

func TestFloorIsTheQuorumthSmallestBar(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(9)
		bars := make([]int64, r.IntN(n+1))
		for i := range bars {
			if bars[i] = 1 + r.Int64N(6); r.IntN(4) == 0 {
				bars[i] = r.Int64N(math.MaxInt64)
			}
		}
		if got, want := floorOf(slices.Clone(bars), n, 0), naiveFloor(bars, n); got != want {
			t.Errorf("%v of %d masters: %d, want %d", bars, n, got, want)
		}
	})
}

func naiveFreeIn(left []time.Duration, n, failed int) time.Duration {
	freeAt := func(at time.Duration) (free int) {
		free = n - failed - len(left)
		for _, l := range left {
			if l <= at {
				free++
			}
		}
		return free
	}
	if 2*freeAt(0) > n {
		return 0
	}
	best := time.Duration(0)
	for _, at := range left {
		if 2*freeAt(at) > n && (best == 0 || at < best) {
			best = at
		}
	}
	return best
}

func TestFreeInIsTheFirstTimeWithAFreeQuorum(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(9)
		left := make([]time.Duration, r.IntN(n+1))
		for i := range left {
			left[i] = time.Duration(1 + r.IntN(12))
		}
		failed := r.IntN(n - len(left) + 1)
		if got, want := freeIn(slices.Clone(left), n, failed), naiveFreeIn(left, n, failed); got != want {
			t.Errorf("%v of %d masters, %d failed: %v, want %v", left, n, failed, got, want)
		}
	})
}

func TestFreeInAsTable(t *testing.T) {
	for _, c := range []struct {
		left      []time.Duration
		n, failed int
		want      time.Duration
	}{
		{nil, 5, 0, 0},
		{[]time.Duration{9, 7, 8, 6, 5}, 5, 0, 7},
		{[]time.Duration{9, 7, 8}, 5, 0, 7},
		{[]time.Duration{9, 7, 8}, 5, 2, 9},
		{[]time.Duration{9, 7}, 5, 3, 0}, // never by waiting
		{[]time.Duration{9, 7}, 5, 0, 0}, // free as it is
		{[]time.Duration{4}, 1, 0, 4},
	} {
		if got := freeIn(slices.Clone(c.left), c.n, c.failed); got != c.want {
			t.Errorf("%v of %d masters, %d failed: %v, want %v", c.left, c.n, c.failed, got, c.want)
		}
	}
}

// A master that this client has not heard of yet is not ill: where only three of five have answered, one of them with a
// poisoned bar, the floor is that of the other two.
func TestMastersNotHeardOfLeaveThePoisonedBarOut(t *testing.T) {
	l := &Locker{ballots: newBallots(5)}
	r := l.newRound(firstMembers(5), "lock", nil)
	r.add(0, vote{Vote: scripts.Vote{Kind: scripts.Stale, Bar: scripts.MaxBallot - 1}})
	r.add(1, vote{Vote: scripts.Vote{Kind: scripts.Held, Bar: 7}})
	r.add(2, vote{Vote: scripts.Vote{Kind: scripts.Held, Bar: 8}})
	for i, err := range []error{errNotYet, errLookup} {
		r.add(3+i, vote{Vote: scripts.Vote{Kind: scripts.Failed}, err: fmt.Errorf("10.0.0.%d: %w", i, err)})
	}
	a := &attempt{l: l, name: "n"}
	at := clock.At(1000, 1000)
	a.learn(r, at, at)
	if a.floor != 7 {
		t.Errorf("the floor is %d, want that of a healthy majority, 7", a.floor)
	}
	if _, _, err := l.ballots.propose(at, "n", a.floor, 0); err != nil {
		t.Errorf("the next ballot: %v", err)
	}
}
