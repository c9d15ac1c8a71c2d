package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A figure holds the values of one metric of one contender in one case, over the rounds.
type figure struct {
	Scenario string `json:"scenario"`
	Case     string `json:"case"`
	Who      string `json:"who"`
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	// Better is "less" or "more", or "" if neither is better.
	Better string `json:"better"`
	spread
}

// A metric describes how to read and print a figure.
type metric struct {
	name, unit, better string
}

const (
	less = "less"
	more = "more"
)

// figures lists all figures, in the order in which they were first added.
type figures []*figure

// add adds the value of one round to a figure. It ignores NaN, which means that the round has no value, and infinite
// values.
func (l *figures) add(scenario, kase, who string, m metric, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	f := l.find(scenario, kase, who, m)
	if f == nil {
		f = &figure{Scenario: scenario, Case: kase, Who: who, Metric: m.name, Unit: m.unit, Better: m.better}
		*l = append(*l, f)
	}
	f.spread = *newSpread(append(f.Rounds, rounded(value, 6)))
}

// set replaces the values of a figure with one value that covers all rounds so far.
func (l *figures) set(scenario, kase, who string, m metric, value float64) {
	if f := l.find(scenario, kase, who, m); f != nil {
		f.Rounds = nil
	}
	l.add(scenario, kase, who, m, value)
}

// find returns the figure with these names, or nil if there is none.
func (l figures) find(scenario, kase, who string, m metric) *figure {
	i := slices.IndexFunc(l, func(f *figure) bool {
		return f.Scenario == scenario && f.Case == kase && f.Who == who && f.Metric == m.name
	})
	if i < 0 {
		return nil
	}
	return l[i]
}

// spread returns the spread of the figure that find returns, or nil if the figure was not measured.
func (l figures) spread(scenario, kase, who string, m metric) *spread {
	if f := l.find(scenario, kase, who, m); f != nil {
		return &f.spread
	}
	return nil
}

// median returns the median of a figure, or nil if the figure was not measured.
func (l figures) median(scenario, kase, who string, m metric) *float64 {
	if f := l.find(scenario, kase, who, m); f != nil {
		return &f.Median
	}
	return nil
}

// of returns the spread of a figure of the library, or nil if the figure was not measured.
func (l figures) of(scenario, kase string, m metric) *spread {
	if f := l.find(scenario, kase, nameLibrary, m); f != nil {
		return &f.spread
	}
	return nil
}

// best returns the figure with the best median among the contenders for which fits returns true, or nil if there is
// none.
func (l figures) best(scenario, kase string, m metric, fits func(who string) bool) (best *figure) {
	for _, f := range l {
		if f.Scenario == scenario && f.Case == kase && f.Metric == m.name && fits(f.Who) &&
			(best == nil || (f.Median < best.Median) == (m.better == less)) {
			best = f
		}
	}
	return best
}

// who lists the contenders that have figures of a scenario.
func (l figures) who(scenario string) (list []string) {
	for _, f := range l {
		if f.Scenario == scenario {
			list = appendNew(list, f.Who)
		}
	}
	return list
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// These functions select the peers with which a figure is compared: all variants of redsync, those that return with
// the majority, and those that wait for all masters.
func anyRedsync(who string) bool   { return strings.HasPrefix(who, "redsync/") }
func earlyRedsync(who string) bool { return anyRedsync(who) && strings.HasSuffix(who, failFast) }
func lateRedsync(who string) bool  { return anyRedsync(who) && !earlyRedsync(who) }

func goroutinesCase(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// A curve is one line of a plot.
type curve struct {
	Kind string    `json:"kind"`
	Case string    `json:"case"`
	Who  string    `json:"who"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

// Kinds of curves.
const (
	curveWaits = "waits" // X percent of the waits took at most Y ms
	curveFault = "fault" // pairs that ended X ms after the start of the fault took Y ms, the median of a few pairs
)

// newCurve returns a curve whose values are rounded to the digits that a plot shows. It modifies x and y.
func newCurve(kind, kase, who string, x, y []float64) curve {
	for i := range x {
		x[i], y[i] = rounded(x[i], 5), rounded(y[i], 4)
	}
	return curve{kind, kase, who, x, y}
}

// waitShares holds the X values of a curve of waits, in percent.
var waitShares = []float64{50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.9}

// waitsCurve returns the curve of sorted waits. It omits each percentile above which there is less than one wait.
func waitsCurve(kase, who string, waits []time.Duration) curve {
	var x, y []float64
	for _, p := range waitShares {
		if float64(len(waits))*(100-p) >= 100 {
			x, y = append(x, p), append(y, millis(percentile(waits, p)))
		}
	}
	return newCurve(curveWaits, kase, who, x, y)
}

// setCurve adds c, or replaces the curve of the same kind, case and contender. So the report has the curves of the
// last round.
func (r *report) setCurve(c curve) {
	same := func(o curve) bool { return o.Kind == c.Kind && o.Case == c.Case && o.Who == c.Who }
	r.Curves = append(slices.DeleteFunc(r.Curves, same), c)
}
