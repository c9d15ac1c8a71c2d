package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A bench is one run of the program.
type bench struct {
	cfg      *config
	masters  *masters
	entrants []entrant // that take part
	progress *progress
	report   *report
	prefix   string // of all keys, another one for each run
	firsts   map[splitKey]instants
	holds    map[string]int // of this scenario, by contender; see took
	aborting sync.Once
}

// A scenario is one thing to measure.
type scenario struct {
	name, help string
	measure    func(*bench, context.Context) error
}

// scenarios lists all that there are, in the order in which they are measured. Two names with the same measure are
// measured once.
var scenarios = []scenario{
	{scenarioPairs, "lock, unlock and both, by goroutines, each with its own names: percentiles, rate, processor time", (*bench).measurePairs},
	{scenarioVotes, "how far away each master is, and which of them decide, by goroutines", (*bench).measureVotes},
	{scenarioHeld, "re-entering and extending a lock that is held, by goroutines", (*bench).measureHeld},
	{scenarioContention, "one name, several processes and goroutines: rate against a local mutex, waits, hand-off, fairness", (*bench).measureContention},
	{scenarioSplit, "processes that want one free name at one instant: time until one has it", (*bench).measureSplit},
	{scenarioLinks, "masters that are away, one of them farther than the others", (*bench).measureLinks},
	{scenarioScale, "1 to 9 masters, locks held at once with extension on, shared names, goroutines that wait", (*bench).measureScale},
	{scenarioTimeline, "a fault that comes and goes while one caller works (needs masters that it starts)", (*bench).measureTimelines},
	{scenarioFaults, "one or two masters hung, dead or slow (needs masters that it starts)", (*bench).measureFaults},
}

// prefixOf is what the keys of a contender begin with; that of no other contender begins with the same.
func (b *bench) prefixOf(who string) string { return b.prefix + "-" + slug(who) + "." }

// mastersOf are the masters that a contender locks on.
func (b *bench) mastersOf(e entrant) *masters {
	if e.oneServer {
		return b.masters.first(1)
	}
	return b.masters
}

func (b *bench) urls(e entrant) []string { return b.mastersOf(e).urls }

func (b *bench) setting(e entrant) setting {
	return setting{URLs: b.urls(e), Prefix: b.prefixOf(e.name)}
}

func (b *bench) open(ctx context.Context, e entrant) (contender, error) {
	return e.open(ctx, b.setting(e), func(err error) { b.abort(ctx, err) })
}

func (b *bench) add(scenario, kase, who string, m metric, value float64) {
	b.report.figures.add(scenario, kase, who, m, value)
}

// abort ends the program where the floor cannot go on, which joins nothing: only the servers are stopped. An interrupt
// from a terminal goes to the servers as well, so what the floor sees first may be their end.
func (b *bench) abort(ctx context.Context, err error) {
	b.aborting.Do(func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		code := exitFailed
		if ctx.Err() != nil {
			code, err = exitInterrupted, errInterrupted
		}
		b.progress.clear()
		fmt.Fprintln(os.Stderr, err)
		if err := b.masters.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	})
}

var errInterrupted = errors.New("bench: interrupted")

// measureAll opens the masters, runs the scenarios, and closes whatever was opened, in every case.
func measureAll(ctx context.Context, c *config, p *progress) (r *report, err error) {
	defer p.clear()
	p.say("starting")
	m, err := openMasters(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	b := &bench{
		cfg: c, masters: m, entrants: c.entrants, progress: p, report: newReport(c, m),
		prefix: "redlock-bench-" + strconv.FormatUint(rand.Uint64(), 36), firsts: map[splitKey]instants{},
	}
	if m.memory != nil {
		b.withoutForeign()
	}
	if m.apart() {
		if b.report.Masters.Version, err = m.versions(ctx); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(b.measure(ctx), b.cleanUp(ctx)); err != nil {
		return nil, err
	}
	b.report.judge()
	return b.report, nil
}

// withoutForeign leaves out those who need real servers.
func (b *bench) withoutForeign() {
	b.entrants = slices.DeleteFunc(slices.Clone(b.entrants), func(e entrant) bool {
		if e.foreign {
			b.report.note("%s needs real servers, and is left out", e.name)
		}
		return e.foreign
	})
}

func (b *bench) measure(ctx context.Context) error {
	for _, s := range scenarios {
		if !b.cfg.wants(s.name) {
			continue
		}
		if err := s.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := b.countLeft(ctx, s.name); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// cleanUp removes the keys of this run from masters that live on.
func (b *bench) cleanUp(ctx context.Context) error {
	if b.masters.kind != kindGiven {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	return b.masters.sweep(ctx, b.prefix)
}
