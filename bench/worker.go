package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// workerEnv, set to 1, makes the program a worker: a process that the benchmark has started to be another client. It
// reads one setup and then jobs from standard input, answers each on standard output, and ends with its input.
const workerEnv = "REDLOCK_BENCH_WORKER"

// A setup is the first line that a worker reads.
type setup struct {
	Contender string  `json:"contender"`
	Process   int     `json:"process"`
	Setting   setting `json:"setting"`
}

// The operations of a job.
const (
	opContend = "contend" // goroutines lock and unlock one name until Stop
	opOnce    = "once"    // one lock of the name at Start
	opAlone   = "alone"   // Count locks of names that nobody else wants, one after the other
	opHold    = "hold"    // Count locks held at once, watched, and released
	opKeep    = "keep"    // Count locks held until the worker ends
	opWait    = "wait"    // Goroutines goroutines wait for Count names that are held, for Pause and Hold
)

// A job is one thing for a worker to do.
type job struct {
	Op         string        `json:"op"`
	Name       string        `json:"name"`
	Goroutines int           `json:"goroutines"`
	First      int           `json:"first"` // the number of the first goroutine
	Hold       time.Duration `json:"hold"`
	Pause      time.Duration `json:"pause"` // between two holds of one goroutine
	Count      int           `json:"count"`
	Start      int64         `json:"start"` // wall clock, ns
	Stop       int64         `json:"stop"`
	Tolerant   bool          `json:"tolerant"` // errors of the contender are not the end
}

// An answer is what a worker says to its setup, and to each job.
type answer struct {
	Turns []turn          `json:"turns,omitempty"`
	Locks []time.Duration `json:"locks,omitempty"` // how long each Lock of opAlone took

	Values map[string]float64 `json:"values,omitempty"` // by the names of metrics
	Err    string             `json:"err,omitempty"`
}

// workerGrace is how long those who wait when the time is over still have to get the lock.
const workerGrace = 5 * time.Second

// workerMain is the program as a worker. It returns the exit code.
func workerMain(in io.Reader, out io.Writer) int {
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	var s setup
	if err := dec.Decode(&s); err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		return exitFailed
	}
	ctx := context.Background()
	c, err := openNamed(ctx, s.Contender, s.Setting)
	if enc.Encode(answer{Err: errText(err)}) != nil || err != nil {
		return exitFailed
	}
	w := &workerProcess{contender: c, process: s.Process, setting: s.Setting}
	for {
		var j job
		if dec.Decode(&j) != nil {
			break
		}
		a, err := w.do(ctx, j)
		a.Err = errText(err)
		if enc.Encode(a) != nil {
			break
		}
	}
	if err := closeAll(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		return exitFailed
	}
	return exitOK
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func openNamed(ctx context.Context, name string, s setting) (contender, error) {
	e, err := entrantNamed(name)
	if err != nil {
		return nil, err
	}
	return e.open(ctx, s)
}

type workerProcess struct {
	contender contender
	process   int
	setting   setting
}

func (w *workerProcess) do(ctx context.Context, j job) (answer, error) {
	switch j.Op {
	case opContend:
		return w.contend(ctx, j)
	case opOnce:
		return w.once(ctx, j)
	case opAlone:
		return w.alone(ctx, j)
	case opHold:
		return w.hold(ctx, j)
	case opKeep:
		return w.keep(ctx, j)
	case opWait:
		return w.wait(ctx, j)
	}
	return answer{}, fmt.Errorf("bench: a worker knows no %q", j.Op)
}

// contend runs the goroutines of the job.
func (w *workerProcess) contend(ctx context.Context, j job) (answer, error) {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, j.Stop).Add(workerGrace))
	defer cancel()
	turns, errs := make([][]turn, j.Goroutines), make([]error, j.Goroutines)
	var wg sync.WaitGroup
	sleepUntil(j.Start)
	for i := range j.Goroutines {
		wg.Go(func() {
			turns[i], errs[i] = contendAlone(ctx, w.contender.caller(), j, turn{Worker: j.First + i, Process: w.process})
		})
	}
	wg.Wait()
	var a answer
	for _, list := range turns {
		a.Turns = append(a.Turns, list...)
	}
	return a, errors.Join(errs...)
}

// contendAlone is one goroutine of contend. A wait that has not ended by the time that is left to it is recorded as
// one that ended then. A hold takes its time exactly: a timer of Go's comes up to a millisecond late where the
// process reads something meanwhile, a reply that came too late to matter, say, and all others would wait for that.
func contendAlone(ctx context.Context, c caller, j job, as turn) (list []turn, err error) {
	list = make([]turn, 0, 1024)
	holding, err := newAlarm()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, holding.close()) }()
	for now := time.Now().UnixNano(); now < j.Stop; now = time.Now().UnixNano() {
		t := as
		t.Asked = now
		lock, err := c.lock(ctx, j.Name)
		t.Got = time.Now().UnixNano()
		if err != nil {
			if ctx.Err() == nil && j.Tolerant {
				continue
			}
			if ctx.Err() == nil {
				return list, err
			}
			t.Releasing, t.GaveUp = t.Got, true
			return append(list, t), nil
		}
		if k, ok := lock.(interface{ Token() int64 }); ok {
			t.Token = k.Token()
		}
		if err := holding.sleep(j.Hold); err != nil {
			return list, err
		}
		t.Releasing = time.Now().UnixNano()
		if err := lock.Unlock(ctx); err != nil && !j.Tolerant {
			return list, err
		}
		list = append(list, t)
		rest(j.Pause)
	}
	return list, nil
}

// once takes the lock at the start of the job and releases it at once.
func (w *workerProcess) once(ctx context.Context, j job) (answer, error) {
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, j.Start).Add(workerGrace))
	defer cancel()
	c := w.contender.caller()
	sleepUntil(j.Start)
	t := turn{Worker: w.process, Process: w.process, Rounds: -w.rounds(), Asked: time.Now().UnixNano()}
	lock, err := c.lock(ctx, j.Name)
	t.Got = time.Now().UnixNano()
	t.Rounds += w.rounds()
	if err != nil {
		if ctx.Err() != nil || j.Tolerant {
			return answer{}, nil // nobody gets it for ever: the caller sees that there is no turn
		}
		return answer{}, err
	}
	t.Releasing = time.Now().UnixNano()
	if err := lock.Unlock(ctx); err != nil && !j.Tolerant {
		return answer{}, err
	}
	return answer{Turns: []turn{t}}, nil
}

// rounds counts those of all locks so far, where the contender is the library and counts them.
func (w *workerProcess) rounds() int64 {
	if l, ok := w.contender.(*library); ok {
		return l.rounds.Load()
	}
	return 0
}

// alone times locks that nobody else wants.
func (w *workerProcess) alone(ctx context.Context, j job) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, workerGrace)
	defer cancel()
	c := w.contender.caller()
	var a answer
	for i := range j.Count {
		name := fmt.Sprintf("%s-alone-%d-%d", j.Name, w.process, i%namesPerWorker)
		start := time.Now()
		lock, err := c.lock(ctx, name)
		if err != nil {
			return a, err
		}
		a.Locks = append(a.Locks, time.Since(start))
		if err := lock.Unlock(ctx); err != nil && !j.Tolerant {
			return a, err
		}
	}
	return a, nil
}

// rest is what the work under a lock, and between two, is in this program.
func rest(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

func sleepUntil(wall int64) { rest(time.Until(time.Unix(0, wall))) }
