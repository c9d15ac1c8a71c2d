package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Metrics of pairs.
var (
	mP50  = metric{"p50", "us"}
	mP90  = metric{"p90", "us"}
	mP99  = metric{"p99", "us"}
	mP999 = metric{"p99.9", "us"}
	mMax  = metric{"max", "us"}

	mLock50    = metric{"lock p50", "us"}
	mRate      = metric{"pairs", "1/s"}
	mClientCPU = metric{"client cpu/pair", "us"}
	mServerCPU = metric{"server cpu/pair", "us"} // of all masters together
	mAllocs    = metric{"allocs/pair", ""}
	mCommands  = metric{"commands/pair", ""} // per master
	mConns     = metric{"conns/master", ""}
	mFailures  = metric{"failed", "1/10000"}
	mKeysLeft  = metric{"keys left/pair", ""} // per master
)

// A percentile is a metric of the durations of pairs; wait is the same of waits for a held name.
type percentile struct {
	m metric
	q float64
}

func (p percentile) wait() metric { return metric{"wait " + p.m.Metric, p.m.Unit} }

var percentiles = []percentile{{mP50, 0.5}, {mP90, 0.9}, {mP99, 0.99}, {mP999, 0.999}, {mMax, 1}}

// pairsTask measures n goroutines that lock and unlock names of their own.
func (b *bench) pairsTask(scenario string, n int) task {
	name := goroutinesCase(n)
	entrants := slices.DeleteFunc(slices.Clone(b.entrants), func(e entrant) bool {
		return n > 4096 && e.name != nameLibrary && e.name != nameFloor // the peers run out of sockets
	})
	duration := max(b.duration, time.Duration(n)*time.Millisecond/2) // every caller completes a few pairs
	return task{scenario, name, entrants, func(ctx context.Context, e entrant, _ int) error {
		s := b.setting()
		before, err := b.masters.state(ctx)
		if err != nil {
			return err
		}
		c, err := e.open(ctx, s)
		if err != nil {
			return err
		}
		p, err := drive(ctx, c, e, n, duration/2, duration, b.masters)
		if err := errors.Join(err, shut(ctx, c)); err != nil {
			return err
		}
		left, err := b.masters.sweep(ctx, s.Prefix)
		masters, rate := float64(len(b.masters.urls)), p.done/p.after.at.Sub(p.before.at).Seconds()
		calls, cpu := p.after.since(p.before, e.wire)
		if b.masters.servers == nil {
			cpu = nan // given masters may have other clients
		}
		at := place{scenario, name, e.name}
		b.addTimes(at, p)
		add := func(m metric, v float64) { b.report.add(at, m, v) }
		add(mLock50, quantile(p.locks, 0.5))
		add(mRate, rate)
		add(mAllocs, p.allocs/rate)
		add(mClientCPU, p.clientCPU/rate)
		add(mServerCPU, cpu/p.done)
		add(mCommands, calls/p.done/masters)
		add(mConns, p.after.clients-before.clients)
		add(mKeysLeft, left/masters/p.total)
		return err
	}}
}

func goroutinesCase(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// addTimes adds percentiles of the durations of pairs, and their failures.
func (b *bench) addTimes(at place, p *pairs) {
	for _, q := range percentiles {
		b.report.add(at, q.m, quantile(p.both, q.q))
	}
	n := len(p.both)
	if failed := n - len(p.locks); failed > 0 {
		b.report.note("%v: %d of %d pairs failed in a round: %.100v", at, failed, n, p.firstErr)
	}
	b.report.add(at, mFailures, 10_000*float64(n-len(p.locks))/float64(n))
}

// pairs is the result of drive. The measured time is that between the two states of the masters.
type pairs struct {
	before, after     *state
	locks, both       []float64 // durations in us, sorted: locks of pairs that succeeded, and all pairs
	firstErr          error
	total             float64 // number of pairs, with those of the warm-up
	done              float64 // number of pairs that succeeded in the measured time
	allocs, clientCPU float64 // of this process for each second; the processor time in us
}

// A pair is one lock that was acquired and released.
type pair struct {
	ended      time.Time
	lock, both time.Duration
	err        error
}

// grace is the time for which calls in progress may continue after the end of a measurement.
const grace = 5 * time.Second

// drive makes n goroutines lock and unlock names, first for the warm-up, then for the time d. A pair belongs to the
// time in which it ends; the last pair of each goroutine ends later, and counts only among the durations.
func drive(
	ctx context.Context, c contender, e entrant, n int, warm, d time.Duration, m *masters,
) (p *pairs, err error) {
	limited, cancel := context.WithTimeout(ctx, warm+d+grace)
	defer cancel()
	lists := make([][]pair, n)
	var stop atomic.Bool
	var all sync.WaitGroup
	runtime.GC()
	for i := range lists {
		all.Go(func() {
			for k := 0; !stop.Load() && limited.Err() == nil; k++ {
				lists[i] = append(lists[i], onePair(limited, c, e, i, k))
			}
		})
	}
	defer func() {
		stop.Store(true)
		all.Wait()
		err = errors.Join(err, context.Cause(ctx))
		p.collect(slices.Concat(lists...))
	}()
	sleep(ctx, warm)
	p = new(pairs)
	if p.before, err = m.state(ctx); err != nil {
		return p, err
	}
	var memory, memoryAfter runtime.MemStats
	runtime.ReadMemStats(&memory)
	cpu, start := cpuTime(), time.Now()
	sleep(ctx, d)
	seconds := time.Since(start).Seconds()
	p.clientCPU = micros(cpuTime()-cpu) / seconds
	runtime.ReadMemStats(&memoryAfter)
	p.allocs = float64(memoryAfter.Mallocs-memory.Mallocs) / seconds
	p.after, err = m.state(ctx) // afterwards, because it allocates
	return p, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// onePair makes goroutine i lock and unlock its k-th name.
func onePair(ctx context.Context, c contender, e entrant, i, k int) pair {
	if e.reuse {
		k %= 16
	}
	name := strconv.Itoa(i) + "-" + strconv.Itoa(k)
	start := time.Now()
	lock, err := c.lock(ctx, name)
	got := time.Now()
	if err == nil {
		err = lock.Unlock(ctx)
	}
	now := time.Now()
	return pair{now, got.Sub(start), now.Sub(start), err}
}

func (p *pairs) collect(list []pair) {
	p.total = float64(len(list))
	for _, one := range list {
		switch {
		case one.ended.Before(p.before.at):
			continue
		case one.err != nil:
			p.firstErr = cmp.Or(p.firstErr, one.err)
		case one.ended.Before(p.after.at):
			p.done++
			fallthrough
		default:
			p.locks = append(p.locks, micros(one.lock))
		}
		p.both = append(p.both, micros(one.both))
	}
	slices.Sort(p.locks)
	slices.Sort(p.both)
}

// quantile returns the smallest of the sorted values that at least the fraction q of all values does not exceed, or NaN
// without values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return nan
	}
	return stat.Quantile(q, stat.Empirical, sorted, nil)
}

// cpuTime returns the user and system time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for invalid arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
