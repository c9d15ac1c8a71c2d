package main

import (
	"context"
	"errors"
	"time"
)

const scenarioPairs = "pairs"

// What is measured of pairs.
var (
	mP50  = metric{"p50", "us", less}
	mP90  = metric{"p90", "us", less}
	mP99  = metric{"p99", "us", less}
	mP999 = metric{"p99.9", "us", less}
	mMean = metric{"mean", "us", less}

	mRate        = metric{"pairs/s", "1/s", more}
	mClientCPU   = metric{"client cpu/pair", "us", less}
	mAllocs      = metric{"allocs/pair", "1", less}
	mPairCmds    = metric{"commands/pair", "1", less} // and master
	mConnections = metric{"conns/master", "1", less}
	mFailures    = metric{"failed/10000", "1", less} // pairs
)

// planPairs has each contender run alone: it is opened for its run and closed after it, so that none has connections,
// heartbeats or garbage while another is measured.
func (b *bench) planPairs() (plan [][]task) {
	for _, n := range b.cfg.goroutines {
		plan = append(plan, turns(goroutinesCase(n), b.cfg.entrants, func(ctx context.Context, e entrant, _ int) error {
			return b.pairs(ctx, e, n)
		}))
	}
	return plan
}

// pairs is one run of one contender.
func (b *bench) pairs(ctx context.Context, e entrant, n int) error {
	m := b.masters
	before, err := m.connections(ctx)
	if err != nil {
		return err
	}
	c, err := e.open(ctx, b.setting(e.name))
	if err != nil {
		return err
	}
	r := run{contender: c, wire: e.wire, goroutines: n, duration: b.cfg.duration, masters: m, label: "pair-"}
	s, err := r.measure(ctx)
	connections, cerr := m.connections(ctx)
	if err := errors.Join(err, cerr, closeAll(ctx, c)); err != nil {
		return err
	}
	left, err := m.leftBehind(ctx, b.prefixOf(e.name), e.suffix)
	if err != nil {
		return err
	}
	b.addPairs(e.name, n, s)
	b.add(scenarioPairs, rateCase(n), e.name, mConnections, float64(connections-before))
	if s.failed > 0 {
		b.report.note("%s, %s: %d of %d pairs failed in a round; the first: %v",
			goroutinesCase(n), e.name, s.failed, s.failed+s.pairs(), firstLine(s.firstErr))
	}
	b.add(scenarioPairs, rateCase(n), e.name, mFailures, 10_000*float64(s.failed)/float64(max(s.pairs(), 1)))
	b.addRemains(scenarioPairs, rateCase(n), e.name, left, s.pairs())
	return m.sweep(ctx, b.prefixOf(e.name))
}

// The operations of a pair, as cases name them.
const (
	opLock   = "lock"
	opUnlock = "unlock"
	opPair   = "lock+unlock"
)

func latencyCase(op string, n int) string { return op + ", " + goroutinesCase(n) }
func rateCase(n int) string               { return "rate, " + goroutinesCase(n) }

func (b *bench) addPairs(who string, n int, s *sample) {
	b.addTimes(scenarioPairs, latencyCase(opLock, n), who, s.locks)
	b.addTimes(scenarioPairs, latencyCase(opUnlock, n), who, s.unlocks)
	b.addTimes(scenarioPairs, latencyCase(opPair, n), who, s.both)
	b.report.setCurve(cdf(goroutinesCase(n), who, s.both))
	b.add(scenarioPairs, rateCase(n), who, mRate, s.rate())
	b.addLoad(scenarioPairs, rateCase(n), who, s)
}

// addLoad books what a pair costs client and masters, as far as it is known.
func (b *bench) addLoad(scenario, kase, who string, s *sample) {
	for _, f := range []struct {
		m metric
		v float64
	}{{mClientCPU, s.clientCPU}, {mAllocs, s.allocs}, {mPairCmds, s.commands}} {
		if f.v >= 0 {
			b.add(scenario, kase, who, f.m, f.v)
		}
	}
}

// addTimes books the percentiles and the mean of sorted times.
func (b *bench) addTimes(scenario, kase, who string, list []time.Duration) {
	for _, p := range []struct {
		m metric
		p float64
	}{{mP50, 50}, {mP90, 90}, {mP99, 99}, {mP999, 99.9}} {
		b.add(scenario, kase, who, p.m, micros(percentile(list, p.p)))
	}
	b.add(scenario, kase, who, mMean, micros(mean(list)))
}
