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
	serverCPU            float64 // us a pair
	commands             float64 // a pair and master
	connections          int     // the most that a master had, all clients
}

func (s *sample) pairs() int    { return len(s.both) }
func (s *sample) rate() float64 { return float64(s.pairs()) / s.elapsed.Seconds() }

// A run says what is to be measured.
type run struct {
	contender  contender
	wire       []string // see entrant
	goroutines int
	duration   time.Duration
	masters    *masters
	label      string // in the names of the locks
	shared     int    // the goroutines share so many names, and wait for each other; 0: each has its own
	once       bool   // each name is locked once
	tolerant   bool   // a pair that fails is counted; else it ends the run
	cold       bool   // no warm-up
}

// measure runs all workers for the duration, after a warm-up of a fifth of it.
func (r run) measure(ctx context.Context) (*sample, error) {
	workers := make([]*worker, r.goroutines)
	for i := range workers {
		workers[i] = newWorker(r.contender.caller(), r.label+strconv.Itoa(i)+"-")
		if r.shared > 0 {
			workers[i].share(r.label + strconv.Itoa(i%r.shared))
		}
		if r.once {
			workers[i].once = r.label + strconv.Itoa(i) + "-"
		}
	}
	connections := -1
	if !r.cold {
		var err error
		if connections, err = r.warmUp(ctx, workers); err != nil {
			return nil, err
		}
	}
	for _, w := range workers {
		w.reset(r.goroutines)
	}
	runtime.GC()
	var before, after runtime.MemStats
	serverBefore := r.masters.load(ctx, r.wire)
	runtime.ReadMemStats(&before)
	cpuBefore, haveCPU := cpuTime()
	elapsed, err := r.drive(ctx, workers, r.duration)
	cpuAfter, _ := cpuTime()
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	s := gather(workers, elapsed)
	s.connections = connections
	per := float64(max(s.pairs(), 1))
	s.allocs, s.clientCPU = -1, -1
	if r.masters.apart() {
		s.allocs = float64(after.Mallocs-before.Mallocs) / per
		if haveCPU {
			s.clientCPU = micros(cpuAfter-cpuBefore) / per
		}
	}
	s.serverCPU, s.commands = r.masters.load(ctx, r.wire).since(serverBefore, per)
	return s, nil
}

// warmUp drives the workers for a fifth of the duration and returns how many connections a master has halfway.
func (r run) warmUp(ctx context.Context, workers []*worker) (connections int, err error) {
	var counted sync.WaitGroup
	var countErr error
	halfway := time.NewTimer(r.duration / 10)
	defer halfway.Stop()
	counted.Go(func() {
		select {
		case <-halfway.C:
			connections, countErr = r.masters.connections(ctx)
		case <-ctx.Done():
		}
	})
	_, err = r.drive(ctx, workers, r.duration/5)
	counted.Wait()
	if err == nil {
		err = countErr
	}
	return connections, err
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
	waits          bool
	once           string // if not "", what all names begin with, each of which is locked once
}

func newWorker(c caller, label string) *worker {
	w := &worker{caller: c}
	for i := range w.names {
		w.names[i] = label + strconv.Itoa(i)
	}
	return w
}

// share makes the worker wait for one name.
func (w *worker) share(name string) {
	w.waits = true
	for i := range w.names {
		w.names[i] = name
	}
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
	return elapsed, first
}

func (w *worker) loop(ctx context.Context, stop *atomic.Bool, tolerant bool) error {
	for !stop.Load() && ctx.Err() == nil {
		if err := w.pair(ctx); err != nil {
			if !tolerant {
				return err
			}
			w.failed++
			if w.firstErr == nil {
				w.firstErr = err
			}
		}
	}
	return nil
}

func (w *worker) pair(ctx context.Context) error {
	name := w.names[w.next%namesPerWorker]
	if w.once != "" {
		name = w.once + strconv.Itoa(w.next)
	}
	w.next++
	start := time.Now()
	take := w.caller.tryLock
	if w.waits {
		take = w.caller.lock
	}
	lock, err := take(ctx, name)
	if err != nil {
		return err
	}
	got := time.Now()
	if err := lock.Unlock(ctx); err != nil {
		return err
	}
	w.unlocks = append(w.unlocks, time.Since(got))
	w.locks = append(w.locks, got.Sub(start))
	return nil
}
