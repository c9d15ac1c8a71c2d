package main

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock/bench/floor"
)

// figures are the spreads of one contender at one number of goroutines.
type figures struct {
	Mean      *spread `json:"mean_us"`
	P50       *spread `json:"p50_us"`
	P90       *spread `json:"p90_us"`
	P99       *spread `json:"p99_us"`
	Rate      *spread `json:"pairs_per_second"`
	Allocs    *spread `json:"allocs_per_pair"`
	ClientCPU *spread `json:"client_cpu_us_per_pair"`
	ServerCPU *spread `json:"server_cpu_us_per_pair"`
}

func newFigures(samples []*sample) figures {
	collect := func(f func(*sample) float64) *spread {
		var values []float64
		for _, s := range samples {
			if v := f(s); v >= 0 {
				values = append(values, v)
			}
		}
		return newSpread(values)
	}
	rank := func(p float64) func(*sample) float64 {
		return func(s *sample) float64 { return micros(percentile(s.latencies, p)) }
	}
	return figures{
		Mean:      collect(func(s *sample) float64 { return micros(mean(s.latencies)) }),
		P50:       collect(rank(50)),
		P90:       collect(rank(90)),
		P99:       collect(rank(99)),
		Rate:      collect((*sample).rate),
		Allocs:    collect(func(s *sample) float64 { return s.allocs }),
		ClientCPU: collect(func(s *sample) float64 { return s.clientCPU }),
		ServerCPU: collect(func(s *sample) float64 { return s.serverCPU }),
	}
}

// A pairResult is what one number of goroutines gave.
type pairResult struct {
	Goroutines int                `json:"goroutines"`
	Contenders map[string]figures `json:"contenders"`
	// Floor is the faster form of the floor here, by the median latency of one goroutine and by the rate of several.
	Floor string `json:"floor"`
	// Latency and Throughput are the library's figures over that floor's, round by round.
	Latency    *spread `json:"latency_ratio"`
	Throughput *spread `json:"throughput_ratio"`
}

func newPairResult(goroutines int, samples map[string][]*sample) pairResult {
	r := pairResult{Goroutines: goroutines, Contenders: map[string]figures{}}
	for name, list := range samples {
		r.Contenders[name] = newFigures(list)
	}
	r.Floor = fasterFloor(goroutines, r.Contenders)
	library, base := samples[nameLibrary], samples[r.Floor]
	p50 := func(s *sample) float64 { return micros(percentile(s.latencies, 50)) }
	r.Latency = newSpread(ratios(apply(library, p50), apply(base, p50)))
	r.Throughput = newSpread(ratios(apply(library, (*sample).rate), apply(base, (*sample).rate)))
	return r
}

func fasterFloor(goroutines int, all map[string]figures) string {
	direct, queued := all[nameDirect], all[nameQueued]
	switch {
	case direct.P50 == nil:
		return nameQueued
	case queued.P50 == nil:
		return nameDirect
	case goroutines == 1 && queued.P50.Median < direct.P50.Median:
		return nameQueued
	case goroutines > 1 && queued.Rate.Median > direct.Rate.Median:
		return nameQueued
	}
	return nameDirect
}

func apply(samples []*sample, f func(*sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = f(s)
	}
	return values
}

// measurePairs runs the contenders in turns, in an order that rotates from round to round.
func (b *bench) measurePairs(ctx context.Context) error {
	contenders, err := b.openContenders(ctx)
	defer func() { b.closing(closeAll(ctx, contenders)) }()
	if err != nil {
		return err
	}
	samples := map[int]map[string][]*sample{}
	for _, n := range b.cfg.goroutines {
		samples[n] = map[string][]*sample{}
	}
	for round := range b.cfg.rounds {
		for _, n := range b.cfg.goroutines {
			for k := range contenders {
				c := contenders[(k+round)%len(contenders)]
				b.progress.say("round %d of %d, %d goroutines, %s", round+1, b.cfg.rounds, n, c.name())
				s, err := run{contender: c, goroutines: n, duration: b.cfg.duration, masters: b.masters, label: "pair-"}.measure(ctx)
				if err != nil {
					return err
				}
				samples[n][c.name()] = append(samples[n][c.name()], s)
			}
		}
	}
	for _, n := range b.cfg.goroutines {
		b.report.Pair = append(b.report.Pair, newPairResult(n, samples[n]))
	}
	return b.countConnections(ctx)
}

// openContenders opens all of them; after an error those that are open are returned too.
func (b *bench) openContenders(ctx context.Context) ([]contender, error) {
	var list []contender
	add := func(c contender, err error) error {
		if err == nil {
			list = append(list, c)
		}
		return err
	}
	err := add(b.openFloor(ctx, b.masters.urls, 0, floor.Direct, nameDirect, b.prefix+"-direct"))
	if err == nil {
		err = add(b.openFloor(ctx, b.masters.urls, 0, floor.Queued, nameQueued, b.prefix+"-queued"))
	}
	if err != nil {
		return list, err
	}
	if b.connsBefore, err = b.masters.connections(ctx); err != nil {
		return list, err
	}
	l, err := openLibrary(ctx, b.masters.urls, b.libraryPrefix())
	if err != nil {
		return list, err
	}
	return append(list, l), nil
}

// countConnections tells how many the library has opened, after it has been driven by the most goroutines. A master
// whose clients are not all of this program may give another number; those that it starts itself do not.
func (b *bench) countConnections(ctx context.Context) error {
	after, err := b.masters.connections(ctx)
	if err != nil {
		return err
	}
	for i := range after {
		b.report.Connections = append(b.report.Connections, after[i]-b.connsBefore[i])
	}
	return nil
}

// closeBound is the most that a contender may take to close.
const closeBound = 10 * time.Second

func closeAll(ctx context.Context, list []contender) error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeBound)
	defer cancel()
	for _, c := range list {
		errs = append(errs, c.close(ctx))
	}
	return errors.Join(errs...)
}
