package main

import (
	"fmt"
	"slices"
	"strings"
)

// A target is a goal of the project, with the measured values.
type target struct {
	name     string
	sign     string // "<=" or ">="
	bound    float64
	measured *spread // nil if the run has no value
	// alone is set if the value is not a ratio to another contender in the same round. On a busy machine such a target may
	// be missed.
	alone bool
}

func (t target) String() string {
	text, s := fmt.Sprintf("%s %s %g: ", t.name, t.sign, t.bound), t.measured
	if s == nil {
		return text + "not measured"
	}
	text += fmt.Sprintf("%.3g (%.3g-%.3g), ", s.Median, s.Low, s.High)
	if t.missedBy(s.Median, 1) {
		text += "NOT MET"
	} else {
		text += "met"
	}
	if t.missedBy(s.Low, 1) != t.missedBy(s.High, 1) {
		text += ", but not in every round"
	}
	return text
}

// missedBy reports whether v misses the target by more than factor times its bound.
func (t target) missedBy(v, factor float64) bool {
	if t.sign == ">=" {
		return v*factor < t.bound
	}
	return v > t.bound*factor
}

// missed reports whether a target is missed. In a short run, every round must miss it by a factor of more than two, and
// on a busy machine only targets that compare contenders count.
func (r *report) missed(short bool) bool {
	return slices.ContainsFunc(r.targets(), func(t target) bool {
		switch {
		case t.measured == nil || short && t.alone && r.Busy != "":
			return false
		case short:
			return t.missedBy(t.measured.Low, 2) && t.missedBy(t.measured.High, 2)
		}
		return t.missedBy(t.measured.Median, 1)
	})
}

// targets evaluates the figures.
func (r *report) targets() (list []target) {
	var at place
	add := func(what, sign string, bound float64, s *spread, alone bool) {
		list = append(list, target{at.Scenario + ": " + at.Case + ": " + what, sign, bound, s, alone})
	}
	who := func(who string, m metric) *figure { return r.find(place{at.Scenario, at.Case, who}, m) }
	of := func(m metric) *figure { return who(nameLibrary, m) }
	over := func(m metric, other string) *spread { return ratio(of(m), who(other, m)) }

	at = place{scenarioCost, goroutinesCase(1), ""}
	lock := of(mLock50)
	add("pair / floor", "<=", 1.2, over(mP50, nameFloor), false)
	add("pair / redsync/redigo", "<=", 0.8, over(mP50, nameRedigo), false)
	add("pair / redsync/rueidis", "<=", 0.8, over(mP50, nameRueidis), false)
	add("pair with WithAsyncUnlock / without", "<=", 0.7, ratio(who(nameAsync, mP50), of(mP50)), false)
	add("pair with WithLinger / without", "<=", 0.05, ratio(who(nameLinger, mP50), of(mP50)), false)
	add("connections to a master", "<=", 1, of(mConns).values(), false)
	add("failed pairs", "<=", 0, of(mFailures).values(), false)
	for _, n := range []int{64, 512} {
		at = place{scenarioLoad, goroutinesCase(n), ""}
		add("pairs/s / floor", ">=", 0.55, over(mRate, nameFloor), false)
		add("pairs/s / redsync/redigo", ">=", 2.3, over(mRate, nameRedigo), false)
		add("pairs/s / redsync/rueidis", ">=", 1.8, over(mRate, nameRueidis), false)
		add("client cpu / redsync/redigo", "<=", 0.3, over(mClientCPU, nameRedigo), false)
		add("allocations of a pair", "<=", 20, of(mAllocs).values(), false)
		add("failed pairs", "<=", 0, of(mFailures).values(), false)
	}
	for _, s := range shapes {
		at = place{scenarioLoad, s.String(), ""}
		held := 0.9 / float64(min(s.Processes, 2)) // hand-offs between processes need messages
		add("held, of the time", ">=", held, of(mHeld).values(), true)
		add("wait p99 / p50", "<=", 4, of(mWaitRatio).values(), true)
		add("commands to a master / hold", "<=", 4, of(mHoldCmds).values(), false)
		add("failed locks", "<=", 0, of(mGaveUp).values(), false)
		add("violations", "<=", 0, of(mViolations).values(), false)
	}
	add("hand-off / lock of a free name", "<=", 3, ratio(of(mHandOff), lock), true)
	for _, f := range faults {
		at = place{scenarioFaults, f.String(), ""}
		add("pair / healthy", "<=", 1.1, of(mOfHealthy).values(), true)
		add("failed pairs", "<=", 0, of(mFailures).values(), false)
	}
	return list
}

// verdict returns the answers in a few sentences. Those without figures are left out.
func (r *report) verdict() (text string) {
	say := func(form, scenario, kase string, m metric) {
		mine := r.find(place{scenario, kase, nameLibrary}, m)
		if mine == nil {
			return
		}
		var list []string
		for _, who := range []string{nameFloor, nameRedigo, nameRueidis} {
			if s := ratio(mine, r.find(place{scenario, kase, who}, m)); s != nil {
				list = append(list, fmt.Sprintf("%.2f of %s", s.Median, who))
			}
		}
		text += fmt.Sprintf(form, mine.Median)
		if len(list) > 0 {
			text += " (" + strings.Join(list, ", ") + ")"
		}
		text += ".\n"
	}
	say("Lock and unlock take %.0f us", scenarioCost, goroutinesCase(1), mP50)
	say("64 callers complete %.0f pairs a second", scenarioLoad, goroutinesCase(64), mRate)
	say("A hand-off between two processes takes %.0f us", scenarioLoad, twoInTurns.String(), mHandOff)
	say("With two dead masters a pair takes %.0f us", scenarioFaults, fault{dead, 2}.String(), mP50)
	return text
}
