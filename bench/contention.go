package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A shape describes how many processes and goroutines compete for one name.
type shape struct {
	processes, goroutines int
	hold, pause           time.Duration
	fair                  bool // use the fair mode of contenders that have such a mode
	// priority gives the last process a higher priority than the others (fair mode only).
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

// Shapes of the scenario contention.
var (
	oneProcess  = shape{processes: 1, goroutines: 64, hold: time.Millisecond, pause: 5 * time.Millisecond}
	eightPaused = shape{processes: 8, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond}
	eightGreedy = shape{processes: 8, goroutines: 1, hold: time.Millisecond}
	// The processes alternate: when one of them locks again, the other holds the name, so each release is a hand-off.
	twoInTurns  = shape{processes: 2, goroutines: 1, hold: 3 * time.Millisecond, pause: time.Millisecond}
	twentyPlain = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond}
	twentyFair  = shape{processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true}
	twentyFirst = shape{
		processes: 20, goroutines: 1, hold: time.Millisecond, pause: 5 * time.Millisecond, fair: true, priority: true,
	}
)

// Metrics of a shape.
var (
	mHolds      = metric{"holds/s", "1/s", more}
	mOfIdeal    = metric{"of ideal", "", more}
	mWait50     = metric{"wait p50", "ms", less}
	mWait99     = metric{"wait p99", "ms", less}
	mWaitMax    = metric{"wait max", "ms", less}
	mWaitRatio  = metric{"p99/p50", "", less}
	mCommands   = metric{"commands/hold", "1", less} // per hold and master
	mHandOff    = metric{"hand-off p50", "us", less}
	mAlone      = metric{"alone p50", "us", less}
	mHandRatio  = metric{"hand-off/alone", "", less}
	mOvertaken  = metric{"overtaken max", "1", less}
	mPreferred  = metric{"let ahead", "", more} // fraction of waiters that the process with priority overtakes
	mViolations = metric{"violations", "1", less}
)

// aloneLocks is the number of uncontended locks that each run measures for comparison.
const aloneLocks = 100

// planContention runs each shape with the local mutex and with each contender in turn.
func planContention(b *bench) (plan [][]task) {
	shapes := []shape{oneProcess, eightPaused, eightGreedy, twoInTurns, twentyPlain, twentyFair, twentyFirst}
	switch {
	case b.cfg.brief: // only hand-offs and waits
		shapes = []shape{eightPaused, twoInTurns}
	case b.cfg.short:
		shapes = shapes[:4]
	}
	for _, s := range shapes {
		var ideal float64 // rate of the local mutex in this round
		plan = append(plan, []task{{name: s.String() + ", " + nameIdeal, run: func(context.Context, int) error {
			c, err := contendLocally(s, b.cfg.duration)
			if err == nil {
				ideal = c.rate()
				addContention(b, s, nameIdeal, c, ideal)
			}
			return err
		}}})
		plan = append(plan, turns(s.String(), waiters(b, s.fair), func(ctx context.Context, e entrant, round int) error {
			c, err := contend(ctx, b, e, s, round)
			if err == nil {
				addContention(b, s, e.name, c, ideal)
			}
			return err
		}))
	}
	return plan
}

// waiters returns the contenders that can wait for a name. If fair is set, it returns only those that serve waiters
// in order.
func waiters(b *bench, fair bool) []entrant {
	return slices.DeleteFunc(slices.Clone(b.cfg.entrants), func(e entrant) bool {
		return e.pairsOnly || fair && e.name != nameLibrary
	})
}

// A contended is the result of one run of a shape.
type contended struct {
	turnList
	gaveUp   turnList
	job      Job
	commands float64         // per hold and master; NaN if unknown
	alone    []time.Duration // durations of uncontended locks
}

func newContended(j Job, answers ...Answer) *contended {
	c := &contended{job: j, commands: math.NaN()}
	var turns []turn
	for _, a := range answers {
		turns = append(turns, a.Turns...)
	}
	c.turnList, c.gaveUp = newTurnList(turns)
	return c
}

// rate returns the number of holds per second.
func (c *contended) rate() float64 {
	return float64(c.during(c.job.Start, c.job.Stop)) / time.Duration(c.job.Stop-c.job.Start).Seconds()
}

