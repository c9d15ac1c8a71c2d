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

// splitSizes lists the counts of processes that start simultaneously.
var splitSizes = []int{3, 5, 9}

// Metrics of the scenario split.
var (
	mFirst50   = metric{"first holder p50", "us", less}
	mFirst99   = metric{"first holder p99", "us", less}
	mFirstOver = metric{"p99/alone", "", less}
	mOwn       = metric{"own names p50", "us", less}
	mFirstOwn  = metric{"p99/own names", "", less}
	mOwnOver   = metric{"own names first p99/alone", "", less}
	mRounds99  = metric{"rounds p99", "1", less} // rounds of the first holder until it has the lock
	mNobody    = metric{"no client in 5 s", "1", less}
)

const (
	splitTrials = 360                   // for each count of processes, in all rounds together
	splitBudget = 5 * time.Second       // maximum time for the trials of one round
	splitLead   = 10 * time.Millisecond // like startLead, but shorter, because each worker gets many jobs
)

// instants holds, for the trials of all rounds, the times until the first of several clients has its lock.
type instants struct {
	one    []time.Duration // all clients lock one name
	own    []time.Duration // each client locks its own name
	rounds []int64         // rounds of the first holder if all clients lock one name; 0 if unknown
	each   []time.Duration // duration of each Lock if each client locks its own name
	alone  []time.Duration // durations of uncontended locks of one client
	nobody int             // number of trials in which no client acquired the one name
}

// planSplit makes k processes simultaneously lock one free name, and measures the time until the first holds the lock.
// For comparison, it makes as many trials in which each process locks its own name. The time until the first process
// of such a trial holds its lock is a lower bound for every method that resolves contention.
func planSplit(b *bench) (plan [][]task) {
	all := map[string]*instants{} // high percentiles need the trials of all rounds
	for _, k := range splitSizes {
		plan = append(plan, turns(splitCase(k), waiters(b, false), func(ctx context.Context, e entrant, round int) error {
			key := fmt.Sprint(e.name, k)
			if all[key] == nil {
				all[key] = new(instants)
			}
			err := split(ctx, b, e, k, round, all[key])
			if err == nil {
				setSplit(b, e.name, splitCase(k), all[key])
			}
			return err
		}))
	}
	return plan
}

func splitCase(k int) string { return fmt.Sprintf("%d processes at one instant", k) }

// split runs the trials of one round.
func split(ctx context.Context, b *bench, e entrant, k, round int, all *instants) (err error) {
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
	alone, err := lockAlone(ctx, b, workers, e, name)
	if err != nil {
		return err
	}
	all.alone = append(all.alone, alone...)
	trials := max(splitTrials/b.cfg.rounds, 1)
	if b.cfg.short {
		trials = 10
	}
	over := time.Now().Add(splitBudget)
	for trial := range trials {
		if time.Now().After(over) {
			b.report.note("split, %s: some trials were omitted after %v", e.name, splitBudget)
			break
		}
		if err := splitOnce(ctx, b, workers, e, fmt.Sprintf("%s-%d", name, trial), all); err != nil {
			return err
		}
	}
	return nil
}

// splitOnce makes each worker lock its own name, and then makes all workers lock one name.
func splitOnce(ctx context.Context, b *bench, workers *crew, e entrant, name string, all *instants) error {
	at := func(name func(i int) string) (turns []turn, err error) {
		start := time.Now().Add(splitLead).UnixNano()
		answers, err := workers.do(ctx, "Once", func(i int) Job { return Job{Name: name(i), Start: start, Tolerant: e.peer} })
		for _, a := range answers {
			turns = append(turns, a.Turns...)
		}
		b.took(e.name, len(turns))
		return turns, err
	}
	own, err := at(func(i int) string { return fmt.Sprintf("%s-own-%d", name, i) })
	if err != nil {
		return err
	}
	for _, t := range own {
		all.each = append(all.each, time.Duration(t.Got-t.Asked))
	}
	if first, _, ok := firstHolder(own); ok {
		all.own = append(all.own, first)
	}
	one, err := at(func(int) string { return name })
	if err != nil {
		return err
	}
	if first, rounds, ok := firstHolder(one); ok {
		all.one, all.rounds = append(all.one, first), append(all.rounds, rounds)
	} else {
		all.nobody++
	}
	return nil
}

// setSplit sets the percentiles over all rounds so far.
func setSplit(b *bench, who, kase string, all *instants) {
	set := func(m metric, v float64) { b.report.Figures.set(scenarioSplit, kase, who, m, v) }
	set(mNobody, float64(all.nobody))
	if len(all.one) == 0 {
		return
	}
	one, alone, own := sorted(all.one), micros(median(all.alone)), micros(median(all.each))
	p99 := micros(percentile(one, 99))
	set(mFirst50, micros(percentile(one, 50)))
	set(mFirst99, p99)
	set(mAlone, alone)
	set(mFirstOver, p99/alone)
	if len(all.each) > 0 {
		set(mOwn, own)
		set(mFirstOwn, p99/own)
		set(mOwnOver, micros(percentile(sorted(all.own), 99))/alone)
	}
	if rounds := slices.Sorted(slices.Values(all.rounds)); rounds[0] > 0 {
		set(mRounds99, float64(rounds[(len(rounds)-1)*99/100]))
	}
}

// firstHolder returns the time from the first request to the first hold, and the number of rounds of the first
// holder. ok is false if no client got the lock.
func firstHolder(turns []turn) (first time.Duration, rounds int64, ok bool) {
	asked, got := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, t := range turns {
		asked = min(asked, t.Asked)
		if t.Got < got {
			got, rounds = t.Got, t.Rounds
		}
	}
	return time.Duration(got - asked), rounds, len(turns) > 0
}
