package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"
	"time"

	"github.com/redlock-go/redlock/bench/internal/alarm"
)

// workerEnv, if set to 1, makes the program a worker: a process that the benchmark starts as another client. The
// benchmark calls the methods of Worker over standard input and output (net/rpc). The worker ends when its input
// ends.
const workerEnv = "REDLOCK_BENCH_WORKER"

// A Worker is a client in a separate process.
type Worker struct {
	contender contender
	setup     Setup
}

// A Setup configures the locks of a worker.
type Setup struct {
	Contender string
	Process   int
	Setting   setting
}

// A Job describes one operation of a worker; see the methods of Worker.
type Job struct {
	Name        string
	Goroutines  int
	Count       int
	Hold, Pause time.Duration
	Start, Stop int64 // wall clock, in ns
	Tolerant    bool  // errors of the contender do not end the job
}

// An Answer is the result of a Job.
type Answer struct {
	Turns []turn
	Locks []time.Duration // duration of each Lock in Alone
}

// workerGrace is the time for which goroutines may continue to wait for the lock after the end of a job.
const workerGrace = 5 * time.Second

// pipe combines the standard input and output of a worker, in the worker or in its parent.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// workerMain runs the program as a worker and returns the exit code.
func workerMain() int {
	w, server := new(Worker), rpc.NewServer()
	err := server.Register(w)
	if err == nil {
		server.ServeConn(pipe{os.Stdin, os.Stdout})
	}
	if w.contender != nil {
		err = shut(context.Background(), w.contender)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		return exitFailed
	}
	return exitOK
}

// Open opens the contender. It must be the first call.
func (w *Worker) Open(s Setup, _ *Answer) error {
	e, err := entrantNamed(s.Contender)
	if err != nil {
		return err
	}
	w.setup = s
	w.contender, err = e.open(context.Background(), s.Setting)
	return err
}

// Contend makes j.Goroutines goroutines lock and unlock one name from j.Start to j.Stop.
func (w *Worker) Contend(j Job, a *Answer) error {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, j.Stop).Add(workerGrace))
	defer cancel()
	turns, errs := make([][]turn, j.Goroutines), make([]error, j.Goroutines)
	var wg sync.WaitGroup
	sleepUntil(j.Start)
	for i := range j.Goroutines {
		wg.Go(func() { turns[i], errs[i] = contendAlone(ctx, w.contender.caller(), j, w.setup.Process) })
	}
	wg.Wait()
	for _, list := range turns {
		a.Turns = append(a.Turns, list...)
	}
	return errors.Join(errs...)
}

// contendAlone runs one goroutine of Contend. If ctx ends during a wait, the turn is recorded with GaveUp. The
// duration of a hold must be precise, because all other clients wait for its end. So contendAlone uses an alarm: Go's
// timers are up to a millisecond late if the process reads something meanwhile, such as a late reply.
func contendAlone(ctx context.Context, c caller, j Job, process int) ([]turn, error) {
	list := make([]turn, 0, 1024)
	holding, err := alarm.New()
	if err != nil {
		return nil, err
	}
	defer holding.Close()
	for now := time.Now().UnixNano(); now < j.Stop; now = time.Now().UnixNano() {
		t := turn{Process: process, Asked: now}
		lock, err := c.lock(ctx, j.Name)
		t.Got = time.Now().UnixNano()
		switch {
		case err != nil && ctx.Err() != nil:
			t.Releasing, t.GaveUp = t.Got, true
			return append(list, t), nil
		case err != nil && j.Tolerant:
			continue
		case err != nil:
			return list, err
		}
		if k, ok := lock.(interface{ Token() int64 }); ok {
			t.Token = k.Token()
		}
		if err := holding.Sleep(j.Hold); err != nil {
			return list, err
		}
		t.Releasing = time.Now().UnixNano()
		if err := lock.Unlock(ctx); err != nil && !j.Tolerant {
			return list, err
		}
		list = append(list, t)
		time.Sleep(j.Pause)
	}
	return list, nil
}

// Once acquires the lock at j.Start and releases it immediately. If the lock is not acquired in time, the answer
// contains no turn.
func (w *Worker) Once(j Job, a *Answer) error {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, j.Start).Add(workerGrace))
	defer cancel()
	c := w.contender.caller()
	sleepUntil(j.Start)
	ctx, attempts := withAttempts(ctx)
	t := turn{Process: w.setup.Process, Asked: time.Now().UnixNano()}
	lock, err := c.lock(ctx, j.Name)
	t.Got = time.Now().UnixNano()
	if l, ok := w.contender.(*library); ok && l.counts {
		select {
		case t.Rounds = <-attempts:
		case <-ctx.Done():
		}
	}
	if err == nil {
		t.Releasing = time.Now().UnixNano()
		a.Turns = []turn{t}
		err = lock.Unlock(ctx)
	}
	if ctx.Err() != nil || j.Tolerant {
		return nil
	}
	return err
}

// Alone measures j.Count locks that no other client uses, one after the other.
func (w *Worker) Alone(j Job, a *Answer) error {
	ctx, cancel := context.WithTimeout(context.Background(), workerGrace)
	defer cancel()
	c := w.contender.caller()
	for i := range j.Count {
		start := time.Now()
		lock, err := c.lock(ctx, fmt.Sprintf("%s-alone-%d", j.Name, i%namesPerWorker))
		if err != nil {
			return err
		}
		a.Locks = append(a.Locks, time.Since(start))
		if err := lock.Unlock(ctx); err != nil && !j.Tolerant {
			return err
		}
	}
	return nil
}

func sleepUntil(wall int64) { time.Sleep(time.Until(time.Unix(0, wall))) }
