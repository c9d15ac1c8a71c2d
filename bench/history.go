package main

import (
	"cmp"
	"slices"
	"time"
)

// A turn is one lock that one goroutine asked for, got and gave back. Times are the machine's wall clock in ns, which
// its processes share.
type turn struct {
	Process   int
	Asked     int64 // before Lock
	Got       int64 // after Lock
	Releasing int64 // before Unlock
	Token     int64 // 0 where the contender has none
	Rounds    int64 // of the lock, where they are counted
	// GaveUp: the lock was not got when the time was over, which Got and Releasing then tell.
	GaveUp bool
}

// A history is what all goroutines did with one name, ordered by when they got it.
type history []turn

// newHistory sorts the turns that have a hold; those that gave up are apart.
func newHistory(turns []turn) (h, gaveUp history) {
	for _, t := range turns {
		if t.GaveUp {
			gaveUp = append(gaveUp, t)
		} else {
			h = append(h, t)
		}
	}
	slices.SortFunc(h, func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	return h, gaveUp
}

// overlaps counts the holds that began before the previous one had ended, and those whose token is not larger than the
// one before: any is a lock that does not exclude.
func (h history) overlaps() (n int) {
	for i := 1; i < len(h); i++ {
		if h[i].Got < h[i-1].Releasing || h[i].Token != 0 && h[i].Token <= h[i-1].Token {
			n++
		}
	}
	return n
}

// during counts the holds that were got from start to end.
func (h history) during(start, end int64) (n int) {
	for _, t := range h {
		if t.Got >= start && t.Got < end {
			n++
		}
	}
	return n
}

// waits are the times from asking to getting of those who asked from start to end, sorted.
func (h history) waits(start, end int64) []time.Duration {
	var list []time.Duration
	for _, t := range h {
		if t.Asked >= start && t.Asked < end {
			list = append(list, time.Duration(t.Got-t.Asked))
		}
	}
	slices.Sort(list)
	return list
}

// handOffs are the times from the beginning of a release to the next holder's having the lock, where that one was
// waiting already, sorted; between processes alone, where across is set.
func (h history) handOffs(across bool) []time.Duration {
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

// overtaken is, for each hold, how many got the lock before it that had asked after it.
func (h history) overtaken() []int {
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

// preferred is the share of those waiting already when a worker of process p asked that got the lock after it, over
// all its turns; it is not a number where nobody was waiting.
func (h history) preferred(p int) float64 {
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
