package main

import (
	"context"
	"slices"
)

// leftCase names what a scenario has left behind.
const leftCase = "left behind"

// took takes note that a contender has held so many locks in this scenario, and has ended all of them.
func (b *bench) took(who string, holds int) {
	if b.holds == nil {
		b.holds = map[string]int{}
	}
	b.holds[who] += holds
}

// countLeft counts what the holds of a scenario have left on the masters, keys of locks and all others, and removes it. It
// waits a second at most for the last releases.
func (b *bench) countLeft(ctx context.Context, scenario string) error {
	for _, e := range entrants {
		holds := b.holds[e.name]
		if holds == 0 {
			continue
		}
		m := b.mastersOf(e)
		left, err := m.leftBehind(ctx, b.prefixOf(e.name), e.suffix)
		if err != nil {
			return err
		}
		b.add(scenario, leftCase, e.name, mHeldInAll, float64(holds))
		b.addRemains(scenario, leftCase, e.name, left, len(m.urls), holds)
		if left.locks > 0 {
			b.report.note("%s, %s: %d lock keys of %d holds were left behind", scenario, e.name, left.locks, holds)
		}
		if err := m.sweep(ctx, b.prefixOf(e.name)); err != nil {
			return err
		}
	}
	b.holds = nil
	return nil
}

var mHeldInAll = metric{"holds", "1", ""}

// leftTargets judges what the library leaves behind in each scenario that has counted it.
func (r *report) leftTargets() (list []target) {
	for _, s := range scenarios {
		if s.name != scenarioPairs && slices.ContainsFunc(r.figures.list, func(f *figure) bool { return f.Scenario == s.name && f.Case == leftCase }) {
			list = append(list, atMost("lock keys left behind by "+s.name+", per 10 000 holds", 0, r.of(s.name, leftCase, mLeft)))
		}
	}
	return list
}
