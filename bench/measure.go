package main

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lockTTL is the TTL of every measured lock.
const lockTTL = 10 * time.Second

// namesPerWorker is the number of names that a goroutine locks in turn if run.reuse is set.
const namesPerWorker = 16

// A pair is one lock that was acquired and released.
type pair struct{ began, lock, unlock time.Duration } // began is the time from the start of the run to Lock

// A sample is the result of one run.
type sample struct {
	start     time.Time
	pairs     []pair
	failed    int
	firstErr  error
	elapsed   time.Duration
	allocs    float64 // per pair
	clientCPU float64 // us per pair
	serverCPU float64 // us per pair, of all masters together
	commands  float64 // per pair and master
}

// times returns part(p) of all pairs p, sorted.
func (s *sample) times(part func(pair) time.Duration) []time.Duration {
	list := make([]time.Duration, len(s.pairs))
	for i, p := range s.pairs {
		list[i] = part(p)
	}
	slices.Sort(list)
	return list
}

func (s *sample) both() []time.Duration { return s.times(pair.both) }

func (p pair) both() time.Duration { return p.lock + p.unlock }

// A run describes a measurement.
type run struct {
	contender  contender
	wire       []string // see entrant.wire
	goroutines int
	duration   time.Duration
	masters    *masters // the masters whose load is measured; without URLs if a master may not reply
	label      string   // used in the names of the locks
	cold       bool     // no warm-up
	reuse      bool     // each goroutine locks the same few names in turn, instead of a new name for each pair
}

// measure runs all workers for the duration. Unless r.cold is set, it first warms them up for a fifth of the duration.
// It counts the pairs that fail, and returns an error if all pairs fail.
func (r run) measure(ctx context.Context) (*sample, error) {
	workers := make([]*worker, r.goroutines)
	for i := range workers {
		workers[i] = newWorker(r.contender.caller(), r.label+strconv.Itoa(i)+"-", r.reuse)
	}
	if !r.cold {
		if _, err := r.drive(ctx, workers, r.duration/5); err != nil {
			return nil, err
		}
	}
	for _, w := range workers { // drop the warm-up, and reserve space, so that recording hardly allocates
		w.failed, w.firstErr = 0, nil
		w.pairs = slices.Grow(w.pairs[:0], max(1<<17/r.goroutines, 16))
	}
	runtime.GC()
	var before, after runtime.MemStats
	loadBefore, err := r.masters.load(ctx, r.wire)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&before)
	cpuBefore := cpuTime()
	start := time.Now()
	elapsed, err := r.drive(ctx, workers, r.duration)
	cpuAfter := cpuTime()
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	s := &sample{start: start, elapsed: elapsed}
	for _, w := range workers {
		s.pairs, s.failed = append(s.pairs, w.pairs...), s.failed+w.failed
		if s.firstErr == nil {
			s.firstErr = w.firstErr
		}
	}
	if len(s.pairs) == 0 && s.failed > 0 {
		return nil, s.firstErr
	}
	per := float64(max(len(s.pairs), 1))
	s.allocs, s.clientCPU = float64(after.Mallocs-before.Mallocs)/per, micros(cpuAfter-cpuBefore)/per
	load, err := r.masters.load(ctx, r.wire)
	s.serverCPU = 1e6 * (load.cpu - loadBefore.cpu) / per
	s.commands = float64(load.commands-loadBefore.commands) / per / float64(max(len(r.masters.urls), 1))
	return s, err
}

// cpuTime returns the user and system time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for invalid arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A worker is one goroutine of a run.
type worker struct {
	caller   caller
	label    string   // prefix of new names
	names    []string // if not empty, the names to lock in turn
	next     int
	pairs    []pair // successful pairs
	failed   int
	firstErr error
}

func newWorker(c caller, label string, reuse bool) *worker {
	w := &worker{caller: c, label: label}
	if reuse {
		for i := range namesPerWorker {
			w.names = append(w.names, label+strconv.Itoa(i))
		}
	}
	return w
}

func (w *worker) name() string {
	i := w.next
	w.next++
	if len(w.names) > 0 {
		return w.names[i%len(w.names)]
	}
	var text [64]byte
	return string(strconv.AppendInt(append(text[:0], w.label...), int64(i), 10)) // one allocation
}

// drive runs the workers for d and returns the time until all of them have ended.
func (r run) drive(ctx context.Context, workers []*worker, d time.Duration) (time.Duration, error) {
	var wg sync.WaitGroup
	var stop atomic.Bool
	start := time.Now()
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	for _, w := range workers {
		wg.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				w.pair(ctx, start)
			}
		})
	}
	wg.Wait()
	return time.Since(start), context.Cause(ctx)
}

// pair locks and unlocks the next name, and records the durations or the failure.
func (w *worker) pair(ctx context.Context, runBegan time.Time) {
	name := w.name()
	start := time.Now()
	lock, err := w.caller.tryLock(ctx, name)
	got := time.Now()
	if err == nil {
		err = lock.Unlock(ctx)
	}
	if err == nil {
		w.pairs = append(w.pairs, pair{start.Sub(runBegan), got.Sub(start), time.Since(got)})
		return
	}
	w.failed++
	if w.firstErr == nil {
		w.firstErr = err
	}
}
