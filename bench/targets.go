package main

import (
	"fmt"
	"slices"
	"strings"
)

// A target is what the project has set itself, and what was measured.
type target struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	// Bound is the number in Target; a ">=" is not to be below it.
	Bound float64 `json:"bound"`
	Best  float64 `json:"best"` // of the rounds
	// Measured is nil where the run does not tell.
	Measured *float64 `json:"measured"`
	// Met is nil where the run does not tell.
	Met *bool `json:"met"`
	// Void: the rounds lie on both sides of the bound.
	Void bool `json:"void"`
	// Floor is what the floor comes to under the same fault, or what FloorOf says. A target that the floor misses as well
	// says more about the machine than about the library. nil where there is no such figure.
	Floor *float64 `json:"floor"`
	// FloorOf says what Floor is of, where it is not the floor.
	FloorOf string `json:"floorOf,omitempty"`
}

// floor is Floor in words, "" where there is none.
func (t *target) floor() string {
	if t.Floor == nil {
		return ""
	}
	text := fmt.Sprintf("%.4g", *t.Floor)
	if t.FloorOf != "" {
		text += " " + t.FloorOf
	}
	return text
}

func (t *target) measured() string {
	if t.Measured == nil {
		return "-"
	}
	return fmt.Sprintf("%.4g", *t.Measured)
}

func (t *target) verdict() string {
	switch {
	case t.Met == nil:
		return "not measured"
	case *t.Met && t.Void:
		return "met, not in every round"
	case *t.Met:
		return "met"
	case t.Void:
		return "NOT MET, in some rounds met"
	}
	return "NOT MET"
}

func atMost(name string, bound float64, s *spread) target {
	return judged(name, "<=", bound, s, func(v float64) bool { return v <= bound })
}

func atLeast(name string, bound float64, s *spread) target {
	return judged(name, ">=", bound, s, func(v float64) bool { return v >= bound })
}

// worst is the round with the most: for what is to hold of every wait, and not of the median.
func worst(s *spread) *spread {
	if s == nil {
		return nil
	}
	return newSpread([]float64{s.Max})
}

func judged(name, relation string, bound float64, s *spread, met func(float64) bool) target {
	t := target{Name: name, Target: fmt.Sprintf("%s %g", relation, bound), Bound: bound}
	if s == nil {
		return t
	}
	ok := met(s.Median)
	t.Measured, t.Met, t.Best = &s.Median, &ok, s.Min
	if relation == ">=" {
		t.Best = s.Max
	}
	t.Void = met(s.Min) != met(s.Max)
	return t
}

// judge fills in the report's targets from its figures. What a run has not measured stays open.
func (r *report) judge() {
	r.Figures, r.Targets = r.figures.list, nil
	r.Targets = slices.Concat(r.pairTargets(), r.waitTargets(), r.scaleTargets(), r.faultTargets(), r.leftTargets())
}

// the spread of one figure of the library, nil where it was not measured
func (r *report) of(scenario, kase string, m metric) *spread {
	f := r.figures.find(scenario, kase, nameLibrary, m.name)
	if f == nil {
		return nil
	}
	return &f.spread
}

// over is a figure of the library over that of the best of those whose names begin with a prefix.
func (r *report) over(scenario, kase string, m metric, prefix string) *spread {
	return ratio(r.figures.find(scenario, kase, nameLibrary, m.name), r.best(scenario, kase, m, prefix, nil))
}

// best is the figure with the best median of those whose names begin with prefix and that fit; nil where there is
// none.
func (r *report) best(scenario, kase string, m metric, prefix string, fits func(who string) bool) (best *figure) {
	for _, f := range r.figures.list {
		if f.Scenario != scenario || f.Case != kase || f.Metric != m.name ||
			!strings.HasPrefix(f.Who, prefix) || fits != nil && !fits(f.Who) {
			continue
		}
		if best == nil || (f.Median < best.Median) == (m.better == less) {
			best = f
		}
	}
	return best
}

