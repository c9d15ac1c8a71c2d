package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A target is a goal of the project, with the measured value.
type target struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	// Bound is the number in Target. If Target begins with ">=", it is a lower bound, otherwise an upper bound.
	Bound float64 `json:"bound"`
	Best  float64 `json:"best"` // the value of the best round
	// Measured is nil if the run has no value.
	Measured *float64 `json:"measured"`
	// Met is nil if the run has no value.
	Met *bool `json:"met"`
	// Void is set if some rounds meet the bound and others miss it.
	Void bool `json:"void"`
	// Floor is the value of the floor in the same case, or of FloorOf. If the floor misses the target as well, the
	// reason is the machine rather than the library. Floor is nil if there is no such figure.
	Floor *float64 `json:"floor"`
	// FloorOf describes the source of Floor if that is not the floor.
	FloorOf string `json:"floorOf,omitempty"`
	// Absolute is set if the figure is an absolute time, which is not compared with another contender. On a busy
	// machine such a target may be missed.
	Absolute bool `json:"absolute,omitempty"`
	// Why explains a miss, if the cause is known.
	Why string `json:"why,omitempty"`
}

// beyond reports whether v misses the target by more than slack times its bound.
func (t *target) beyond(v, slack float64) bool {
	if strings.HasPrefix(t.Target, ">=") {
		return v*slack < t.Bound
	}
	return v > t.Bound*slack
}

// floorItself describes Floor if FloorOf is empty.
const floorItself = "for the floor"

// floor returns a description of Floor, or "" if Floor is nil.
func (t *target) floor() string {
	if t.Floor == nil {
		return ""
	}
	return fmt.Sprintf("%.4g %s", *t.Floor, cmp.Or(t.FloorOf, floorItself))
}

func (t *target) measured() string { return fmt.Sprintf("%.4g", *t.Measured) }

func (t *target) verdict() string {
	switch {
	case t.Met == nil:
		return "not measured"
	case *t.Met && t.Void:
		return "met, but not in every round"
	case *t.Met:
		return "met"
	case t.Void:
		return "NOT MET, but met in some rounds"
	}
	return "NOT MET"
}

// reason explains why a target is missed, or met only in some rounds.
func (t *target) reason() string {
	var list []string
	if !*t.Met && t.Why != "" {
		list = append(list, t.Why)
	}
	if !*t.Met && t.Floor != nil {
		list = append(list, fmt.Sprintf("The value is %.4g %s.", *t.Floor, cmp.Or(t.FloorOf, floorItself)))
	}
	if t.Void {
		list = append(list, fmt.Sprintf("The rounds disagree: the value of the best round is %.4g.", t.Best))
	}
	return strings.Join(list, " ")
}

// Causes of misses that are known.
const (
	whySafety  = "The servers' scripts check fences, tokens, admission and queues: this is what safety costs."
	whyEarly   = "With early return redsync does not wait for the slower masters, and leaves keys behind on them."
	whyClient  = "The library's client records its locks, checks their validity, and extends them, which takes time."
	whyTurns   = "Five servers and their clients share the same few processors."
	whyBoxed   = "redigo allocates memory for each argument of a call."
	whyInstant = "Processes that start simultaneously wait for a processor first."
	whyOneLess = "On few processors, one process more or less changes which processes run simultaneously."
)

func atMost(name string, bound float64, s *spread, why string) target {
	return judged(target{Name: name, Target: fmt.Sprintf("<= %g", bound), Bound: bound, Why: why}, s)
}

func atLeast(name string, bound float64, s *spread, why string) target {
	return judged(target{Name: name, Target: fmt.Sprintf(">= %g", bound), Bound: bound, Why: why}, s)
}

// absolute marks a target whose figure is an absolute time.
func absolute(t target) target {
	t.Absolute = true
	return t
}

func judged(t target, s *spread) target {
	if s == nil {
		return t
	}
	met := !t.beyond(s.Median, 1)
	t.Measured, t.Met, t.Best = &s.Median, &met, s.Min
	if strings.HasPrefix(t.Target, ">=") {
		t.Best = s.Max
	}
	t.Void = t.beyond(s.Min, 1) != t.beyond(s.Max, 1)
	return t
}

// targetsOf evaluates the figures. A target whose figures were not measured has no result.
func targetsOf(l figures) []target {
	return slices.Concat(pairTargets(l), loadTargets(l), waitTargets(l), splitTargets(l), faultTargets(l), leftTargets(l))
}

// over returns the ratio of a figure of the library to the best figure among the contenders for which fits returns
// true.
func over(l figures, scenario, kase string, m metric, fits func(who string) bool) *spread {
	return ratio(l.find(scenario, kase, nameLibrary, m), l.best(scenario, kase, m, fits))
}

// only returns a function that accepts only this contender.
func only(name string) func(who string) bool { return func(who string) bool { return who == name } }

