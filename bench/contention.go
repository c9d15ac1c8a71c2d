package main

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	manyEach    = shape{processes: 4, goroutines: 16, hold: time.Millisecond, pause: 5 * time.Millisecond}
	// Two in turns: whoever comes back finds the name held, so that each release hands it to the other.
	twoInTurns  = shape{processes: 2, goroutines: 1, hold: 3 * time.Millisecond, pause: time.Millisecond}
	twentyPlain = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond}
	twentyFair  = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true}
	twentyFirst = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true, priority: true}
)

var shapes = []shape{oneProcess, eightPaused, eightGreedy, manyEach, twoInTurns, twentyPlain, twentyFair, twentyFirst}

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
	mJain       = metric{"jain", "", more}
	mPreferred  = metric{"let ahead", "", more}
	mViolations = metric{"violations", "1", less}
)

// aloneLocks is how many uncontended locks each run is compared with.
const aloneLocks = 100

// measureContention runs every shape with the ideal and each contender in turns.
func (b *bench) measureContention(ctx context.Context) error {
	for round := range b.cfg.rounds {
		for _, s := range b.shapes() {
			list := b.waiters(s)
			b.progress.say("round %d of %d, %s, %s", round+1, b.cfg.rounds, s, nameIdeal)
			best, err := b.contendLocally(ctx, s)
			if err != nil {
				return err
			}
			b.add(scenarioContention, s.String(), nameIdeal, mHolds, best.rate)
			b.add(scenarioContention, s.String(), nameIdeal, mOfIdeal, 1)
			b.addWaits(s, nameIdeal, best)
			for k := range list {
				e := list[(k+round)%len(list)]
				b.progress.say("round %d of %d, %s, %s", round+1, b.cfg.rounds, s, e.name)
				r, err := b.contend(ctx, e, s, round)
				if b.peerFailed(ctx, e, s.String(), err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s, e.name, err)
				}
				b.addContention(s, e.name, r, best.rate)
			}
		}
	}
	return nil
}

// peerFailed reports whether a contender that is not of this project failed, and notes it: the others are still measured.
func (b *bench) peerFailed(ctx context.Context, e entrant, kase string, err error) bool {
	if err == nil || !e.peer || ctx.Err() != nil {
		return false
	}
	b.report.note("%s, %s: a round failed: %s", kase, e.name, firstLine(err))
	return true
}

// shapes are those that this run measures.
func (b *bench) shapes() (list []shape) {
	for _, s := range shapes {
		if b.cfg.short && (s.processes > 8 || s == manyEach) {
			continue
		}
		list = append(list, s)
	}
	return list
}

// waiters are the contenders that can take part in a shape.
func (b *bench) waiters(s shape) (list []entrant) {
	for _, e := range b.entrants {
		if !e.pairsOnly && (!s.fair || e.name == nameLibrary) {
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
	prefix := b.prefixOf(e.name)
	name := fmt.Sprintf("%s-%d", slug(s.String()), round)
	workers, err := startCrew(ctx, s.processes, e.name, b.cfg.duration+workerGrace, func(i int) setting {
		set := setting{URLs: b.urls(e), Prefix: prefix, Fair: s.fair}
		if s.priority && i == s.processes-1 {
			set.Priority = 1
		}
		return set
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workers.close()) }()
	alone, err := workers.do(ctx, func(i int) job {
		j := job{Op: opAlone, Name: name, Tolerant: e.peer}
		if i == 0 {
			j.Count = aloneLocks
		}
		return j
	})
	if err != nil {
		return nil, err
	}
	var start, stop int64
	want := func(name string, d time.Duration) ([]answer, error) {
		start = time.Now().Add(startLead).UnixNano()
		stop = start + int64(d)
		return workers.do(ctx, func(i int) job {
			return job{Op: opContend, Name: name, Goroutines: s.goroutines, First: i * s.goroutines, Hold: s.hold, Pause: s.pause, Start: start, Stop: stop, Tolerant: e.peer}
		})
	}
	warm, err := want(name+"-warm", b.cfg.duration/5) // programs that have waited before
	if err != nil {
		return nil, err
	}
	for _, a := range warm {
		b.took(e.name, len(a.Turns))
	}
	before, err := b.mastersOf(e).commands(ctx, e.wire)
	if err != nil {
		return nil, err
	}
	answers, err := want(name, b.cfg.duration)
	if err != nil {
		return nil, err
	}
	var turns []turn
	for _, a := range answers {
		turns = append(turns, a.Turns...)
	}
	c = newContended(turns, start, stop)
	c.alone = alone[0].Locks
	b.took(e.name, len(c.history)+len(c.alone))
	after, err := b.mastersOf(e).commands(ctx, e.wire)
	if before >= 0 && len(c.history) > 0 {
		c.commands = float64(after-before) / float64(len(b.urls(e))*len(c.history))
	}
	return c, err
}

func (b *bench) addWaits(s shape, who string, c *contended) {
	kase := s.String()
	waits := c.waits(c.start, c.stop)
	waits = append(waits, c.gaveUp.waits(c.start, c.stop)...) // longer than any other
	p50, p99 := percentile(waits, 50), percentile(waits, 99)
	b.add(scenarioContention, kase, who, mWait50, millis(p50))
	b.add(scenarioContention, kase, who, mWait99, millis(p99))
	b.add(scenarioContention, kase, who, mWaitMax, millis(percentile(waits, 100)))
	b.add(scenarioContention, kase, who, mWaitRatio, float64(p99)/float64(p50))
	worst := 0
	for _, n := range c.overtaken() {
		worst = max(worst, n)
	}
	b.add(scenarioContention, kase, who, mOvertaken, float64(worst))
	b.add(scenarioContention, kase, who, mJain, c.jain(s.processes*s.goroutines))
}

func (b *bench) addContention(s shape, who string, c *contended, ideal float64) {
	add := func(m metric, v float64) { b.add(scenarioContention, s.String(), who, m, v) }
	add(mHolds, c.rate)
	add(mOfIdeal, c.rate/ideal)
	b.addWaits(s, who, c)
	add(mCommands, c.commands)
	alone := time.Duration(0)
	if len(c.alone) > 0 {
		alone = median(c.alone)
	}
	add(mAlone, micros(alone))
	if handed := c.handOffs(s.processes > 1); len(handed) > 0 {
		p50 := percentile(handed, 50)
		add(mHandOff, micros(p50))
		add(mHandRatio, float64(p50)/float64(alone))
	}
	if s.priority {
		if share, known := c.preferred(s.processes - 1); known {
			add(mPreferred, share)
		}
	}
	add(mViolations, float64(c.overlaps()))
	if n := c.overlaps(); n > 0 {
		b.report.note("%s, %s: %d holds began before the one before had ended, or had a token that was not larger", s, who, n)
	}
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
