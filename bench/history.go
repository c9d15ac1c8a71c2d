package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// A turn is one lock that one goroutine requested, acquired and released. Times are in ns of the machine's wall
// clock, which all processes of the machine share.
type turn struct {
	Process   int
	Asked     int64 // time before Lock
	Got       int64 // time after Lock
	Releasing int64 // time before Unlock
	Token     int64 // 0 if the contender has no tokens
	Rounds    int64 // rounds of the acquire, if they are counted
	// GaveUp is set if the lock was not acquired in time. Then Got and Releasing are the time when the wait ended.
	GaveUp bool
}

// A turnList lists the turns of all goroutines that locked one name, in the order in which they acquired the lock.
type turnList []turn

// newTurnList returns the turns that acquired the lock, in order, and those that gave up.
func newTurnList(all []turn) (h, gaveUp turnList) {
	for _, t := range all {
		if t.GaveUp {
			gaveUp = append(gaveUp, t)
		} else {
			h = append(h, t)
		}
	}
	slices.SortFunc(h, func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	return h, gaveUp
}

// overlaps returns the number of holds that began before another hold had ended, plus the number of holds whose token
// is not larger than those of earlier holds. Each of these holds is a violation.
func (h turnList) overlaps() int {
	holds := make([]*history.Hold, len(h))
	for i, t := range h {
		holds[i] = &history.Hold{From: t.Got, Until: t.Releasing, Token: t.Token}
	}
	overlaps, tokens := history.Violations(holds)
	return len(overlaps) + len(tokens)
}

// during returns the number of holds acquired at or after start and before end.
func (h turnList) during(start, end int64) (n int) {
	for _, t := range h {
		if t.Got >= start && t.Got < end {
			n++
		}
	}
	return n
}

// waits returns the sorted times from request to acquisition of the turns that were requested at or after start and
// before end.
func (h turnList) waits(start, end int64) []time.Duration {
	var list []time.Duration
	for _, t := range h {
		if t.Asked >= start && t.Asked < end {
			list = append(list, time.Duration(t.Got-t.Asked))
		}
	}
	slices.Sort(list)
	return list
}

// handOffs returns the sorted times from the start of a release until the next holder has the lock. It omits holders
// that were not yet waiting at the start of the release. If across is set, it returns only hand-offs between
// processes.
func (h turnList) handOffs(across bool) []time.Duration {
	var list []time.Duration
	for i := 1; i < len(h); i++ {
		last, next := h[i-1], h[i]
		if next.Asked < last.Releasing && next.Got >= last.Releasing && (!across || next.Process != last.Process) {
			list = append(list, time.Duration(next.Got-last.Releasing))
		}
	}
	slices.Sort(list)
	return list
}

// overtaken returns, for each hold, the number of later requests that acquired the lock earlier.
func (h turnList) overtaken() []int {
	counts := make([]int, len(h))
	for i, t := range h {
		for j := i - 1; j >= 0 && h[j].Got > t.Asked; j-- {
			if h[j].Asked > t.Asked {
				counts[i]++
			}
		}
	}
	return counts
}

// preferred returns the fraction of waiters that process p overtakes. The waiters are all requests of other processes
// that were waiting when a request of p began; p overtakes those that acquired the lock after that request. preferred
// returns NaN if there were no waiters.
func (h turnList) preferred(p int) float64 {
	after, waiting := 0, 0
	for i, t := range h {
		for j, o := range h {
			if t.Process == p && o.Process != p && o.Asked < t.Asked && o.Got > t.Asked {
				waiting++
				if j > i {
					after++
				}
			}
		}
	}
	return float64(after) / float64(waiting)
}
