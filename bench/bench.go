package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// A bench is the state of one run of the program.
type bench struct {
	*config
	masters  *masters
	report   *report
	prefix   string // prefix of all keys
	settings int    // number of settings that were made
}

// setting returns a setting with new keys. Its prefix is no prefix of another setting's.
func (b *bench) setting() setting {
	b.settings++
	return setting{URLs: b.masters.urls, Prefix: fmt.Sprintf("%s-%d.", b.prefix, b.settings)}
}

// A task measures one case. Each round calls measure for each contender in turn.
type task struct {
	scenario, name string
	entrants       []entrant
	measure        func(ctx context.Context, e entrant, round int) error
}

// measureAll opens the masters, measures the scenarios, and closes everything that it has opened.
func measureAll(ctx context.Context, c *config, progress io.Writer) (r *report, err error) {
	m, err := openMasters(ctx, c.masters)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	s, err := m.state(ctx)
	if err != nil {
		return nil, err
	}
	b := &bench{c, m, newReport(c, m, s.version), "redlock-bench-" + strconv.FormatUint(rand.Uint64(), 36), 0}
	began := time.Now()
	for round := range c.rounds {
		for _, t := range b.tasks() {
			fmt.Fprintf(progress, "%v: round %d of %d: %s, %s\n", time.Since(began).Round(time.Second), round+1, c.rounds,
				t.scenario, t.name)
			for k := range t.entrants {
				e := t.entrants[(k+round)%len(t.entrants)]
				if err := t.measure(ctx, e, round); err != nil {
					return nil, fmt.Errorf("%s, %s, %s: %w", t.scenario, t.name, e.name, err)
				}
			}
		}
	}
	return b.report, nil
}

// tasks returns the tasks of one round, ordered by scenario.
func (b *bench) tasks() (list []task) {
	if slices.Contains(b.scenarios, scenarioCost) {
		list = append(list, b.pairsTask(scenarioCost, 1))
	}
	if slices.Contains(b.scenarios, scenarioLoad) {
		for _, n := range b.goroutines {
			list = append(list, b.pairsTask(scenarioLoad, n))
		}
		for _, s := range shapes {
			list = append(list, b.contentionTask(s))
		}
	}
	if slices.Contains(b.scenarios, scenarioFaults) {
		if b.masters.servers == nil {
			b.report.note("faults are not measured: the benchmark does not stop or kill the masters of -masters")
			return list
		}
		for _, f := range faults {
			list = append(list, b.faultTask(f))
		}
	}
	return list
}
