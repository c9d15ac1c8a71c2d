package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const scenarioScale = "scale"

// What is measured of scale.
var (
	mLate99    = metric{"extension lag p99", "ms", less} // from when it is due until a majority has confirmed it
	mLate50    = metric{"extension lag p50", "ms", less}
	mBytes     = metric{"heap/lock", "bytes", less}
	mResident  = metric{"resident/lock", "bytes", less}
	mHoldCPU   = metric{"cpu", "cores", less}
	mTaken     = metric{"taken/s", "1/s", more}
	mExtended  = metric{"extended/s", "1/s", more}
	mLostHolds = metric{"lost", "1", less}

	mWaitHeap     = metric{"heap and stacks", "MiB", less}
	mWaitResident = metric{"resident", "MiB", less}
	mWaitCPU      = metric{"cpu idle", "cores", less}
	mLeave        = metric{"all gone after", "ms", less}
)

// The numbers of masters, of goroutines, and of locks that are held at once.
var (
	setSizes   = []int{1, 3, 5, 7, 9}
	scaleUsers = 64
	heldLocks  = []int{1000, 100_000}
)

const (
	waitingGoroutines = 10_000
	waitingNames      = 1_000
)

func setCase(n int) string {
	return fmt.Sprintf("%d masters, %s", n, goroutinesCase(scaleUsers))
}
func heldCase(n int) string { return fmt.Sprintf("%d locks held, TTL %v", n, lockTTL) }
func waitingCase(n, names int) string {
	return fmt.Sprintf("%d goroutines wait for %d names", n, names)
}

// planScale is about what grows: masters, held locks, those who wait. Very many locks are held once: a round takes as
// long as their time to live. A machine that is too slow for so many is told.
func (b *bench) planScale() [][]task {
	var sets []task
	for _, n := range setSizes {
		sets = append(sets, task{name: setCase(n), run: func(ctx context.Context, _ int) error {
			return b.scaleMasters(ctx, n)
		}})
	}
	var held []task
	goroutines, names, locks := waitingGoroutines, waitingNames, heldLocks
	if b.cfg.short {
		goroutines, names, locks = goroutines/10, names/10, locks[:1]
	}
	for _, n := range locks {
		held = append(held, task{name: heldCase(n), once: true, tolerant: true, run: func(ctx context.Context, _ int) error {
			return b.holdMany(ctx, n)
		}})
	}
	waiting := func(ctx context.Context, _ int) error { return b.waitMany(ctx, goroutines, names) }
	held = append(held, task{name: waitingCase(goroutines, names), once: true, run: waiting})
	return [][]task{sets, held}
}

// scaleMasters runs pairs over so many masters of their own.
func (b *bench) scaleMasters(ctx context.Context, n int) (err error) {
	m, err := startMasters(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	c, err := openLibrary(ctx, setting{URLs: m.urls, Prefix: b.prefix})
	if err != nil {
		return err
	}
	s, err := run{
		contender: c, wire: theLibrary.wire, goroutines: scaleUsers, duration: b.cfg.duration, masters: m, label: "set-",
	}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	b.add(scenarioScale, setCase(n), nameLibrary, mRate, s.rate())
	b.add(scenarioScale, setCase(n), nameLibrary, mP50, micros(percentile(s.both, 50)))
	b.addLoad(scenarioScale, setCase(n), nameLibrary, s)
	return nil
}

// holdMany holds n locks in a process of their own.
func (b *bench) holdMany(ctx context.Context, n int) error {
	values, err := b.oneWorker(ctx, 1, func(i int) job { return job{Op: opHold, Count: n} })
	if err != nil {
		return err
	}
	b.took(nameLibrary, n)
	for _, m := range []metric{mLate50, mLate99, mBytes, mResident, mHoldCPU, mTaken, mExtended, mLostHolds} {
		b.add(scenarioScale, heldCase(n), nameLibrary, m, values[m.name])
	}
	return nil
}

// waitMany has one process hold names and another wait for them.
func (b *bench) waitMany(ctx context.Context, goroutines, names int) error {
	settle, watch := 3*time.Second, 3*time.Second
	if b.cfg.short {
		settle, watch = 500*time.Millisecond, 500*time.Millisecond
	}
	values, err := b.oneWorker(ctx, 2,
		func(i int) job {
			if i == 0 {
				return job{Op: opKeep, Count: names}
			}
			return job{Op: opAlone}
		},
		func(i int) job {
			if i == 0 {
				return job{Op: opAlone}
			}
			return job{Op: opWait, Goroutines: goroutines, Count: names, Pause: settle, Hold: watch}
		})
	if err != nil {
		return fmt.Errorf("%s: %w", waitingCase(goroutines, names), err)
	}
	b.took(nameLibrary, names)
	for _, m := range []metric{mWaitHeap, mWaitResident, mWaitCPU, mLeave} {
		b.add(scenarioScale, waitingCase(goroutines, names), nameLibrary, m, values[m.name])
	}
	return nil
}

// oneWorker starts n workers, gives them one job after the other, and returns what the last worker said to the last.
func (b *bench) oneWorker(ctx context.Context, n int, jobs ...func(i int) job) (values map[string]float64, err error) {
	const longest = 3 * time.Minute // a hundred thousand locks are taken, watched and released
	workers, err := startCrew(ctx, n, nameLibrary, longest, func(int) setting {
		return b.setting(nameLibrary)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	for _, j := range jobs {
		answers, err := workers.do(ctx, j)
		if err != nil {
			return nil, err
		}
		values = answers[n-1].Values
	}
	return values, nil
}

func (r *report) scaleTargets() []target {
	held, waiting := heldCase(100_000), waitingCase(waitingGoroutines, waitingNames)
	cpu := func(masters int) *figure {
		return r.figures.find(scenarioScale, setCase(masters), nameLibrary, mClientCPU.name)
	}
	return []target{
		atMost("client cpu a pair, 9 masters / 5", 2, ratio(cpu(9), cpu(5))),
		atMost("100 000 locks held: extension lag p99, ms", 500, r.of(scenarioScale, held, mLate99)),
		atMost("100 000 locks held: bytes a lock", 1024, r.of(scenarioScale, held, mBytes)),
		atMost("100 000 locks held: client cpu, cores", 0.2, r.of(scenarioScale, held, mHoldCPU)),
		atMost("10 000 waiting on 1 000 names: MiB", 100, r.of(scenarioScale, waiting, mWaitHeap)),
		atMost("10 000 waiting on 1 000 names: client cpu, cores", 0.02, r.of(scenarioScale, waiting, mWaitCPU)),
	}
}
