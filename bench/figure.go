package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A figure is one thing that was measured of one contender in one case, over the rounds.
type figure struct {
	Scenario string `json:"scenario"`
	Case     string `json:"case"`
	Who      string `json:"who"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	// Better is "less" or "more", or "" where neither is.
	Better string `json:"better"`
	spread
}

// A metric says how a figure is to be read and printed.
type metric struct {
	name, unit, better string
}

const (
	less = "less"
	more = "more"
)

// figures collects what the rounds give, in the order in which it is first seen.
type figures struct {
	list []*figure
	keys map[[4]string]*figure
}

// add books one round's value. Values that are not numbers are what a round could not tell, and are left out.
func (f *figures) add(scenario, kase, who string, m metric, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	value = rounded(value, 6)
	key := [4]string{scenario, kase, who, m.name}
	if f.keys == nil {
		f.keys = map[[4]string]*figure{}
	}
	g := f.keys[key]
	if g == nil {
		g = &figure{Scenario: scenario, Case: kase, Who: who, Metric: m.name, Unit: m.unit, Better: m.better}
		f.keys[key] = g
		f.list = append(f.list, g)
	}
	g.spread = *newSpread(append(g.Rounds, value))
}

// rounded keeps so many digits: more are noise, and make a kept run large.
func rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return r
}

// find returns nil where there is no such figure.
func (f *figures) find(scenario, kase, who, metric string) *figure {
	i := slices.IndexFunc(f.list, func(g *figure) bool {
		return g.Scenario == scenario && g.Case == kase && g.Who == who && g.Metric == metric
	})
	if i < 0 {
		return nil
	}
	return f.list[i]
}

// median returns nil where there is no such figure.
func (f *figures) median(scenario, kase, who, metric string) *float64 {
	g := f.find(scenario, kase, who, metric)
	if g == nil {
		return nil
	}
	return &g.Median
}

// ratio is the spread of one figure over another, round by round; nil where either is missing.
func ratio(a, b *figure) *spread {
	if a == nil || b == nil {
		return nil
	}
	return newSpread(ratios(a.Rounds, b.Rounds))
}

// void reports whether the rounds of a ratio disagree on which side is ahead.
func void(s *spread) bool { return s != nil && len(s.Rounds) > 1 && s.Min < 1 && s.Max > 1 }

func goroutinesCase(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}
