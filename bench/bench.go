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

// A bench is one run of the program, as the scenarios see it.
type bench struct {
	cfg     *config
	masters *masters
	report  *report
	prefix  string         // of all keys, another one for each run
	holds   map[string]int // of this scenario, by contender; see took
}

// A task is one measurement of one contender.
type task struct {
	name     string
	once     bool // in the first round alone
	tolerant bool // its failure is a note
	run      func(ctx context.Context, round int) error
}

// turns is a group of tasks, one for each of the entrants.
func turns(name string, list []entrant, run func(ctx context.Context, e entrant, round int) error) (group []task) {
	for _, e := range list {
		once := func(ctx context.Context, round int) error { return run(ctx, e, round) }
		group = append(group, task{name: name + ", " + e.name, tolerant: e.peer, run: once})
	}
	return group
}

// prefixOf is what the keys of a contender begin with; that of no other contender begins with the same.
func (b *bench) prefixOf(who string) string { return b.prefix + "-" + slug(who) + "." }

func (b *bench) setting(who string) setting {
	return setting{URLs: b.masters.urls, Prefix: b.prefixOf(who)}
}

func (b *bench) add(scenario, kase, who string, m metric, value float64) {
	b.report.Figures.add(scenario, kase, who, m, value)
}

// A scenario is one thing to measure. Its plan lists what a round does: groups of tasks that are compared with each
// other, and so done one after the other, in an order that rotates from round to round.
type scenario struct {
	name, help string
	weight     float64 // how long a task takes, in durations; roughly, for the time that is left
	plan       func(*bench) [][]task
}

// scenarios lists all that there are, in the order in which they are measured.
var scenarios = []scenario{
	{scenarioPairs, "lock, unlock and both, by goroutines, each with its own names", 2, planPairs},
	{scenarioContention, "one name, several processes: rate, hand-over, order", 3, planContention},
	{scenarioSplit, "processes that want one free name at one instant", 20, planSplit},
	{scenarioFaults, "masters hung, dead or slow (needs masters that it starts)", 3, planFaults},
}

// measureAll opens the masters, runs the scenarios, and closes whatever was opened, in every case.
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
	if m.servers == nil { // they live on
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

// budget is what all rounds of the default run may take: a minute, less what it takes to begin and to end.
const budget = 55 * time.Second

// measureRounds does all rounds, or as many as the time is enough for.
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
			b.report.note("%d of %d rounds: there is no time for more", done, b.cfg.rounds)
			b.report.Parameters.Rounds = int(done)
			break
		}
	}
	return nil
}

// tasks counts what is done in all rounds.
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

// measureRound does one round of a scenario.
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
