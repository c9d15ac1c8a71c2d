package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// A shape describes how many processes and goroutines compete for one name.
type shape struct {
	Processes, Goroutines int
	Hold, Pause           time.Duration
}

func (s shape) String() string {
	return fmt.Sprintf("%d x %d on one name, %v hold, %v pause", s.Processes, s.Goroutines, s.Hold, s.Pause)
}

var (
	eight = shape{8, 1, time.Millisecond, 5 * time.Millisecond}
	// The processes alternate: when one of them locks again, the other holds the name, so each release is a hand-off.
	twoInTurns = shape{2, 1, 3 * time.Millisecond, time.Millisecond}
	shapes     = []shape{{1, 64, time.Millisecond, 5 * time.Millisecond}, eight, twoInTurns}
)

// Metrics of a shape.
var (
	mHolds      = metric{"holds", "1/s"}
	mHeld       = metric{"held", "of the time"}
	mWaitRatio  = metric{"wait p99/p50", ""}
	mHandOff    = metric{"hand-off p50", "us"}
	mHoldCmds   = metric{"commands/hold", ""} // per master
	mGaveUp     = metric{"failed locks", ""}
	mViolations = metric{"violations", ""}
)

// contentionTask measures the contenders that can wait.
func (b *bench) contentionTask(s shape) task {
	list := slices.DeleteFunc(slices.Clone(b.entrants), func(e entrant) bool { return !e.waits })
	d := max(b.duration, 20*(s.Hold+s.Pause))
	return task{scenarioLoad, s.String(), list, func(ctx context.Context, e entrant, _ int) error {
		set := b.setting()
		var before *state
		var start time.Time
		turns, err := compete(ctx, job{e.name, 0, s, set}, d, func() (_ time.Time, err error) {
			before, err = b.masters.state(ctx)
			start = time.Now().Add(startLead)
			return start, err
		})
		if err != nil {
			return err
		}
		after, err := b.masters.state(ctx)
		if err != nil {
			return err
		}
		commands, _ := after.since(before, e.wire)
		b.addTurns(s, e.name, turns, start.Add(d/5), start.Add(d), commands/float64(len(b.masters.urls)))
		_, err = b.masters.sweep(ctx, set.Prefix)
		return err
	}}
}

// A turn is one request of one goroutine for the lock. Times are in ns of the machine's wall clock, which all processes
// share.
type turn struct {
	Process   int
	Asked     int64 // time before Lock
	Got       int64 // time after Lock
	Releasing int64 // time before Unlock
	Token     int64 // 0 if the contender has no tokens
	Failed    bool  // Lock failed, or gave up after the end of the measurement, at Got
}

// addTurns adds the figures of turns that were requested from start to stop. commands is the number of commands that
// each master has got for all turns.
func (b *bench) addTurns(s shape, who string, turns []turn, start, stop time.Time, commands float64) {
	add := func(m metric, v float64) { b.report.add(place{scenarioLoad, s.String(), who}, m, v) }
	var holds []turn
	var waits []float64
	var inTime, failed, held float64
	for _, t := range turns {
		if t.Asked >= start.UnixNano() && t.Asked < stop.UnixNano() {
			if waits = append(waits, float64(t.Got-t.Asked)/1e3); t.Failed {
				failed++
			}
		}
		if t.Failed {
			continue
		}
		if holds = append(holds, t); t.Got >= start.UnixNano() && t.Got < stop.UnixNano() {
			inTime++
			held += float64(t.Releasing - t.Got)
		}
	}
	slices.Sort(waits)
	add(mHolds, inTime/stop.Sub(start).Seconds())
	add(mHeld, held/float64(stop.Sub(start)))
	for _, q := range percentiles {
		add(q.wait(), quantile(waits, q.q))
	}
	add(mWaitRatio, quantile(waits, 0.99)/quantile(waits, 0.5))
	add(mHandOff, quantile(handOffs(holds, s.Processes > 1), 0.5))
	add(mHoldCmds, commands/float64(len(holds)))
	add(mGaveUp, failed)
	list := make([]*history.Hold, len(holds)) // in the order of handOffs
	for i, t := range holds {
		list[i] = &history.Hold{From: t.Got, Until: t.Releasing, Token: t.Token}
	}
	overlaps, tokens := history.Violations(list)
	violations := append(overlaps, tokens...)
	if add(mViolations, float64(len(violations))); len(violations) > 0 {
		b.report.note("%v: %s: %s", s, who, violations[0])
	}
}