func pairTargets(l figures) (list []target) {
	one, many := latencyCase(opPair, 1), rateCase(64)
	latency := func(fits func(who string) bool) *spread { return over(l, scenarioPairs, one, mP50, fits) }
	list = append(list,
		atMost("pair latency, 1 goroutine / floor", 1.2, latency(only(nameFloor)), whySafety),
		atLeast("throughput, 64 goroutines / floor", 0.6, over(l, scenarioPairs, many, mRate, only(nameFloor)), whySafety),
		atLeast("throughput, 64 goroutines / the same scripts over connections of the floor", 0.9,
			over(l, scenarioPairs, many, mRate, only(nameScripts)), whyClient),
		atMost("pair latency, 1 goroutine: with WithAsyncUnlock / without", 0.7,
			ratio(l.find(scenarioPairs, one, nameAsync, mP50), l.find(scenarioPairs, one, nameLibrary, mP50)), ""),
		absolute(atMost("pair latency, 1 goroutine, with WithLinger, us", 3,
			l.spread(scenarioPairs, one, nameLinger, mP50), "")),
		atMost("pair latency, 1 goroutine / best redsync without early return", 0.8, latency(lateRedsync), whySafety),
		atMost("pair latency, 1 goroutine / best redsync with early return", 1.15, latency(earlyRedsync), whyEarly))
	// The first version, which sent many calls as one script, was 2.7 times as fast as redsync/redigo and 2.1 times as
	// fast as redsync/rueidis. The bounds are 0.85 of these results.
	for _, n := range []int{64, 512} {
		for _, peer := range []struct {
			name  string
			bound float64
		}{{nameRedsync, 2.3}, {"redsync/rueidis", 1.8}} {
			s := over(l, scenarioPairs, rateCase(n), mRate, only(peer.name))
			list = append(list, atLeast(fmt.Sprintf("throughput, %d goroutines / %s", n, peer.name), peer.bound, s, whySafety))
		}
	}
	of := func(m metric) *spread { return l.of(scenarioPairs, many, m) }
	allocations := atMost("allocations per pair", 20, of(mAllocs), whyBoxed)
	allocations.Floor = l.median(scenarioPairs, many, nameFloor, mAllocs)
	return append(list,
		atMost("client cpu per pair, 64 goroutines / best redsync", 0.25,
			over(l, scenarioPairs, many, mClientCPU, lateRedsync), ""),
		allocations,
		atMost("connections per master", 1, of(mConnections), ""),
		atMost("lock keys left behind, per 10 000 pairs", 0, of(mLeft), ""),
		atMost("longest time until a key expires, s", 76, of(mKept), ""))
}

func waitTargets(l figures) (list []target) {
	of := func(s shape, m metric) *spread { return l.of(scenarioContention, s.String(), m) }
	list = append(list,
		atMost("hand-off between two processes / uncontended lock", 3, of(twoInTurns, mHandRatio), whyTurns),
		absolute(atLeast("64 goroutines of one process, of ideal", 0.95, of(oneProcess, mOfIdeal), whyTurns)))
	for _, s := range []shape{eightPaused, eightGreedy} {
		name := fmt.Sprintf("8 processes, %v pause: ", s.pause)
		list = append(list,
			absolute(atLeast(name+"of ideal", 0.55, of(s, mOfIdeal), whyTurns)),
			atMost(name+"commands per master and hold", 4, of(s, mCommands), ""),
			atMost(name+"wait p99 / p50", 4, of(s, mWaitRatio), whyTurns))
	}
	worst := of(twentyFair, mOvertaken)
	if worst != nil { // the bound applies to every wait, not to the median
		worst = newSpread([]float64{worst.Max})
	}
	rate := func(s shape) *figure { return l.find(scenarioContention, s.String(), nameLibrary, mHolds) }
	return append(list,
		atMost("fair, 20 processes: maximum number of holds that overtake a wait", 5, worst, whyTurns),
		atLeast("fair, 20 processes: holds/s / unfair", 0.7, ratio(rate(twentyFair), rate(twentyPlain)), whyTurns),
		atLeast("priority: fraction of waiters that are overtaken", 0.95, of(twentyFirst, mPreferred), ""))
}

func splitTargets(l figures) (list []target) {
	for _, k := range splitSizes {
		kase := splitCase(k)
		of := func(m metric) *spread { return l.of(scenarioSplit, kase, m) }
		t := atMost(kase+": p99 until the first hold / uncontended lock", 5, of(mFirstOver), whyInstant)
		t.Floor, t.FloorOf = l.median(scenarioSplit, kase, nameLibrary, mOwnOver), "if each process has its own name"
		list = append(list, t,
			atMost(kase+": p99 until the first hold / simultaneous uncontended locks", 5, of(mFirstOwn), whyInstant),
			atMost(kase+": p99 of the rounds until the first hold", 3, of(mRounds99), ""))
	}
	return list
}

func faultTargets(l figures) (list []target) {
	for _, f := range everyFault() {
		if f.kind != healthy {
			s := l.of(scenarioFaults, f.String(), mOfHealthy)
			t := atMost("median latency with "+f.String()+" / all healthy", 1.1, s, whyOneLess)
			t.Floor = l.median(scenarioFaults, f.String(), nameFloor, mOfHealthy)
			list = append(list, t)
		}
	}
	return list
}

// leftTargets returns a target for the library's leftovers in each scenario in which they were counted.
func leftTargets(l figures) (list []target) {
	for _, f := range l {
		if f.Case == leftCase && f.Who == nameLibrary && f.Metric == mLeft.name {
			list = append(list, atMost("lock keys left behind by "+f.Scenario+", per 10 000 holds", 0, &f.spread, ""))
		}
	}
	return list
}

// missed reports whether a target was measured and is missed. In a short run, a miss is ignored unless the best round
// misses the bound by a factor of more than two. In a short run on a busy machine, misses of absolute targets are
// ignored, too.
func missed(list []target, short, busy bool) bool {
	return slices.ContainsFunc(list, func(t target) bool {
		missed := t.Met != nil && !*t.Met
		if short {
			missed = missed && t.beyond(t.Best, 2) && (!busy || !t.Absolute)
		}
		return missed
	})
}
