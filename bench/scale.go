package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	mNameBytes = metric{"bytes/name", "bytes", less} // and master

	mWaitHeap     = metric{"heap and stacks", "MiB", less}
	mWaitResident = metric{"resident", "MiB", less}
	mWaitCPU      = metric{"cpu idle", "cores", less}
	mLeave        = metric{"all gone after", "ms", less}
)

// The numbers of masters, names and waiters.
var (
	setSizes   = []int{1, 3, 5, 7, 9}
	sharedBy   = []int{1, 8, 64}
	scaleUsers = 64
)

const (
	waitingGoroutines = 10_000
	waitingNames      = 1_000
)

func setCase(n int) string {
	return fmt.Sprintf("%d masters, %s", n, goroutinesCase(scaleUsers))
}
func heldCase(n int) string { return fmt.Sprintf("%d locks held, TTL %v", n, lockTTL) }
func namesCase(n int) string {
	return fmt.Sprintf("%d names for %s, no hold", n, goroutinesCase(scaleUsers))
}

// onceCase is what names cost of which each is locked once.
var onceCase = "new names, " + goroutinesCase(scaleUsers)

func waitingCase(n, names int) string {
	return fmt.Sprintf("%d goroutines wait for %d names", n, names)
}

// measureScale is about what grows: masters, held locks, those who share names, those who wait.
func (b *bench) measureScale(ctx context.Context) error {
	if err := b.scaleMasters(ctx); err != nil {
		return err
	}
	for _, names := range sharedBy {
		for round := range b.cfg.rounds {
			b.progress.say("round %d of %d, %s", round+1, b.cfg.rounds, namesCase(names))
			if err := b.shareNames(ctx, names); err != nil {
				return err
			}
		}
	}
	if b.masters.memory != nil {
		return nil
	}
	b.progress.say("%s", onceCase)
	if err := b.nameOnce(ctx); err != nil {
		return err
	}
	for _, n := range b.cfg.held {
		b.progress.say("%s", heldCase(n))
		if err := b.holdMany(ctx, n); ctx.Err() != nil {
			return err
		} else if err != nil { // a machine that is too slow for so many is told, and has measured the rest
			b.report.note("%s: not measured: %s", heldCase(n), firstLine(err))
		}
	}
	goroutines, names := waitingGoroutines, waitingNames
	if b.cfg.short {
		goroutines, names = goroutines/10, names/10
	}
	b.progress.say("%s", waitingCase(goroutines, names))
	return b.waitMany(ctx, goroutines, names)
}

// scaleMasters runs pairs over 1 to 9 masters of its own, in turns.
func (b *bench) scaleMasters(ctx context.Context) (err error) {
	if b.masters.kind != kindProcess {
		b.report.note("sets of 1 to 9 masters are not measured: they need server processes that the benchmark starts")
		return nil
	}
	all, err := startProcesses(ctx, slices.Max(setSizes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	e, err := entrantNamed(nameLibrary)
	if err != nil {
		return err
	}
	for round := range b.cfg.rounds {
		for k := range setSizes {
			n := setSizes[(k+round)%len(setSizes)]
			b.progress.say("round %d of %d, %s", round+1, b.cfg.rounds, setCase(n))
			m := all.first(n)
			c, err := e.open(ctx, setting{URLs: m.urls, Prefix: fmt.Sprintf("%s-set%d-%d.", b.prefix, n, round)}, nil)
			if err != nil {
				return err
			}
			s, err := run{contender: c, wire: e.wire, goroutines: scaleUsers, duration: b.cfg.duration, masters: m, label: "set-"}.measure(ctx)
			if err := errors.Join(err, closeAll(ctx, c)); err != nil {
				return err
			}
			add := func(m metric, v float64) { b.add(scenarioScale, setCase(n), e.name, m, v) }
			add(mRate, s.rate())
			add(mP50, micros(percentile(s.both, 50)))
			add(mClientCPU, s.clientCPU)
			add(mServerCPU, s.serverCPU)
		}
	}
	return nil
}

// shareNames has goroutines of one process lock and unlock names that several of them share.
func (b *bench) shareNames(ctx context.Context, names int) error {
	e, err := entrantNamed(nameLibrary)
	if err != nil {
		return err
	}
	c, err := b.open(ctx, e)
	if err != nil {
		return err
	}
	s, err := run{
		contender: c, wire: e.wire, goroutines: scaleUsers, duration: b.cfg.duration, masters: b.masters, label: "shared-", shared: names,
	}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	b.took(e.name, s.pairs())
	add := func(m metric, v float64) {
		if v >= 0 {
			b.add(scenarioScale, namesCase(names), e.name, m, v)
		}
	}
	add(mRate, s.rate())
	add(mP50, micros(percentile(s.both, 50)))
	add(mP99, micros(percentile(s.both, 99)))
	add(mClientCPU, s.clientCPU)
	add(mPairCmds, s.commands)
	return nil
}

// nameOnce has goroutines lock each name once, and looks at what that leaves on the masters. What they keep of it ends by
// itself, so it is removed at once.
func (b *bench) nameOnce(ctx context.Context) error {
	e, err := entrantNamed(nameLibrary)
	if err != nil {
		return err
	}
	prefix := b.prefix + "-once."
	c, err := e.open(ctx, setting{URLs: b.masters.urls, Prefix: prefix}, nil)
	if err != nil {
		return err
	}
	s, err := run{
		contender: c, goroutines: scaleUsers, duration: b.cfg.duration, masters: b.masters, label: "once-", once: true, cold: true,
	}.measure(ctx)
	if err := errors.Join(err, closeAll(ctx, c)); err != nil {
		return err
	}
	left, err := b.masters.leftBehind(ctx, prefix, e.suffix)
	if err != nil {
		return err
	}
	masters := len(b.masters.urls)
	b.addRemains(scenarioScale, onceCase, e.name, left, masters, s.pairs())
	if left.bytes >= 0 {
		b.add(scenarioScale, onceCase, e.name, mNameBytes, float64(left.bytes)/float64(masters*max(s.pairs(), 1)))
	}
	return b.masters.sweep(ctx, prefix)
}

// holdMany holds n locks in a process of their own. It is done once: a round takes as long as the TTL.
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
		return setting{URLs: b.masters.urls, Prefix: b.prefixOf(nameLibrary)}
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
	nine := r.figures.find(scenarioScale, setCase(9), nameLibrary, mClientCPU.name)
	five := r.figures.find(scenarioScale, setCase(5), nameLibrary, mClientCPU.name)
	return []target{
		atMost("client cpu a pair, 9 masters / 5", 2, ratio(nine, five)),
		atMost("a name is remembered for, s", 61, r.of(scenarioScale, onceCase, mKept)),
		atMost("100 000 locks held: extension lag p99, ms", 500, r.of(scenarioScale, held, mLate99)),
		atMost("100 000 locks held: bytes a lock", 1024, r.of(scenarioScale, held, mBytes)),
		atMost("100 000 locks held: client cpu, cores", 0.2, r.of(scenarioScale, held, mHoldCPU)),
		atMost("10 000 waiting on 1 000 names: MiB", 100, r.of(scenarioScale, waiting, mWaitHeap)),
		atMost("10 000 waiting on 1 000 names: client cpu, cores", 0.02, r.of(scenarioScale, waiting, mWaitCPU)),
	}
}