// handOffs sorts holds by acquisition, and returns the sorted times in us from the start of a release until the next
// holder has the lock, if that holder was already waiting. If across is set, only hand-offs between processes count.
func handOffs(holds []turn, across bool) (list []float64) {
	slices.SortFunc(holds, func(a, b turn) int { return cmp.Compare(a.Got, b.Got) })
	for i := 1; i < len(holds); i++ {
		last, next := holds[i-1], holds[i]
		if next.Asked < last.Releasing && next.Got >= last.Releasing && (!across || next.Process != last.Process) {
			list = append(list, float64(next.Got-last.Releasing)/1e3)
		}
	}
	slices.Sort(list)
	return list
}

// workerEnv, if set, makes the program a worker: a process that the benchmark starts as another client. A worker reads
// a job from standard input and opens its contender. It writes "ready", reads the two ends of the measurement, and
// writes its turns. It closes the contender when its input ends.
const workerEnv = "REDLOCK_BENCH_WORKER"

// A job configures a worker.
type job struct {
	Contender string
	Process   int
	Shape     shape
	Setting   setting
}

func workerMain(stdin io.Reader, stdout io.Writer) error {
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	ctx := context.Background()
	c, err := entrants[slices.Index(names(entrants), j.Contender)].open(ctx, j.Setting)
	if err != nil {
		return err
	}
	var ends [2]time.Time
	if err = out.Encode("ready"); err == nil && in.Decode(&ends) == nil {
		err = out.Encode(contend(ctx, c, j, ends[0], ends[1]))
	}
	_ = in.Decode(&ends) // fails when the input ends
	return errors.Join(err, shut(ctx, c))
}

// contend makes the goroutines of one process lock one name for a while and pause, from start to stop.
func contend(ctx context.Context, c contender, j job, start, stop time.Time) []turn {
	ctx, cancel := context.WithDeadline(ctx, stop.Add(grace))
	defer cancel()
	turns := make([][]turn, j.Shape.Goroutines)
	time.Sleep(time.Until(start))
	var all sync.WaitGroup
	for i := range turns {
		all.Go(func() {
			for now := time.Now(); now.Before(stop); now = time.Now() {
				t := turn{Process: j.Process, Asked: now.UnixNano()}
				lock, err := c.lock(ctx, "contended")
				t.Got = time.Now().UnixNano()
				if t.Failed = err != nil; !t.Failed {
					if l, ok := lock.(interface{ Token() int64 }); ok {
						t.Token = l.Token()
					}
					time.Sleep(j.Shape.Hold)
					t.Releasing = time.Now().UnixNano()
					_ = lock.Unlock(ctx) // a failure makes the others wait, which is measured
				}
				turns[i] = append(turns[i], t)
				time.Sleep(j.Shape.Pause)
			}
		})
	}
	all.Wait()
	return slices.Concat(turns...)
}

// startLead is the time for sending the start to all workers.
const startLead = 50 * time.Millisecond

// compete runs the job in as many processes as its shape has, for the time d from the start that ready returns, which
// compete calls when all processes are ready.
func compete(ctx context.Context, j job, d time.Duration, ready func() (time.Time, error)) ([]turn, error) {
	turns, errs := make([][]turn, j.Shape.Processes), make([]error, j.Shape.Processes+1)
	var start time.Time
	var opened, done sync.WaitGroup
	opened.Add(len(turns))
	begin := make(chan struct{})
	for i := range turns {
		one := j
		one.Process = i
		done.Go(func() {
			turns[i], errs[i] = one.run(ctx, func() [2]time.Time {
				opened.Done()
				<-begin
				return [2]time.Time{start, start.Add(d)}
			})
		})
	}
	opened.Wait()
	start, errs[len(turns)] = ready()
	close(begin)
	done.Wait()
	return slices.Concat(turns...), errors.Join(errs...)
}

// run runs the job in a worker, which the end of ctx kills. It calls begin when the worker is ready or has failed.
func (j job) run(ctx context.Context, begin func() [2]time.Time) (turns []turn, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.Stderr, cmd.WaitDelay = append(os.Environ(), workerEnv+"=1"), os.Stderr, time.Second
	in, ierr := cmd.StdinPipe()
	out, oerr := cmd.StdoutPipe()
	if err := errors.Join(ierr, oerr, cmd.Start()); err != nil {
		begin()
		return nil, err
	}
	tell, told := json.NewEncoder(in), json.NewDecoder(out)
	var ready string
	err = errors.Join(tell.Encode(j), told.Decode(&ready))
	if ends := begin(); err == nil {
		err = errors.Join(tell.Encode(ends), told.Decode(&turns))
	}
	return turns, errors.Join(err, in.Close(), cmd.Wait())
}
