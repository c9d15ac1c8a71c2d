package main

import (
	"math"
	"slices"
	"time"
)

// A spread is the median of a figure over the rounds, with the smallest and the largest. A nil *spread is a figure
// that was not measured.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Rounds are the values, round by round.
	Rounds []float64 `json:"rounds"`
}

// newSpread returns nil where there are no values. It keeps them as they are.
func newSpread(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	v := slices.Clone(values)
	slices.Sort(v)
	mid := len(v) / 2
	median := v[mid]
	if len(v)%2 == 0 {
		median = (v[mid-1] + v[mid]) / 2
	}
	return &spread{Median: median, Min: v[0], Max: v[len(v)-1], Rounds: values}
}

// percentile returns the p-th percentile, 0 < p <= 100, of sorted values by nearest rank: the smallest value that at
// least p percent of all are not above. It is 0 where there are none.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	// Without the subtraction, 0.9*10 and its like round up to the next rank.
	rank := int(math.Ceil(float64(len(values))*p/100 - 1e-9))
	return values[min(max(rank, 1), len(values))-1]
}

func mean(values []time.Duration) time.Duration {
	if len(values) == 0 {
		return 0
	}
	var sum time.Duration
	for _, v := range values {
		sum += v
	}
	return sum / time.Duration(len(values))
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ratios divides pairwise; rounds in which either is missing or the divisor is 0 are left out.
func ratios(a, b []float64) []float64 {
	var list []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			list = append(list, a[i]/b[i])
		}
	}
	return list
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// sorted sorts a copy.
func sorted(values []time.Duration) []time.Duration {
	v := slices.Clone(values)
	slices.Sort(v)
	return v
}

func median(values []time.Duration) time.Duration { return percentile(sorted(values), 50) }
