package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Benchmarks with many masters, many held locks, and many waiters. They measure only this library:
//
//	go test ./bench -run '^$' -bench Scale -benchtime 1x

// scaleLocker returns a Locker over the servers at urls, or over n new servers if urls is nil. It also returns the
// URLs.
func scaleLocker(b *testing.B, n int, urls []string, options ...redlock.Option) (*redlock.Locker, []string) {
	b.Helper()
	if urls == nil {
		for _, s := range redistest.Test(b, n, redisproc.Config{}) {
			urls = append(urls, s.URL())
		}
	}
	p, err := pool.Open(urls, pool.WithTimeout(openBound)) // on a busy machine, masters must not seem down
	if err != nil {
		b.Fatal(err)
	}
	l, err := redlock.New(p, append(options, redlock.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(l.Close(context.Background()), p.Close()); err != nil {
			b.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(b.Context(), openBound)
	defer cancel()
	if err := l.Admin().Admit(ctx); err != nil {
		b.Fatal(err)
	}
	return l, urls
}

// 64 goroutines lock and unlock their own names. With nine masters, a pair of Lock and Unlock may cost the client at
// most twice as much as with five.
func BenchmarkScaleMasters(b *testing.B) {
	for _, n := range []int{1, 3, 5, 7, 9} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			l, _ := scaleLocker(b, n, nil)
			before, pairs := cpuTime(), 0
			for b.Loop() {
				eachOf(b, 64, 64*256, func(i int) error {
					k, err := l.Lock(b.Context(), strconv.Itoa(i%64))
					if err != nil {
						return err
					}
					return k.Unlock(b.Context())
				})
				pairs += 64 * 256
			}
			b.ReportMetric(micros(cpuTime()-before)/float64(pairs), "cpu-us/pair")
		})
	}
}

// Very many locks are held and extended, with a TTL of 10 s. With a hundred thousand locks, 99 of 100 extensions
// must be confirmed at most 100 ms after they are due, and the process may use at most half a processor.
func BenchmarkScaleHeld(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				holdMany(b, n)
			}
		})
	}
}

func holdMany(b *testing.B, n int) {
	e := &extensions{started: make([]atomic.Int64, n), late: make([]time.Duration, 0, 4*n)}
	before := memoryNow()
	l, _ := scaleLocker(b, started, nil, redlock.WithTTL(lockTTL), redlock.WithTrace(e.trace()))
	began := time.Now()
	locks := takeMany(b, l, n)
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "taken/s")
	b.ReportMetric((memoryNow()-before)/float64(n), "B/lock")
	b.ReportMetric(loadOver(lockTTL*2/5+time.Second), "cores") // longer than TTL/3: each lock is extended
	e.mu.Lock()
	late := sorted(e.late)
	e.mu.Unlock()
	if len(late) < n {
		b.Errorf("only %d extensions of %d locks were confirmed", len(late), n)
	}
	b.ReportMetric(millis(percentile(late, 50)), "lag-p50-ms")
	b.ReportMetric(millis(percentile(late, 99)), "lag-p99-ms")
	b.ReportMetric(float64(e.lost.Load()), "lost")
	runtime.KeepAlive(locks)
}

// 10 000 goroutines wait for 1000 held names. While no lock is released, the process may use at most 100 MiB for the
// waiting, and 0.02 of a processor.
func BenchmarkScaleWaiting(b *testing.B) {
	const waiting, names = 10_000, 1000
	for b.Loop() {
		holder, urls := scaleLocker(b, started, nil, redlock.WithTTL(private.DefaultMaxTTL)) // seldom extended
		locks := takeMany(b, holder, names)
		l, _ := scaleLocker(b, started, urls)
		before := memoryNow()
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		for i := range waiting {
			all.Go(func() {
				if _, err := l.Lock(ctx, heldName+strconv.Itoa(i%names)); !errors.Is(err, context.Canceled) {
					b.Errorf("Lock of a held name returned %v, want context.Canceled", err)
				}
			})
		}
		time.Sleep(3 * time.Second)
		b.ReportMetric((memoryNow()-before)/(1<<20), "MiB")
		b.ReportMetric(loadOver(3*time.Second), "cores")
		began := time.Now()
		cancel()
		all.Wait()
		b.ReportMetric(millis(time.Since(began)), "leave-ms")
		runtime.KeepAlive(locks)
	}
}

// extensions records the locks that are acquired and extended, and how late each extension is confirmed. An
// extension is due a third of the TTL after the start of the previous round.
type extensions struct {
	started []atomic.Int64 // index: number in the name; value: start of the last round in ns
	lost    atomic.Int64

	mu   sync.Mutex
	late []time.Duration // guarded by mu
}

// trace returns a trace that records events in e.
func (e *extensions) trace() *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(h redlockinfo.Event) {
		switch h.Kind {
		case "acquired":
			e.confirmed(h)
		case "lost":
			e.lost.Add(1)
		case "extended":
			if h.Err != nil {
				return // not recorded: the retry is recorded as a late extension
			}
			if last := e.confirmed(h); last > 0 {
				late := max(0, time.Duration(time.Now().UnixNano()-last)-lockTTL/3)
				e.mu.Lock()
				e.late = append(e.late, late)
				e.mu.Unlock()
			}
		}
	}}
}

// confirmed derives the start of a round from the remaining validity and records it. It returns the start of the
// previous round.
func (e *extensions) confirmed(h redlockinfo.Event) (last int64) {
	i, err := strconv.Atoi(strings.TrimPrefix(h.Name, heldName))
	if err != nil || i >= len(e.started) {
		return 0
	}
	valid := lockTTL - lockTTL/100 - 2*time.Millisecond // less the drift
	return e.started[i].Swap(time.Now().UnixNano() - int64(valid-h.Left))
}

const heldName = "held-"

// takeMany acquires n locks with different names.
func takeMany(b *testing.B, l *redlock.Locker, n int) []*redlock.Lock {
	b.Helper()
	locks := make([]*redlock.Lock, n)
	eachOf(b, 128, n, func(i int) (err error) {
		locks[i], err = l.Lock(b.Context(), heldName+strconv.Itoa(i))
		return err
	})
	return locks
}

// eachOf calls f(0) to f(n-1) from the given number of goroutines.
func eachOf(b *testing.B, goroutines, n int, f func(i int) error) {
	b.Helper()
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n && errs[g] == nil; i += goroutines {
				errs[g] = f(i)
			}
		})
	}
	all.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		b.Fatal(fmt.Errorf("goroutine %d: %w", i, errs[i]))
	}
}

// memoryNow returns the memory in use by the process, heap and stacks, in bytes.
func memoryNow() float64 {
	runtime.GC()
	runtime.GC() // frees the memory that finalizers have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// loadOver sleeps for d and returns the average number of processors that this process has used in this time.
func loadOver(d time.Duration) float64 {
	start := time.Now()
	before := cpuTime()
	time.Sleep(d)
	return float64(cpuTime()-before) / float64(time.Since(start))
}
