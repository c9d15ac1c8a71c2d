package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// lockTTL is the TTL of every lock that is measured.
const lockTTL = 10 * time.Second

// namesPerWorker is how many names a goroutine locks in turn.
const namesPerWorker = 16

// A sample is what one run gave. A figure that was not measured is -1.
type sample struct {
	goroutines int
	pairs      int
	failed     int
	elapsed    time.Duration
	latencies  []time.Duration // sorted
	allocs     float64         // a pair
	clientCPU  float64         // us a pair
	serverCPU  float64         // us a pair
}

func (s *sample) rate() float64 { return float64(s.pairs) / s.elapsed.Seconds() }

// A run says what is to be measured.
type run struct {
	contender  contender
	goroutines int
	duration   time.Duration
	masters    *masters
	label      string // in the names of the locks
	tolerant   bool   // a pair that fails is counted; else it ends the run
	cold       bool   // no warm-up
}

// measure runs all workers for the duration, after a warm-up of a fifth of it.
func (r run) measure(ctx context.Context) (*sample, error) {
	workers := make([]*worker, r.goroutines)
	for i := range workers {
		workers[i] = newWorker(r.contender.worker(), r.label+strconv.Itoa(i)+"-")
	}
	if !r.cold {
		if _, err := r.drive(ctx, workers, r.duration/5); err != nil {
			return nil, err
		}
	}
	for _, w := range workers {
		w.reset(r.goroutines)
	}
	runtime.GC()
	var before, after runtime.MemStats
	serverBefore, haveServer := r.masters.cpu(ctx)
	runtime.ReadMemStats(&before)
	cpuBefore, haveCPU := cpuTime()
	elapsed, err := r.drive(ctx, workers, r.duration)
	cpuAfter, _ := cpuTime()
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	s := gather(workers, elapsed)
	per := float64(max(s.pairs, 1))
	s.allocs, s.clientCPU, s.serverCPU = -1, -1, -1
	if r.masters.apart() {
		s.allocs = float64(after.Mallocs-before.Mallocs) / per
		if haveCPU {
			s.clientCPU = micros(cpuAfter-cpuBefore) / per
		}
	}
	if serverAfter, ok := r.masters.cpu(ctx); ok && haveServer {
		s.serverCPU = micros(serverAfter-serverBefore) / per
	}
	return s, nil
}

func gather(workers []*worker, elapsed time.Duration) *sample {
	s := &sample{goroutines: len(workers), elapsed: elapsed}
	for _, w := range workers {
		s.latencies = append(s.latencies, w.latencies...)
		s.failed += w.failed
	}
	s.pairs = len(s.latencies)
	slices.Sort(s.latencies)
	return s
}

// A worker is one goroutine's share of a run.
type worker struct {
	pair      pairFunc
	names     [namesPerWorker]string
	next      int
	latencies []time.Duration
	failed    int
}

func newWorker(pair pairFunc, label string) *worker {
	w := &worker{pair: pair}
	for i := range w.names {
		w.names[i] = label + strconv.Itoa(i)
	}
	return w
}

// reset forgets the warm-up and makes room, so that recording hardly allocates.
func (w *worker) reset(goroutines int) {
	w.failed = 0
	w.latencies = slices.Grow(w.latencies[:0], max(1<<18/goroutines, 256))
}

// drive lets the workers run for d and returns how long it took until the last had ended.
func (r run) drive(ctx context.Context, workers []*worker, d time.Duration) (time.Duration, error) {
	var (
		wg    sync.WaitGroup
		stop  atomic.Bool
		once  sync.Once
		first error
	)
	start := time.Now()
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	for _, w := range workers {
		wg.Go(func() {
			if err := w.loop(ctx, &stop, r.tolerant); err != nil {
				once.Do(func() { first = err })
				stop.Store(true)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	if err := context.Cause(ctx); err != nil {
		return elapsed, err
	}
	if first != nil {
		return elapsed, fmt.Errorf("bench: %s: %w", r.contender.name(), first)
	}
	return elapsed, nil
}

func (w *worker) loop(ctx context.Context, stop *atomic.Bool, tolerant bool) error {
	for !stop.Load() && ctx.Err() == nil {
		name := w.names[w.next%namesPerWorker]
		w.next++
		start := time.Now()
		err := w.pair(ctx, name)
		if err == nil {
			w.latencies = append(w.latencies, time.Since(start))
			continue
		}
		if !tolerant {
			return err
		}
		w.failed++
	}
	return nil
}