func (r *report) pairTargets() (list []target) {
	add := func(t target) { list = append(list, t) }
	one := latencyCase(opPair, 1)
	add(atMost("pair latency, 1 goroutine / floor", 1.2, r.over(scenarioPairs, one, mP50, nameFloor)))
	add(atLeast("throughput, 64 goroutines / floor", 0.6, r.over(scenarioPairs, rateCase(64), mRate, nameFloor)))
	early := func(who string) bool { return strings.HasSuffix(who, failFast) }
	late := func(who string) bool { return !early(who) }
	add(atMost("pair latency, 1 goroutine / best redsync without early return", 0.8, r.overBest(one, mP50, late)))
	add(atMost("pair latency, 1 goroutine / best redsync with it", 1.15, r.overBest(one, mP50, early)))
	for _, n := range []int{64, 512} {
		for _, peer := range []struct {
			name  string
			bound float64
		}{{"redsync/redigo", 4}, {"redsync/rueidis", 3}} {
			rate := func(who string) *figure { return r.figures.find(scenarioPairs, rateCase(n), who, mRate.name) }
			name := fmt.Sprintf("throughput, %d goroutines / %s", n, peer.name)
			add(atLeast(name, peer.bound, ratio(rate(nameLibrary), rate(peer.name))))
		}
	}
	add(atMost("client cpu a pair, 64 goroutines / best redsync", 0.25, r.overBest(rateCase(64), mClientCPU, late)))
	add(atMost("allocations a pair", 20, r.of(scenarioPairs, rateCase(64), mAllocs)))
	add(atMost("connections a master", 1, r.of(scenarioPairs, rateCase(64), mConnections)))
	add(atMost("lock keys left behind, per 10 000 pairs", 0, r.of(scenarioPairs, rateCase(64), mLeft)))
	add(atMost("any key is kept for, s", 61, r.of(scenarioPairs, rateCase(64), mKept)))
	return list
}

// overBest is a figure of the library over that of the best redsync that fits.
func (r *report) overBest(kase string, m metric, fits func(who string) bool) *spread {
	mine := r.figures.find(scenarioPairs, kase, nameLibrary, m.name)
	return ratio(mine, r.best(scenarioPairs, kase, m, "redsync/", fits))
}

func (r *report) waitTargets() (list []target) {
	add := func(t target) { list = append(list, t) }
	of := func(s shape, m metric) *spread { return r.of(scenarioContention, s.String(), m) }
	add(atMost("hand-off between two processes / uncontended lock", 3, of(twoInTurns, mHandRatio)))
	add(atLeast("64 goroutines of one process, of ideal", 0.95, of(oneProcess, mOfIdeal)))
	for _, s := range []shape{eightPaused, eightGreedy} {
		name := fmt.Sprintf("8 processes, %v pause: ", s.pause)
		add(atLeast(name+"of ideal", 0.55, of(s, mOfIdeal)))
		add(atMost(name+"commands a master and hold", 4, of(s, mCommands)))
		add(atMost(name+"wait p99 / p50", 4, of(s, mWaitRatio)))
	}
	for _, k := range splitSizes {
		kase := splitCase(k)
		t := atMost(kase+": p99 until one has it / uncontended lock", 5, r.of(scenarioSplit, kase, mFirstOver))
		t.Floor = r.figures.median(scenarioSplit, kase, nameLibrary, mOwnOver.name)
		t.FloorOf = "where each wants another name"
		add(t)
		add(atMost(splitCase(k)+": p99 until one has it / uncontended locks of as many", 5,
			r.of(scenarioSplit, splitCase(k), mFirstOwn)))
		add(atMost(splitCase(k)+": rounds until one has it, p99", 3, r.of(scenarioSplit, splitCase(k), mRounds99)))
	}
	add(atMost("fair, 20 processes: most overtakings of a wait", 5, worst(of(twentyFair, mOvertaken))))
	fair := r.figures.find(scenarioContention, twentyFair.String(), nameLibrary, mHolds.name)
	plain := r.figures.find(scenarioContention, twentyPlain.String(), nameLibrary, mHolds.name)
	add(atLeast("fair, 20 processes: holds/s / unfair", 0.7, ratio(fair, plain)))
	add(atLeast("priority: share of those queued that let it ahead", 0.95, of(twentyFirst, mPreferred)))
	return list
}

func (r *report) faultTargets() (list []target) {
	for _, f := range everyFault() {
		if f.count > 0 {
			t := atMost("median latency with "+f.String()+" / all healthy", 1.1, r.of(scenarioFaults, f.String(), mOfHealthy))
			t.Floor = r.figures.median(scenarioFaults, f.String(), nameFloor, mOfHealthy.name)
			list = append(list, t)
		}
	}
	return list
}

// leftTargets judges what the library leaves behind in each scenario that has counted it.
func (r *report) leftTargets() (list []target) {
	for _, s := range scenarioNames() {
		if left := r.of(s, leftCase, mLeft); left != nil {
			list = append(list, atMost("lock keys left behind by "+s+", per 10 000 holds", 0, left))
		}
	}
	return list
}

// missed reports whether a target was measured and is not met by slack times its bound. With slack the best round
// counts.
func (r *report) missed(slack float64) bool {
	return slices.ContainsFunc(r.Targets, func(t target) bool {
		switch {
		case t.Met == nil || *t.Met:
			return false
		case slack == 1:
			return true
		case strings.HasPrefix(t.Target, ">="):
			return t.Best*slack < t.Bound
		}
		return t.Best > t.Bound*slack
	})
}
