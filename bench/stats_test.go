package main

import (
	"slices"
	"testing"
	"time"
)

func TestPercentileByNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{nil, 50, 0},
		{[]time.Duration{7}, 1, 7},
		{[]time.Duration{7}, 100, 7},
		{[]time.Duration{1, 2}, 50, 1},
		{[]time.Duration{1, 2}, 51, 2},
		{[]time.Duration{1, 2, 3}, 50, 2},
		{hundred, 50, 50}, {hundred, 90, 90}, {hundred, 99, 99}, {hundred, 99.1, 100}, {hundred, 100, 100},
		{hundred[:10], 90, 9}, {hundred[:10], 91, 10}, {hundred[:10], 0.001, 1},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("percentile %g of %v is %d, want %d", c.p, c.sorted, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	if newSpread(nil) != nil {
		t.Error("the spread of no values is not nil")
	}
	values := []float64{3, 1, 2}
	if s := newSpread(values); s.Median != 2 || s.Min != 1 || s.Max != 3 || !slices.Equal(s.Rounds, []float64{3, 1, 2}) {
		t.Errorf("the spread is %+v for the values %v", *s, values)
	}
	if s := newSpread([]float64{4, 1, 2, 3}); s.Median != 2.5 || s.Min != 1 || s.Max != 4 {
		t.Errorf("the spread of four values is %+v", *s)
	}
}

func TestRatiosOmitRoundsWithoutBase(t *testing.T) {
	of := func(rounds ...float64) *figure { return &figure{spread: *newSpread(rounds)} }
	if got := ratio(of(2, 3, 9, 1), of(4, 0, 3)); !slices.Equal(got.Rounds, []float64{0.5, 3}) {
		t.Errorf("the ratios of the rounds are %v", got)
	}
	if got := ratio(of(1), nil); got != nil {
		t.Errorf("the ratio to a missing figure is %v, want nil", got)
	}
}
