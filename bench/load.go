package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/redlock"
)

const scenarioLoad = "load"

// Counts of concurrent callers. The table has one row for each.
const (
	usualLoad    = 64
	heavyLoad    = 10_000
	heaviestLoad = 50_000
)

var loads = []int{usualLoad, 512, 4096, heavyLoad, heaviestLoad}

// Metrics other than rate and times.
var (
	mNotVoting = metric{"masters not voting", "1", less} // at the end, according to the Locker
	mHeldLost  = metric{"held locks lost", "1", less}    // 1 if a lock that was held during the whole run was lost
)

// planLoad measures the library with increasing counts of callers, each with its own names. With -short it omits the
// largest count. It measures 512 and 4096 callers only in the first round.
func planLoad(b *bench) [][]task {
	var group []task
	for _, n := range loads {
		if b.cfg.short && n > heavyLoad {
			continue
		}
		group = append(group, task{
			name: goroutinesCase(n), once: n != usualLoad && n < heavyLoad,
			run: func(ctx context.Context, _ int) error { return underLoad(ctx, b, n) },
		})
	}
	return [][]task{group}
}

// underLoad measures the library once with n callers.
func underLoad(ctx context.Context, b *bench, n int) (err error) {
	c, err := openLibrary(ctx, b.setting(nameLibrary))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shut(ctx, c)) }()
	locker := c.(*library).locker
	kept, err := locker.Lock(ctx, "held-throughout")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	duration := max(b.cfg.duration, time.Duration(n)*100*time.Microsecond) // long enough for every caller to run
	r := run{contender: c, wire: libraryWire, goroutines: n, duration: duration, masters: b.masters, label: "load-"}
	s, err := r.measure(ctx)
	if err != nil {
		return err
	}
	down, lost := 0, 0
	for _, m := range locker.Admin().Masters() {
		if m.State != "voting" {
			down++
		}
	}
	if err := kept.Unlock(ctx); errors.Is(err, redlock.ErrLost) {
		lost++
	}
	add := func(m metric, v float64) {
		b.add(scenarioLoad, "callers at once, each with its own names", goroutinesCase(n), m, v)
	}
	add(mRate, float64(len(s.pairs))/s.elapsed.Seconds())
	list := s.both()
	add(mP50, micros(percentile(list, 50)))
	add(mP99, micros(percentile(list, 99)))
	add(mFailures, 10_000*float64(s.failed)/float64(max(len(s.pairs), 1)))
	add(mNotVoting, float64(down))
	add(mHeldLost, float64(lost))
	return nil
}

// loadTargets returns the targets under load: 10 000 and 50 000 callers reach at least 0.9 of the throughput of 64
// callers, all masters vote, and no held lock is lost.
func loadTargets(l figures) (list []target) {
	find := func(n int, m metric) *figure {
		return l.find(scenarioLoad, "callers at once, each with its own names", goroutinesCase(n), m)
	}
	for _, n := range []int{heavyLoad, heaviestLoad} {
		if find(n, mRate) == nil {
			continue
		}
		name := goroutinesCase(n)
		rate := ratio(find(n, mRate), find(usualLoad, mRate))
		list = append(list, atLeast(name+": pairs/s / with 64 goroutines", 0.9, rate, whyTurns))
		for _, m := range []metric{mNotVoting, mHeldLost} {
			list = append(list, atMost(name+": "+m.name, 0, &find(n, m).spread, ""))
		}
	}
	return list
}
