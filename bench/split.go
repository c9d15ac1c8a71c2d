package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

const scenarioSplit = "split"

// splitSizes are the numbers of processes that start at one instant.
var splitSizes = []int{3, 5, 9}

// What is measured of a split.
var (
	mFirst50   = metric{"first holder p50", "us", less}
	mFirst99   = metric{"first holder p99", "us", less}
	mFirstMax  = metric{"first holder max", "us", less}
	mFirstOver = metric{"p99/alone", "", less}
	mOwn       = metric{"own names p50", "us", less}
	mFirstOwn  = metric{"p99/own names", "", less}
	mOwnFirst  = metric{"own names first p99", "us", less}
	mOwnOver   = metric{"own names first p99/alone", "", less}
	mRounds50  = metric{"rounds p50", "1", less} // of the first holder, until it has the name
	mRounds99  = metric{"rounds p99", "1", less}
	mNobody    = metric{"nobody in 5 s", "1", less}
)

// splitTrials is how often each number of processes starts at one instant, in all rounds together.
const splitTrials = 360

// splitBudget bounds the trials of one round of those who take a tenth of a second and more for each.
const splitBudget = 5 * time.Second

// planSplit lets k processes want one free name at one instant, and takes the time until the first has it. As often
// each of them wants a name of its own: what k processes that begin at one instant wait where they are in nobody's
// way, and how long it is until the first of them has what it wants, which no way of settling who is to have it can
// be faster than.
func (b *bench) planSplit() (plan [][]task) {
	for _, k := range splitSizes {
		plan = append(plan, turns(splitCase(k), b.waiters(false), func(ctx context.Context, e entrant, round int) error {
			return b.split(ctx, e, k, round)
		}))
	}
	return plan
}

func splitCase(k int) string { return fmt.Sprintf("%d processes at one instant", k) }

// split makes the trials of one round.
func (b *bench) split(ctx context.Context, e entrant, k, round int) (err error) {
	workers, err := startCrew(ctx, k, e.name, workerGrace, func(int) setting {
		s := b.setting(e.name)
		s.Rounds = e.name == nameLibrary
		return s
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	name := fmt.Sprintf("split-%d-%d", k, round)
	alone, err := b.alone(ctx, workers, e, name)
	if err != nil {
		return err
	}
	trials := max(splitTrials/b.cfg.rounds, 1)
	if b.cfg.short {
		trials = 10
	}
	var here instants
	over := time.Now().Add(splitBudget)
	for trial := range trials {
		if time.Now().After(over) {
			b.report.note("split, %s: not all trials were made, since each took long", e.name)
			break
		}
		if err := b.splitOnce(ctx, workers, e, fmt.Sprintf("%s-%d", name, trial), &here); err != nil {
			return err
		}
	}
	all := b.firsts[splitKey{e.name, k}]
	all.one, all.own = append(all.one, here.one...), append(all.own, here.own...)
	all.rounds = append(all.rounds, here.rounds...)
	b.firsts[splitKey{e.name, k}] = all
	add := func(m metric, v float64) { b.add(scenarioSplit, splitCase(k), e.name, m, v) }
	add(mFirst50, micros(median(here.one)))
	add(mNobody, float64(here.nobody))
	add(mAlone, micros(median(alone)))
	if len(here.each) > 0 {
		add(mOwn, micros(median(here.each)))
	}
	return nil
}

// splitOnce has all workers want a name each, and then one name.
func (b *bench) splitOnce(ctx context.Context, workers *crew, e entrant, name string, here *instants) error {
	at := func(name func(i int) string) ([]answer, error) {
		start := time.Now().Add(splitLead).UnixNano()
		answers, err := workers.do(ctx, func(i int) job {
			return job{Op: opOnce, Name: name(i), Start: start, Tolerant: e.peer}
		})
		for _, a := range answers {
			b.took(e.name, len(a.Turns))
		}
		return answers, err
	}
	answers, err := at(func(i int) string { return fmt.Sprintf("%s-own-%d", name, i) })
	if err != nil {
		return err
	}
	for _, a := range answers {
		for _, t := range a.Turns {
			here.each = append(here.each, time.Duration(t.Got-t.Asked))
		}
	}
	if first, _, ok := firstHolder(answers); ok {
		here.own = append(here.own, first)
	}
	if answers, err = at(func(int) string { return name }); err != nil {
		return err
	}
	if first, rounds, ok := firstHolder(answers); ok {
		here.one, here.rounds = append(here.one, first), append(here.rounds, rounds)
	} else {
		here.nobody++
	}
	return nil
}

// splitLead is startLead for workers that are told often.
const splitLead = 10 * time.Millisecond

type splitKey struct {
	who       string
	processes int
}

// instants are the times until the first of several has what it wants, of each trial.
type instants struct {
	one    []time.Duration // all want one name
	own    []time.Duration // each wants a name of its own
	rounds []int64         // of the first, where all want one name; 0 where they are not counted
	each   []time.Duration // of each of them, where each wants a name of its own
	nobody int             // trials in which nobody got the one name
}

// summariseSplit adds the high percentiles, which need the trials of all rounds.
func (b *bench) summariseSplit() {
	for _, e := range b.waiters(false) {
		for _, k := range splitSizes {
			all := b.firsts[splitKey{e.name, k}]
			if len(all.one) == 0 {
				continue
			}
			one, own := sorted(all.one), sorted(all.own)
			add := func(m metric, v float64) { b.add(scenarioSplit, splitCase(k), e.name, m, v) }
			add(mFirst99, micros(percentile(one, 99)))
			add(mFirstMax, micros(percentile(one, 100)))
			if slices.Sort(all.rounds); all.rounds[0] > 0 {
				add(mRounds50, float64(all.rounds[len(all.rounds)/2]))
				add(mRounds99, float64(all.rounds[(len(all.rounds)-1)*99/100]))
			}
			over := func(list []time.Duration, base metric) float64 {
				if m := b.report.figures.median(scenarioSplit, splitCase(k), e.name, base.name); m != nil {
					return micros(percentile(list, 99)) / *m
				}
				return math.NaN()
			}
			add(mFirstOver, over(one, mAlone))
			add(mFirstOwn, over(one, mOwn))
			if len(own) > 0 {
				add(mOwnFirst, micros(percentile(own, 99)))
				add(mOwnOver, over(own, mAlone))
			}
		}
	}
}

// firstHolder is the time from the first request to the first hold, and how many rounds that took its holder; false
// where nobody got it.
func firstHolder(answers []answer) (first time.Duration, rounds int64, ok bool) {
	asked, got := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, a := range answers {
		for _, t := range a.Turns {
			asked = min(asked, t.Asked)
			if t.Got < got {
				got, rounds = t.Got, t.Rounds
			}
		}
	}
	return time.Duration(got - asked), rounds, got != math.MaxInt64
}
