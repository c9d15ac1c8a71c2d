package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// A turn is one lock that one goroutine requested, acquired and released. Times are the machine's wall clock in ns,
// which its processes share.
type turn struct {
	Process   int
	Asked     int64 // before Lock
	Got       int64 // after Lock
	Releasing int64 // before Unlock
	Token     int64 // 0 if the contender has none
	Rounds    int64 // rounds of the acquire, if they are counted
	// GaveUp is set if the lock was not acquired in time. Then Got and Releasing are the time at which the wait ended.
	GaveUp bool
}

// A turnList lists the turns of all goroutines with one name, ordered by when they acquired it.
type turnList []turn

// newTurnList sorts the turns that have a hold, and separates those that gave up.
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

// overlaps counts the holds that began before another one had ended, and those whose token is not larger than the ones
// before: any of these is a violation of mutual exclusion.
func (h turnList) overlaps() int {
	holds := make([]*history.Hold, len(h))
	for i, t := range h {
		holds[i] = &history.Hold{From: t.Got, Until: t.Releasing, Token: t.Token}
	}
	overlaps, tokens := history.Violations(holds)
	return len(overlaps) + len(tokens)
}

// during counts the holds acquired from start to end.
func (h turnList) during(start, end int64) (n int) {
	for _, t := range h {
		if t.Got >= start && t.Got < end {
			n++
		}
	}
	return n
}

// waits returns the times from request to acquisition of the turns requested from start to end, sorted.
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

// handOffs returns the times from the start of a release until the next holder has the lock, if that one was already
// waiting, sorted; with across, only those between processes.
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

// overtaken returns, for each hold, the number of later requests that got the lock before it.
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

// preferred returns how often process p overtook waiters of other processes. For each turn of p it takes the requests
// that were already waiting; the result is the fraction of them that got the lock after p. It is NaN if none waited.
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
