package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// A shape is a number of processes and goroutines that want one name.
type shape struct {
	processes, goroutines int
	hold, pause           time.Duration
	fair                  bool // those of the contender that have a fair mode use it
	// priority: the last process has a higher one than the others (fair mode).
	priority bool
}

func (s shape) String() string {
	name := fmt.Sprintf("%d x %d, %v hold, %v pause", s.processes, s.goroutines, s.hold, s.pause)
	if s.fair {
		name += ", fair"
	}
	if s.priority {
		name += ", one first"
	}
	return name
}

const scenarioContention = "contention"

// The shapes of the scenario.
var (
	oneProcess  = shape{processes: 1, goroutines: 64, hold: time.Millisecond, pause: 5 * time.Millisecond}
	eightPaused = shape{processes: 8, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond}
	eightGreedy = shape{processes: 8, goroutines: 1, hold: time.Millisecond}
	// Two in turns: whoever comes back finds the name held, so that each release hands it to the other.
	twoInTurns  = shape{processes: 2, goroutines: 1, hold: 3 * time.Millisecond, pause: time.Millisecond}
	twentyPlain = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond}
	twentyFair  = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true}
	twentyFirst = shape{
		processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true, priority: true,
	}
)

// What is measured of a shape.
var (
	mHolds      = metric{"holds/s", "1/s", more}
	mOfIdeal    = metric{"of ideal", "", more}
	mWait50     = metric{"wait p50", "ms", less}
	mWait99     = metric{"wait p99", "ms", less}
	mWaitMax    = metric{"wait max", "ms", less}
	mWaitRatio  = metric{"p99/p50", "", less}
	mCommands   = metric{"commands/hold", "1", less} // and master
	mHandOff    = metric{"hand-off p50", "us", less}
	mAlone      = metric{"alone p50", "us", less}
	mHandRatio  = metric{"hand-off/alone", "", less}
	mOvertaken  = metric{"overtaken max", "1", less}
	mPreferred  = metric{"let ahead", "", more}
	mViolations = metric{"violations", "1", less}
)

// aloneLocks is how many uncontended locks each run is compared with.
const aloneLocks = 100

// planContention runs every shape with the ideal and each contender in turns.
func (b *bench) planContention() (plan [][]task) {
	for _, s := range b.shapes() {
		var ideal float64 // of this round
		plan = append(plan, []task{{name: s.String() + ", " + nameIdeal, run: func(ctx context.Context, _ int) error {
			c, err := b.contendLocally(ctx, s)
			if err == nil {
				ideal = c.rate
				b.addContention(s, nameIdeal, c, ideal)
			}
			return err
		}}})
		plan = append(plan, turns(s.String(), b.waiters(s.fair), func(ctx context.Context, e entrant, round int) error {
			c, err := b.contend(ctx, e, s, round)
			if err == nil {
				b.addContention(s, e.name, c, ideal)
			}
			return err
		}))
	}
	return plan
}

// shapes are those that this run measures: the default run takes the hand-over alone.
func (b *bench) shapes() []shape {
	switch {
	case b.cfg.brief:
		return []shape{twoInTurns}
	case b.cfg.short:
		return []shape{oneProcess, eightPaused, eightGreedy, twoInTurns}
	}
	return []shape{oneProcess, eightPaused, eightGreedy, twoInTurns, twentyPlain, twentyFair, twentyFirst}
}

// waiters are the contenders that wait for a name, or that do so in order.
func (b *bench) waiters(fair bool) (list []entrant) {
	for _, e := range b.cfg.entrants {
		if !e.pairsOnly && (!fair || e.name == nameLibrary) {
			list = append(list, e)
		}
	}
	return list
}

// A contended is what one run of a shape gave.
type contended struct {
	history
	gaveUp      history
	start, stop int64
	rate        float64
	commands    float64 // a hold and master; NaN where it is not known
	alone       []time.Duration
}

func newContended(turns []turn, start, stop int64) *contended {
	c := &contended{start: start, stop: stop, commands: math.NaN()}
	c.history, c.gaveUp = newHistory(turns)
	c.rate = float64(c.during(start, stop)) / time.Duration(stop-start).Seconds()
	return c
}

// contendLocally is the shape on a mutex of this process.
func (b *bench) contendLocally(ctx context.Context, s shape) (*contended, error) {
	n := s.processes * s.goroutines
	start := time.Now().Add(startLead).UnixNano()
	j := job{Hold: s.hold, Pause: s.pause, Start: start, Stop: start + int64(b.cfg.duration)}
	m := &ideal{}
	turns, errs := make([][]turn, n), make([]error, n)
	var wg sync.WaitGroup
	sleepUntil(start)
	for i := range n {
		wg.Go(func() { turns[i], errs[i] = contendAlone(ctx, m, j, turn{Worker: i}) })
	}
	wg.Wait()
	var all []turn
	for _, list := range turns {
		all = append(all, list...)
	}
	return newContended(all, j.Start, j.Stop), errors.Join(append(errs, context.Cause(ctx))...)
}

