package main

import (
	"context"
	"errors"
	"time"
)

const scenarioPairs = "pairs"

// Metrics of pairs.
var (
	mP50  = metric{"p50", "us", less}
	mP90  = metric{"p90", "us", less}
	mP99  = metric{"p99", "us", less}
	mP999 = metric{"p99.9", "us", less}

	mRate        = metric{"pairs/s", "1/s", more}
	mClientCPU   = metric{"client cpu/pair", "us", less}
	mServerCPU   = metric{"server cpu/pair", "us", less} // of all masters together
	mAllocs      = metric{"allocs/pair", "1", less}
	mPairCmds    = metric{"commands/pair", "1", less} // per pair and master
	mConnections = metric{"conns/master", "1", less}
	mFailures    = metric{"failed/10000", "1", less} // per 10,000 pairs
)

// planPairs runs each contender alone. It opens the contender for its run and closes it afterwards, so that no
// contender has connections, heartbeats or garbage while another is measured.
func planPairs(b *bench) (plan [][]task) {
	for _, n := range b.cfg.goroutines {
		plan = append(plan, turns(goroutinesCase(n), b.cfg.entrants, func(ctx context.Context, e entrant, _ int) error {
			return pairs(ctx, b, e, n)
		}))
	}
	return plan
}

// pairs runs one contender once.
func pairs(ctx context.Context, b *bench, e entrant, n int) error {
	m := b.masters
	before, err := m.connections(ctx)
	if err != nil {
		return err
	}
	c, err := e.open(ctx, b.setting(e.name))
	if err != nil {
		return err
	}
	r := run{contender: c, wire: e.wire, goroutines: n, duration: b.cfg.duration, masters: m, label: "pair-",
		reuse: e.name == nameLinger}
	s, err := r.measure(ctx)
	connections, cerr := m.connections(ctx)
	if err := errors.Join(err, cerr, shut(ctx, c)); err != nil {
		return err
	}
	left, err := m.leftBehind(ctx, b.prefixOf(e.name), e.suffix)
	if err != nil {
		return err
	}
	addTimes(b, latencyCase(opLock, n), e.name, s.times(func(p pair) time.Duration { return p.lock }))
	addTimes(b, latencyCase(opUnlock, n), e.name, s.times(func(p pair) time.Duration { return p.unlock }))
	addTimes(b, latencyCase(opPair, n), e.name, s.both())
	addLoad(b, scenarioPairs, rateCase(n), e.name, s)
	add := func(m metric, v float64) { b.add(scenarioPairs, rateCase(n), e.name, m, v) }
	add(mConnections, float64(connections-before))
	add(mFailures, 10_000*float64(s.failed)/float64(max(len(s.pairs), 1)))
	if s.failed > 0 {
		b.report.note("%s, %s: %d of %d pairs failed in a round; first error: %v",
			goroutinesCase(n), e.name, s.failed, s.failed+len(s.pairs), firstLine(s.firstErr))
	}
	b.addRemains(scenarioPairs, rateCase(n), e.name, left, len(s.pairs))
	return nil
}

// The operations of a pair, as in the names of cases.
const (
	opLock   = "lock"
	opUnlock = "unlock"
	opPair   = "lock+unlock"
)

func latencyCase(op string, n int) string { return op + ", " + goroutinesCase(n) }
func rateCase(n int) string               { return "rate, " + goroutinesCase(n) }

// addLoad adds the rate, and the cost of a pair for the client and the masters. It ignores the load of given
// masters, because they may have other clients.
func addLoad(b *bench, scenario, kase, who string, s *sample) {
	add := func(m metric, v float64) { b.add(scenario, kase, who, m, v) }
	add(mRate, float64(len(s.pairs))/s.elapsed.Seconds())
	add(mClientCPU, s.clientCPU)
	if b.masters.servers != nil {
		add(mServerCPU, s.serverCPU)
	}
	add(mAllocs, s.allocs)
	add(mPairCmds, s.commands)
}

// addTimes adds percentiles of times, which must be sorted.
func addTimes(b *bench, kase, who string, list []time.Duration) {
	for _, p := range []struct {
		m metric
		p float64
	}{{mP50, 50}, {mP90, 90}, {mP99, 99}, {mP999, 99.9}} {
		b.add(scenarioPairs, kase, who, p.m, micros(percentile(list, p.p)))
	}
}