// startLead is the time from creating a job to its start, which is common to all workers. Sending the job to all
// workers must take less time.
const startLead = 50 * time.Millisecond

// jobFor returns the job of each process of the shape, for a run of duration d.
func (s shape) jobFor(d time.Duration) Job {
	start := time.Now().Add(startLead).UnixNano()
	return Job{Goroutines: s.goroutines, Hold: s.hold, Pause: s.pause, Start: start, Stop: start + int64(d)}
}

// contendLocally runs the shape with a mutex in this process.
func contendLocally(s shape, d time.Duration) (*contended, error) {
	j := s.jobFor(d)
	j.Goroutines *= s.processes
	var a Answer
	err := (&Worker{contender: &ideal{}}).Contend(j, &a)
	return newContended(j, a), err
}

// contend runs the shape in new worker processes on the masters. Before that it measures uncontended locks and warms
// the workers up.
func contend(ctx context.Context, b *bench, e entrant, s shape, round int) (c *contended, err error) {
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
	name := fmt.Sprintf("%s-%d", slug(s.String()), round)
	alone, err := lockAlone(ctx, b, workers, e, name)
	if err != nil {
		return nil, err
	}
	// Warm up, so that each client has waited at least once before the measurement.
	if _, err := contendFor(ctx, b, workers, e, s, name+"-warm", b.cfg.duration/5); err != nil {
		return nil, err
	}
	before, err := b.masters.load(ctx, e.wire)
	if err != nil {
		return nil, err
	}
	if c, err = contendFor(ctx, b, workers, e, s, name, b.cfg.duration); err != nil {
		return nil, err
	}
	c.alone = alone
	after, err := b.masters.load(ctx, e.wire)
	c.commands = float64(after.commands-before.commands) / float64(len(b.masters.urls)*len(c.turnList))
	return c, err
}

// lockAlone makes the first worker lock names that no other client uses, and returns the duration of each Lock.
func lockAlone(ctx context.Context, b *bench, workers *crew, e entrant, name string) ([]time.Duration, error) {
	j := Job{Name: name, Count: aloneLocks, Tolerant: e.peer}
	answers, err := workers.call(ctx, workers.members[:1], "Alone", func(int) any { return j })
	b.took(e.name, len(answers[0].Locks))
	return answers[0].Locks, err
}

// contendFor makes all workers compete for one name for the duration d.
func contendFor(
	ctx context.Context, b *bench, workers *crew, e entrant, s shape, name string, d time.Duration,
) (*contended, error) {
	j := s.jobFor(d)
	j.Name, j.Tolerant = name, e.peer
	answers, err := workers.do(ctx, "Contend", func(int) Job { return j })
	c := newContended(j, answers...)
	b.took(e.name, len(c.turnList))
	return c, err
}

func addContention(b *bench, s shape, who string, c *contended, ideal float64) {
	add := func(m metric, v float64) { b.add(scenarioContention, s.String(), who, m, v) }
	add(mHolds, c.rate())
	add(mOfIdeal, c.rate()/ideal)
	waits := c.waits(c.job.Start, c.job.Stop)
	waits = append(waits, c.gaveUp.waits(c.job.Start, c.job.Stop)...) // longer than all other waits
	p50, p99 := percentile(waits, 50), percentile(waits, 99)
	add(mWait50, millis(p50))
	add(mWait99, millis(p99))
	add(mWaitMax, millis(percentile(waits, 100)))
	add(mWaitRatio, float64(p99)/float64(p50))
	b.report.setCurve(waitsCurve(s.String(), who, waits))
	add(mOvertaken, float64(slices.Max(append(c.overtaken(), 0))))
	add(mCommands, c.commands)
	handed := math.NaN()
	if list := c.handOffs(s.processes > 1 && who != nameIdeal); len(list) > 0 {
		handed = micros(percentile(list, 50))
	}
	add(mHandOff, handed)
	if len(c.alone) > 0 {
		add(mAlone, micros(median(c.alone)))
		add(mHandRatio, handed/micros(median(c.alone)))
	}
	if s.priority {
		add(mPreferred, c.preferred(s.processes-1))
	}
	n := c.overlaps()
	add(mViolations, float64(n))
	if n > 0 {
		b.report.note("%s, %s: %d holds began before the previous hold had ended, or had too small a token", s, who, n)
	}
}
