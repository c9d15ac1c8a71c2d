package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// A bench is the state of one run of the program. The scenarios use it.
type bench struct {
	cfg     *config
	masters *masters
	report  *report
	prefix  string         // prefix of all keys; each run has a new one
	holds   map[string]int // name of a contender -> number of its holds in this scenario; see took
}

// A task is one measurement of one contender.
type task struct {
	name     string
	once     bool // runs only in the first round
	tolerant bool // an error only adds a note to the report
	run      func(ctx context.Context, round int) error
}

// turns returns a group with one task for each entrant in list.
func turns(name string, list []entrant, run func(ctx context.Context, e entrant, round int) error) (group []task) {
	for _, e := range list {
		once := func(ctx context.Context, round int) error { return run(ctx, e, round) }
		group = append(group, task{name: name + ", " + e.name, tolerant: e.peer, run: once})
	}
	return group
}

// prefixOf returns the key prefix of a contender. No contender's prefix is a prefix of another contender's.
func (b *bench) prefixOf(who string) string { return b.prefix + "-" + slug(who) + "." }

func (b *bench) setting(who string) setting {
	return setting{URLs: b.masters.urls, Prefix: b.prefixOf(who)}
}

func (b *bench) add(scenario, kase, who string, m metric, value float64) {
	b.report.Figures.add(scenario, kase, who, m, value)
}

// A scenario is one kind of measurement. Its plan returns groups of tasks, and each round runs all groups. The results
// of a group are compared with each other, so its tasks run one after the other, in an order that rotates from round
// to round.
type scenario struct {
	name, help string
	weight     float64 // approximate duration of a task in multiples of config.duration, to estimate the remaining time
	plan       func(*bench) [][]task
}

// scenarios lists all scenarios, in the order in which they are measured.
var scenarios = []scenario{
	{scenarioPairs, "latency and rate of lock and unlock; each goroutine has its own names", 2, planPairs},
	{scenarioLoad, "64 to 50 000 concurrent callers, each with its own names", 4, planLoad},
	{scenarioContention, "1 to 20 processes that share one name: rate, hand-off, order", 3, planContention},
	{scenarioSplit, "3 to 9 processes that simultaneously lock one free name", 20, planSplit},
	{scenarioFaults, "hung, dead or slow masters (not with -masters)", 3, planFaults},
}

// measureAll opens the masters and runs the scenarios. It closes everything that it has opened, also after an error.
func measureAll(ctx context.Context, c *config, p *progress) (r *report, err error) {
	defer p.clear()
	m, err := openMasters(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r = newReport(c, m)
	b := &bench{cfg: c, masters: m, report: r, prefix: "redlock-bench-" + strconv.FormatUint(rand.Uint64(), 36)}
	if r.Masters.Version, err = m.versions(ctx); err != nil {
		return nil, err
	}
	err = measureRounds(ctx, b, p)
	if m.servers == nil { // the masters of -masters continue to run, so remove the keys
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
		defer cancel()
		err = errors.Join(err, m.sweep(ctx, b.prefix))
	}
	if err != nil {
		return nil, err
	}
	r.Targets = targetsOf(r.Figures)
	return r, nil
}

// budget is the maximum duration of all rounds of the default run: a minute, less the time to open and close the
// masters and contenders.
const budget = 55 * time.Second

// measureRounds runs all rounds. If cfg.hurry is set, it does not start a round that would probably exceed budget.
func measureRounds(ctx context.Context, b *bench, p *progress) error {
	plans := make([][][]task, len(scenarios))
	total := 0.0
	for i, s := range scenarios {
		if b.cfg.wants(s.name) {
			plans[i] = s.plan(b)
			total += s.weight * float64(tasks(plans[i], b.cfg.rounds))
		}
	}
	p.start(total)
	began := time.Now()
	for round := range b.cfg.rounds {
		for i, s := range scenarios {
			if err := measureRound(ctx, b, p, s, plans[i], round); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		done := time.Duration(round + 1)
		if used := time.Since(began); b.cfg.hurry && round+1 < b.cfg.rounds && used+used/done > budget {
			b.report.note("only %d of %d rounds were measured: the default run takes at most a minute", done, b.cfg.rounds)
			b.report.Parameters.Rounds = int(done)
			break
		}
	}
	return nil
}

// tasks returns the number of tasks in all rounds.
func tasks(plan [][]task, rounds int) (n int) {
	for _, t := range slices.Concat(plan...) {
		if t.once {
			n++
		} else {
			n += rounds
		}
	}
	return n
}

// measureRound runs one round of a scenario.
func measureRound(ctx context.Context, b *bench, p *progress, s scenario, plan [][]task, round int) error {
	for _, group := range plan {
		for k := range group {
			t := group[(k+round)%len(group)]
			if t.once && round > 0 {
				continue
			}
			p.say(s.weight, "%s, %s; round %d of %d", s.name, t.name, round+1, b.cfg.rounds)
			err := t.run(ctx, round)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil && t.tolerant:
				b.report.note("%s, %s: a round failed: %s", s.name, t.name, firstLine(err))
			case err != nil:
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return b.countLeft(ctx, s.name)
}
