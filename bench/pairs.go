package main

import (
	"context"
	"errors"
	"fmt"
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
	mServerCPU   = metric{"server cpu/pair", "us", less} // of all masters together
	mAllocs      = metric{"allocs/pair", "1", less}
	mPairCmds    = metric{"commands/pair", "1", less} // and master
	mConnections = metric{"conns/master", "1", less}
	mFailures    = metric{"failed/10000", "1", less} // pairs
)

// measurePairs runs the contenders in turns, in an order that rotates from round to round. Each is opened for its run and
// closed after it, so that none has connections, heartbeats or garbage while another is measured.
func (b *bench) measurePairs(ctx context.Context) error {
	for round := range b.cfg.rounds {
		for _, n := range b.cfg.goroutines {
			for k := range b.entrants {
				e := b.entrants[(k+round)%len(b.entrants)]
				b.progress.say("round %d of %d, %d goroutines, %s", round+1, b.cfg.rounds, n, e.name)
				if err := b.pairs(ctx, e, n); err != nil {
					return fmt.Errorf("%s: %w", e.name, err)
				}
			}
		}
	}
	return nil
}

// pairs is one run of one contender.
func (b *bench) pairs(ctx context.Context, e entrant, n int) error {
	m := b.mastersOf(e)
	connections, err := m.connections(ctx)
	if err != nil {
		return err
	}
	c, err := b.open(ctx, e)
	if err != nil {
		return err
	}
	s, err := run{contender: c, wire: e.wire, goroutines: n, duration: b.cfg.duration, masters: m, label: "pair-", tolerant: true}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	left, err := m.leftBehind(ctx, b.prefixOf(e.name), e.suffix)
	if err != nil {
		return err
	}
	if s.pairs() > 0 {
		b.addPairs(e.name, n, s)
	}
	if s.connections >= 0 {
		b.add(scenarioPairs, rateCase(n), e.name, mConnections, float64(s.connections-connections))
	}
	if s.failed > 0 {
		b.report.note("%s, %s: %d of %d pairs failed in a round; the first: %v", goroutinesCase(n), e.name, s.failed, s.failed+s.pairs(), firstLine(s.firstErr))
	}
	b.add(scenarioPairs, rateCase(n), e.name, mFailures, 10_000*float64(s.failed)/float64(max(s.pairs(), 1)))
	b.addRemains(scenarioPairs, rateCase(n), e.name, left, len(m.urls), s.pairs())
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
	for _, o := range []struct {
		name string
		list []time.Duration
	}{{opLock, s.locks}, {opUnlock, s.unlocks}, {opPair, s.both}} {
		add := func(m metric, v float64) { b.add(scenarioPairs, latencyCase(o.name, n), who, m, v) }
		add(mP50, micros(percentile(o.list, 50)))
		add(mP90, micros(percentile(o.list, 90)))
		add(mP99, micros(percentile(o.list, 99)))
		add(mP999, micros(percentile(o.list, 99.9)))
		add(mMean, micros(mean(o.list)))
	}
	b.report.setCurve(cdf(goroutinesCase(n), who, s.both))
	add := func(m metric, v float64) {
		if v >= 0 {
			b.add(scenarioPairs, rateCase(n), who, m, v)
		}
	}
	add(mRate, s.rate())
	add(mClientCPU, s.clientCPU)
	add(mServerCPU, s.serverCPU)
	add(mAllocs, s.allocs)
	add(mPairCmds, s.commands)
}
