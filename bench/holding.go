package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	drift   time.Duration

	mu   sync.Mutex
	late []time.Duration // guarded by mu
}

func newExtensions(locks int) *extensions {
	return &extensions{
		started: make([]atomic.Int64, locks), late: make([]time.Duration, 0, 4*locks), drift: clock.DefaultDrift.Of(lockTTL),
	}
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
	number, ok := strings.CutPrefix(h.Name, heldName)
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i >= len(e.started) {
		return 0
	}
	return e.started[i].Swap(time.Now().UnixNano() - int64(lockTTL-e.drift-h.Left))
}

const heldName = "held-"

// hold takes a number of locks, watches them for holdWindow while they are extended, and releases them.
func (w *workerProcess) hold(ctx context.Context, j job) (a answer, err error) {
	e := newExtensions(j.Count)
	before := memoryNow()
	l, err := connectLibrary(ctx, w.setting, redlock.WithTrace(e.trace()))
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, closeLibrary(l)) }()
	began := time.Now()
	locks, err := takeMany(ctx, l, heldName, j.Count)
	if err != nil {
		return a, err
	}
	took := time.Since(began)
	held := memoryNow()
	cpu, _ := cpuTime()
	watched := time.Now()
	rest(holdWindow)
	used, _ := cpuTime()
	e.mu.Lock()
	late := slices.Clone(e.late)
	e.mu.Unlock()
	a.Values = map[string]float64{
		mTaken.name:     float64(j.Count) / took.Seconds(),
		mBytes.name:     float64(held.heap-before.heap) / float64(j.Count),
		mResident.name:  float64(held.resident-before.resident) / float64(j.Count),
		mHoldCPU.name:   float64(used-cpu) / float64(time.Since(watched)),
		mLate50.name:    millis(percentile(sorted(late), 50)),
		mLate99.name:    millis(percentile(sorted(late), 99)),
		mExtended.name:  float64(len(late)) / time.Since(began).Seconds(),
		mLostHolds.name: float64(e.lost.Load()),
	}
	runtime.KeepAlive(locks)
	return a, nil
}

// keep takes locks that are held until the process ends.
func (w *workerProcess) keep(ctx context.Context, j job) (answer, error) {
	l, ok := w.contender.(*library)
	if !ok {
		return answer{}, errors.New("bench: only the library keeps locks")
	}
	_, err := takeMany(ctx, l, heldName, j.Count)
	return answer{}, err
}

// wait lets Goroutines goroutines wait for Count names that are held, and tells what they cost while nothing happens.
func (w *workerProcess) wait(ctx context.Context, j job) (answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := w.contender.caller()
	before := memoryNow()
	var wg sync.WaitGroup
	var early atomic.Int64
	for i := range j.Goroutines {
		wg.Go(func() {
			if lock, err := c.lock(ctx, heldName+strconv.Itoa(i%j.Count)); err == nil {
				early.Add(1)
				_ = lock.Unlock(ctx)
			} else if ctx.Err() == nil {
				early.Add(1)
			}
		})
	}
	rest(j.Pause)
	now := memoryNow()
	cpu, _ := cpuTime()
	start := time.Now()
	rest(j.Hold)
	used, _ := cpuTime()
	load := float64(used-cpu) / float64(time.Since(start))
	left := time.Now()
	cancel()
	wg.Wait()
	a := answer{Values: map[string]float64{
		mWaitHeap.name:     float64(now.heap+now.stacks-before.heap-before.stacks) / (1 << 20),
		mWaitResident.name: float64(now.resident-before.resident) / (1 << 20),
		mWaitCPU.name:      load,
		mLeave.name:        millis(time.Since(left)),
	}}
	if n := early.Load(); n > 0 {
		return a, fmt.Errorf("bench: %d of %d goroutines did not wait for a name that is held", n, j.Goroutines)
	}
	return a, nil
}

// takeMany takes the locks name0, name1 and so on, from many goroutines.
func takeMany(ctx context.Context, l *library, name string, count int) ([]held, error) {
	locks := make([]held, count)
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for t := range takers {
		wg.Go(func() {
			for i := t; i < count && errs[t] == nil; i += takers {
				locks[i], errs[t] = l.lock(ctx, name+strconv.Itoa(i)) // tries again where a busy machine is too slow once
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return locks, err // one of them says enough
		}
	}
	return locks, nil
}

// takers is how many goroutines take locks that are then held.
const takers = 128

func closeLibrary(l *library) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*closeBound)
	defer cancel()
	return l.close(ctx)
}

// A memoryUse is what the process has in use, in bytes.
type memoryUse struct{ heap, stacks, resident int64 }

func memoryNow() memoryUse {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := memoryUse{heap: int64(m.HeapAlloc), stacks: int64(m.StackInuse)}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident int64
		if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
			u.resident = resident * int64(os.Getpagesize())
		}
	}
	return u
}
