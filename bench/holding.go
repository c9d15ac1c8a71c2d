package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/redlock"
)

// holdWindow is how long a number of held locks is watched: more than a third of the TTL, so that each is extended.
const holdWindow = lockTTL*2/5 + time.Second

// An extensions is told of the locks that are taken and extended, and how late each extension is confirmed: it is
// due a third of the TTL after the start of the round before.
type extensions struct {
	started []atomic.Int64 // by the number in the name: start of the last round, ns
	lost    atomic.Int64

	mu   sync.Mutex
	late []time.Duration // guarded by mu
}

// trace tells the locker to tell e.
func (e *extensions) trace() *redlock.Trace {
	return &redlock.Trace{
		Acquired: func(h redlock.LockInfo) { e.confirmed(h) },
		Extended: func(h redlock.LockInfo) {
			if h.Err != nil {
				return // it is tried again, and is the later for it
			}
			if last := e.confirmed(h); last > 0 {
				late := max(0, time.Duration(time.Now().UnixNano()-last)-lockTTL/3)
				e.mu.Lock()
				e.late = append(e.late, late)
				e.mu.Unlock()
			}
		},
		Lost: func(redlock.LockInfo) { e.lost.Add(1) },
	}
}

// confirmed takes the start of the round from the validity that is left, and returns that of the one before.
func (e *extensions) confirmed(h redlock.LockInfo) (last int64) {
	i, err := strconv.Atoi(strings.TrimPrefix(h.Name, heldName))
	if err != nil || i >= len(e.started) {
		return 0
	}
	valid := lockTTL - clock.DefaultDrift.Of(lockTTL)
	return e.started[i].Swap(time.Now().UnixNano() - int64(valid-h.Left))
}

const heldName = "held-"

// Hold takes Count locks, watches them for holdWindow while they are extended, and releases them.
func (w *Worker) Hold(j Job, a *Answer) (err error) {
	ctx := context.Background()
	e := &extensions{started: make([]atomic.Int64, j.Count), late: make([]time.Duration, 0, 4*j.Count)}
	before, _ := memoryNow()
	l, err := connectLibrary(ctx, w.setup.Setting, redlock.WithTrace(e.trace()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(ctx, l)) }()
	began := time.Now()
	locks, err := takeMany(ctx, l.caller(), j.Count)
	if err != nil {
		return err
	}
	took := time.Since(began)
	heap, _ := memoryNow()
	load := loadOver(holdWindow)
	e.mu.Lock()
	late := sorted(e.late)
	e.mu.Unlock()
	a.Values = map[string]float64{
		mTaken.name:     float64(j.Count) / took.Seconds(),
		mBytes.name:     (heap - before) / float64(j.Count),
		mHoldCPU.name:   load,
		mLate50.name:    millis(percentile(late, 50)),
		mLate99.name:    millis(percentile(late, 99)),
		mExtended.name:  float64(len(late)) / time.Since(began).Seconds(),
		mLostHolds.name: float64(e.lost.Load()),
	}
	runtime.KeepAlive(locks)
	return nil
}

// Keep takes Count locks that are held until the process ends.
func (w *Worker) Keep(j Job, _ *Answer) error {
	_, err := takeMany(context.Background(), w.contender.caller(), j.Count)
	return err
}

// Wait lets Goroutines goroutines wait for Count names that are held, and tells what they cost while nothing happens:
// after Pause, for the time of Hold.
func (w *Worker) Wait(j Job, a *Answer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := w.contender.caller()
	heap, stacks := memoryNow()
	before := heap + stacks
	var wg sync.WaitGroup
	var early atomic.Int64
	for i := range j.Goroutines {
		wg.Go(func() {
			lock, err := c.lock(ctx, heldName+strconv.Itoa(i%j.Count))
			if err == nil {
				_ = lock.Unlock(ctx)
			}
			if ctx.Err() == nil {
				early.Add(1)
			}
		})
	}
	time.Sleep(j.Pause)
	heap, stacks = memoryNow()
	a.Values = map[string]float64{mWaitHeap.name: (heap + stacks - before) / (1 << 20), mWaitCPU.name: loadOver(j.Hold)}
	left := time.Now()
	cancel()
	wg.Wait()
	a.Values[mLeave.name] = millis(time.Since(left))
	if n := early.Load(); n > 0 {
		return fmt.Errorf("bench: %d of %d goroutines did not wait for a name that is held", n, j.Goroutines)
	}
	return nil
}

// takers is how many goroutines take locks that are then held.
const takers = 128

// takeMany takes so many locks, each of a name of its own.
func takeMany(ctx context.Context, c caller, count int) ([]held, error) {
	locks := make([]held, count)
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for t := range takers {
		wg.Go(func() {
			for i := t; i < count && errs[t] == nil; i += takers {
				locks[i], errs[t] = c.lock(ctx, heldName+strconv.Itoa(i)) // tries again where a busy machine is too slow once
			}
		})
	}
	wg.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return locks, errs[i] // one of them says enough
	}
	return locks, nil
}

// memoryNow is what the process has in use, in bytes.
func memoryNow() (heap, stacks float64) {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}

// loadOver rests, and tells how many processors this process has used meanwhile.
func loadOver(d time.Duration) float64 {
	start := time.Now()
	before := cpuTime()
	time.Sleep(d)
	return float64(cpuTime()-before) / float64(time.Since(start))
}
