package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// A spread is the median of a figure over the rounds, with the smallest and the largest value. A nil *spread means
// that the figure was not measured.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Rounds lists the value of each round.
	Rounds []float64 `json:"rounds"`
}

// newSpread returns the spread of values, or nil if there are none. It keeps a reference to the slice.
func newSpread(values []float64) *spread {
	if len(values) == 0 {
		return nil
	}
	v := slices.Sorted(slices.Values(values))
	return &spread{Median: (v[(len(v)-1)/2] + v[len(v)/2]) / 2, Min: v[0], Max: v[len(v)-1], Rounds: values}
}

// ratio returns the spread of the ratios a/b of all rounds. It omits rounds in which b is 0. It returns nil if a or b
// is nil.
func ratio(a, b *figure) *spread {
	if a == nil || b == nil {
		return nil
	}
	var list []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		if b.Rounds[i] > 0 {
			list = append(list, a.Rounds[i]/b.Rounds[i])
		}
	}
	return newSpread(list)
}

// void reports whether a ratio is above 1 in some rounds and below 1 in others.
func (s *spread) void() bool { return len(s.Rounds) > 1 && s.Min < 1 && s.Max > 1 }

// String formats a spread. The number of digits depends on the size of the median.
func (s *spread) String() string {
	if s == nil {
		return "-"
	}
	d := digits(s.Median)
	if len(s.Rounds) < 2 {
		return fmt.Sprintf("%.*f", d, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f-%.*f)", d, s.Median, d, s.Min, d, s.Max)
}

// asRatio formats a ratio, with a leading "~" if it is above 1 in some rounds and below 1 in others.
func (s *spread) asRatio() string {
	return s.mark() + fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max)
}

// mark returns the prefix of a ratio: "~" if it is void.
func (s *spread) mark() string {
	if s.void() {
		return "~"
	}
	return ""
}

func digits(v float64) int {
	switch v = math.Abs(v); {
	case v == math.Trunc(v) || v >= 100:
		return 0
	case v >= 10:
		return 1
	case v >= 1:
		return 2
	}
	return 3
}

// rounded returns v with this number of significant digits. More digits would be noise, and make a saved run large.
func rounded(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64) // cannot fail: FormatFloat wrote the text
	return r
}

// percentile returns the p-th percentile (0 < p <= 100) of sorted values by the nearest-rank method: the smallest
// value for which at least p percent of all values are not larger. It returns 0 if there are no values.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	// Without the subtraction, products such as 0.9*10 round up to the next rank.
	rank := int(math.Ceil(float64(len(values))*p/100 - 1e-9))
	return values[min(max(rank, 1), len(values))-1]
}

// sorted returns a sorted copy of values.
func sorted(values []time.Duration) []time.Duration { return slices.Sorted(slices.Values(values)) }

func median(values []time.Duration) time.Duration { return percentile(sorted(values), 50) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
