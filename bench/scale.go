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
	mLate50    = metric{"extension lag p50", "ms", less} // from when it is due until a majority has confirmed it
	mLate99    = metric{"extension lag p99", "ms", less}
	mBytes     = metric{"heap/lock", "bytes", less}
	mHoldCPU   = metric{"cpu", "cores", less}
	mTaken     = metric{"taken/s", "1/s", more}
	mExtended  = metric{"extended/s", "1/s", more}
	mLostHolds = metric{"lost", "1", less}

	mWaitHeap = metric{"heap and stacks", "MiB", less}
	mWaitCPU  = metric{"cpu idle", "cores", less}
	mLeave    = metric{"all gone after", "ms", less}
)

// The numbers of masters, and of locks that are held at once.
var (
	setSizes  = []int{1, 3, 5, 7, 9}
	heldLocks = []int{1000, 100_000}
)

const (
	scaleUsers        = 64
	waitingGoroutines = 10_000
	waitingNames      = 1_000
)

func setCase(n int) string  { return fmt.Sprintf("%d masters, %s", n, goroutinesCase(scaleUsers)) }
func heldCase(n int) string { return fmt.Sprintf("%d locks held, TTL %v", n, lockTTL) }
func waitingCase(n, names int) string {
	return fmt.Sprintf("%d goroutines wait for %d names", n, names)
}

// planScale is about what grows: masters, held locks, those who wait. Very many locks are held once: a round takes as
// long as their time to live. A machine that is too slow for so many is told.
func planScale(b *bench) [][]task {
	var sets, held []task
	for _, n := range setSizes {
		sets = append(sets, task{name: setCase(n), run: func(ctx context.Context, _ int) error {
			return scaleMasters(ctx, b, n)
		}})
	}
	goroutines, names, locks, watch := waitingGoroutines, waitingNames, heldLocks, 3*time.Second
	if b.cfg.short {
		goroutines, names, locks, watch = goroutines/10, names/10, locks[:1], watch/6
	}
	once := func(kase string, tolerant bool, processes int, jobs func(ctx context.Context, c *crew) (Answer, error)) {
		held = append(held, task{name: kase, once: true, tolerant: tolerant, run: func(ctx context.Context, _ int) error {
			return inProcesses(ctx, b, kase, processes, jobs)
		}})
	}
	for _, n := range locks {
		once(heldCase(n), true, 1, func(ctx context.Context, c *crew) (Answer, error) {
			b.took(nameLibrary, n)
			return c.one(ctx, 0, "Hold", Job{Count: n})
		})
	}
	once(waitingCase(goroutines, names), false, 2, func(ctx context.Context, c *crew) (Answer, error) {
		b.took(nameLibrary, names)
		if a, err := c.one(ctx, 0, "Keep", Job{Count: names}); err != nil {
			return a, err
		}
		return c.one(ctx, 1, "Wait", Job{Goroutines: goroutines, Count: names, Pause: watch, Hold: watch})
	})
	return [][]task{sets, held}
}

// scaleMasters runs pairs over so many masters of their own.
func scaleMasters(ctx context.Context, b *bench, n int) (err error) {
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
		contender: c, wire: libraryWire, goroutines: scaleUsers, duration: b.cfg.duration, masters: m, label: "set-",
	}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	b.add(scenarioScale, setCase(n), nameLibrary, mP50, micros(percentile(s.both(), 50)))
	addLoad(b, scenarioScale, setCase(n), nameLibrary, s)
	return nil
}

// inProcesses starts workers, gives them their jobs, and books the values of the last.
func inProcesses(
	ctx context.Context, b *bench, kase string, n int, jobs func(context.Context, *crew) (Answer, error),
) (err error) {
	const longest = 3 * time.Minute // a hundred thousand locks are taken, watched and released
	workers, err := startCrew(ctx, n, nameLibrary, longest, func(int) setting { return b.setting(nameLibrary) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	a, err := jobs(ctx, workers)
	for _, m := range []metric{
		mLate50, mLate99, mBytes, mHoldCPU, mTaken, mExtended, mLostHolds, mWaitHeap, mWaitCPU, mLeave,
	} {
		if v, ok := a.Values[m.name]; ok && err == nil {
			b.add(scenarioScale, kase, nameLibrary, m, v)
		}
	}
	return err
}
