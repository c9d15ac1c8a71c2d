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

// A bench is one run of the program.
type bench struct {
	cfg      *config
	masters  *masters
	progress *progress
	report   *report
	prefix   string // of all keys, another one for each run
	firsts   map[splitKey]instants
	holds    map[string]int // of this scenario, by contender; see took
}

// A scenario is one thing to measure. Its plan lists what a round does: groups of tasks that are compared with each
// other, and so done one after the other, in an order that rotates from round to round.
type scenario struct {
	name, help string
	weight     float64 // how long a task takes, in durations; roughly, for the time that is left
	plan       func(*bench) [][]task
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

// scenarios lists all that there are, in the order in which they are measured.
var scenarios = []scenario{
	{scenarioPairs, "lock, unlock and both, by goroutines, each with its own names", 2, (*bench).planPairs},
	{scenarioHeld, "re-entering and extending a lock that is held, by goroutines", 2, (*bench).planHeld},
	{scenarioContention, "one name, several processes: rate, hand-over, order", 3, (*bench).planContention},
	{scenarioSplit, "processes that want one free name at one instant", 20, (*bench).planSplit},
	{scenarioScale, "1 to 9 masters, very many locks held at once, very many that wait", 4, (*bench).planScale},
	{scenarioFaults, "masters hung, dead or slow (needs masters that it starts)", 3, (*bench).planFaults},
}

// prefixOf is what the keys of a contender begin with; that of no other contender begins with the same.
func (b *bench) prefixOf(who string) string { return b.prefix + "-" + slug(who) + "." }

func (b *bench) setting(who string) setting {
	return setting{URLs: b.masters.urls, Prefix: b.prefixOf(who)}
}

func (b *bench) add(scenario, kase, who string, m metric, value float64) {
	b.report.figures.add(scenario, kase, who, m, value)
}

var errInterrupted = errors.New("bench: interrupted")

// measureAll opens the masters, runs the scenarios, and closes whatever was opened, in every case.
func measureAll(ctx context.Context, c *config, p *progress) (r *report, err error) {
	defer p.clear()
	m, err := openMasters(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	b := &bench{
		cfg: c, masters: m, progress: p, report: newReport(c, m),
		prefix: "redlock-bench-" + strconv.FormatUint(rand.Uint64(), 36), firsts: map[splitKey]instants{},
	}
	if b.report.Masters.Version, err = m.versions(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(b.measure(ctx), b.cleanUp(ctx)); err != nil {
		return nil, err
	}
	b.report.judge()
	return b.report, nil
}

// measure does all rounds, or as many as the time is enough for.
func (b *bench) measure(ctx context.Context) error {
	plans := make([][][]task, len(scenarios))
	total := 0.0
	for i, s := range scenarios {
		if b.cfg.wants(s.name) {
			plans[i] = s.plan(b)
			total += s.weight * float64(tasks(plans[i], b.cfg.rounds))
		}
	}
	b.progress.start(total)
	began := time.Now()
	for round := range b.cfg.rounds {
		for i, s := range scenarios {
			if err := b.round(ctx, s, plans[i], round); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		done := time.Duration(round + 1)
		if used := time.Since(began); b.cfg.brief && round+1 < b.cfg.rounds && used+used/done > budget {
			b.report.note("%d of %d rounds: there is no time for more", done, b.cfg.rounds)
			b.report.Parameters.Rounds = int(done)
			break
		}
	}
	b.summariseSplit()
	return nil
}

// budget is what all rounds of the default run may take: a minute, less what it takes to begin and to end.
const budget = 55 * time.Second

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

// round does one round of a scenario.
func (b *bench) round(ctx context.Context, s scenario, plan [][]task, round int) error {
	for _, group := range plan {
		for k := range group {
			t := group[(k+round)%len(group)]
			if t.once && round > 0 {
				continue
			}
			b.progress.say(s.weight, "%s, %s; round %d of %d", s.name, t.name, round+1, b.cfg.rounds)
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

// cleanUp removes the keys of this run from masters that live on.
func (b *bench) cleanUp(ctx context.Context) error {
	if b.masters.servers != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return b.masters.sweep(ctx, b.prefix)
}
