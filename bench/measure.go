package main

import (
	"context"
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
	locks, unlocks, both []time.Duration // sorted
	failed               int
	firstErr             error
	elapsed              time.Duration
	allocs               float64 // a pair
	clientCPU            float64 // us a pair
	commands             float64 // a pair and master
}

func (s *sample) pairs() int    { return len(s.both) }
func (s *sample) rate() float64 { return float64(s.pairs()) / s.elapsed.Seconds() }

// A run says what is to be measured.
type run struct {
	contender  contender
	wire       []string // see entrant
	goroutines int
	duration   time.Duration
	masters    *masters // whose load is taken; none where they may not answer
	label      string   // in the names of the locks
	cold       bool     // no warm-up
}

// measure runs all workers for the duration, after a warm-up of a fifth of it. Pairs that fail are counted; where all
// do, that is an error.
func (r run) measure(ctx context.Context) (*sample, error) {
	workers := make([]*worker, r.goroutines)
	for i := range workers {
		workers[i] = newWorker(r.contender.caller(), r.label+strconv.Itoa(i)+"-")
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
	commands, err := r.masters.commands(ctx, r.wire)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&before)
	cpuBefore, haveCPU := cpuTime()
	elapsed, err := r.drive(ctx, workers, r.duration)
	cpuAfter, _ := cpuTime()
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	s := gather(workers, elapsed)
	if s.pairs() == 0 && s.failed > 0 {
		return nil, s.firstErr
	}
	per := float64(max(s.pairs(), 1))
	s.allocs, s.clientCPU = float64(after.Mallocs-before.Mallocs)/per, -1
	if haveCPU {
		s.clientCPU = micros(cpuAfter-cpuBefore) / per
	}
	sent, err := r.masters.commands(ctx, r.wire)
	s.commands = float64(sent-commands) / per / float64(max(len(r.masters.urls), 1))
	return s, err
}

func gather(workers []*worker, elapsed time.Duration) *sample {
	s := &sample{elapsed: elapsed}
	for _, w := range workers {
		s.locks = append(s.locks, w.locks...)
		s.unlocks = append(s.unlocks, w.unlocks...)
		s.failed += w.failed
		if s.firstErr == nil {
			s.firstErr = w.firstErr
		}
	}
	s.both = make([]time.Duration, len(s.locks))
	for i := range s.both {
		s.both[i] = s.locks[i] + s.unlocks[i]
	}
	slices.Sort(s.locks)
	slices.Sort(s.unlocks)
	slices.Sort(s.both)
	return s
}

// A worker is one goroutine's share of a run.
type worker struct {
	caller         caller
	names          [namesPerWorker]string
	next           int
	locks, unlocks []time.Duration // of the pairs that succeeded
	failed         int
	firstErr       error
}

func newWorker(c caller, label string) *worker {
	w := &worker{caller: c}
	for i := range w.names {
		w.names[i] = label + strconv.Itoa(i)
	}
	return w
}

// reset forgets the warm-up and makes room, so that recording hardly allocates.
func (w *worker) reset(goroutines int) {
	w.failed, w.firstErr = 0, nil
	room := max(1<<17/goroutines, 256)
	w.locks = slices.Grow(w.locks[:0], room)
	w.unlocks = slices.Grow(w.unlocks[:0], room)
}

// drive lets the workers run for d and returns how long it took until the last had ended.
func (r run) drive(ctx context.Context, workers []*worker, d time.Duration) (time.Duration, error) {
	var wg sync.WaitGroup
	var stop atomic.Bool
	start := time.Now()
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	for _, w := range workers {
		wg.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				w.pair(ctx)
			}
		})
	}
	wg.Wait()
	return time.Since(start), context.Cause(ctx)
}

// pair locks the next name and unlocks it, and notes how long that took, or that it failed.
func (w *worker) pair(ctx context.Context) {
	name := w.names[w.next%namesPerWorker]
	w.next++
	start := time.Now()
	lock, err := w.caller.tryLock(ctx, name)
	got := time.Now()
	if err == nil {
		err = lock.Unlock(ctx)
	}
	if err == nil {
		w.unlocks = append(w.unlocks, time.Since(got))
		w.locks = append(w.locks, got.Sub(start))
		return
	}
	w.failed++
	if w.firstErr == nil {
		w.firstErr = err
	}
}