// startLead is how far ahead the common start of several workers lies: more than it takes to tell them all.
const startLead = 50 * time.Millisecond

// contend is the shape over the masters, with new workers.
func (b *bench) contend(ctx context.Context, e entrant, s shape, round int) (c *contended, err error) {
	name := fmt.Sprintf("%s-%d", slug(s.String()), round)
	workers, err := startCrew(ctx, s.processes, e.name, b.cfg.duration+workerGrace, func(i int) setting {
		set := b.setting(e.name)
		set.Fair = s.fair
		if s.priority && i == s.processes-1 {
			set.Priority = 1
		}
		return set
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	alone, err := b.alone(ctx, workers, e, name)
	if err != nil {
		return nil, err
	}
	// Programs that have waited before.
	if _, err := b.contendFor(ctx, workers, e, s, name+"-warm", b.cfg.duration/5); err != nil {
		return nil, err
	}
	before, err := b.masters.commands(ctx, e.wire)
	if err != nil {
		return nil, err
	}
	c, err = b.contendFor(ctx, workers, e, s, name, b.cfg.duration)
	if err != nil {
		return nil, err
	}
	c.alone = alone
	after, err := b.masters.commands(ctx, e.wire)
	if len(c.history) > 0 {
		c.commands = float64(after-before) / float64(len(b.masters.urls)*len(c.history))
	}
	return c, err
}

// alone has the first of the workers take locks that nobody else wants.
func (b *bench) alone(ctx context.Context, workers *crew, e entrant, name string) ([]time.Duration, error) {
	answers, err := workers.do(ctx, func(i int) job {
		j := job{Op: opAlone, Name: name, Tolerant: e.peer}
		if i == 0 {
			j.Count = aloneLocks
		}
		return j
	})
	if err != nil {
		return nil, err
	}
	b.took(e.name, len(answers[0].Locks))
	return answers[0].Locks, nil
}

// contendFor has all workers want one name for a time.
func (b *bench) contendFor(
	ctx context.Context, workers *crew, e entrant, s shape, name string, d time.Duration,
) (*contended, error) {
	start := time.Now().Add(startLead).UnixNano()
	stop := start + int64(d)
	answers, err := workers.do(ctx, func(i int) job {
		return job{
			Op: opContend, Name: name, Goroutines: s.goroutines, First: i * s.goroutines, Hold: s.hold, Pause: s.pause,
			Start: start, Stop: stop, Tolerant: e.peer,
		}
	})
	if err != nil {
		return nil, err
	}
	var turns []turn
	for _, a := range answers {
		turns = append(turns, a.Turns...)
	}
	c := newContended(turns, start, stop)
	b.took(e.name, len(c.history))
	return c, nil
}

func (b *bench) addContention(s shape, who string, c *contended, ideal float64) {
	add := func(m metric, v float64) { b.add(scenarioContention, s.String(), who, m, v) }
	add(mHolds, c.rate)
	add(mOfIdeal, c.rate/ideal)
	waits := c.waits(c.start, c.stop)
	waits = append(waits, c.gaveUp.waits(c.start, c.stop)...) // longer than any other
	p50, p99 := percentile(waits, 50), percentile(waits, 99)
	add(mWait50, millis(p50))
	add(mWait99, millis(p99))
	add(mWaitMax, millis(percentile(waits, 100)))
	add(mWaitRatio, float64(p99)/float64(p50))
	add(mOvertaken, float64(slices.Max(append(c.overtaken(), 0))))
	add(mCommands, c.commands)
	handed := c.handOffs(s.processes > 1 && who != nameIdeal)
	if len(handed) > 0 {
		add(mHandOff, micros(percentile(handed, 50)))
	}
	if len(c.alone) > 0 {
		alone := median(c.alone)
		add(mAlone, micros(alone))
		if len(handed) > 0 {
			add(mHandRatio, float64(percentile(handed, 50))/float64(alone))
		}
	}
	if s.priority {
		if share, known := c.preferred(s.processes - 1); known {
			add(mPreferred, share)
		}
	}
	n := c.overlaps()
	add(mViolations, float64(n))
	if n > 0 {
		b.report.note("%s, %s: %d holds began before the one before had ended, or had a token that was not larger", s, who, n)
	}
}

// The ideal is the same work on a mutex of one process: what no lock over a network can beat.
type ideal struct{ mu sync.Mutex }

const nameIdeal = "local mutex"

func (i *ideal) tryLock(ctx context.Context, name string) (held, error) { return i.lock(ctx, name) }

func (i *ideal) lock(context.Context, string) (held, error) {
	i.mu.Lock()
	return i, nil
}

// Unlock implements held.
func (i *ideal) Unlock(context.Context) error {
	i.mu.Unlock()
	return nil
}

// commandCounts sums the calls of the named commands in the text of INFO commandstats.
func commandCounts(info string, names []string) (n int64) {
	for line := range strings.Lines(info) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
				var calls int64
				_, _ = fmt.Sscanf(rest, "%d", &calls)
				n += calls
			}
		}
	}
	return n
}
