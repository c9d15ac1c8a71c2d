package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A crew is a group of worker processes, each with its own client.
type crew struct {
	members []*member
	jobs    time.Duration // maximum duration of a job
}

// A member is one worker process.
type member struct {
	cmd    *exec.Cmd
	client *rpc.Client
	stderr bytes.Buffer
}

// startCrew starts n workers with the named contender, worker i with the setting s(i), and returns when all of them
// are connected. After an error no worker continues to run. jobs is the maximum duration of a job.
func startCrew(ctx context.Context, n int, contender string, jobs time.Duration, s func(i int) setting) (*crew, error) {
	c := &crew{jobs: jobs}
	for range n {
		m, err := startMember()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("bench: cannot start a worker: %w", err), c.close())
		}
		c.members = append(c.members, m)
	}
	open := func(i int) any { return Setup{Contender: contender, Process: i, Setting: s(i)} }
	if _, err := c.call(ctx, c.members, "Open", open); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func startMember() (*member, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &member{cmd: exec.Command(program)}
	m.cmd.Env = append(os.Environ(), workerEnv+"=1")
	m.cmd.Stderr = &m.stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	m.client = rpc.NewClient(pipe{out, in})
	if err := m.cmd.Start(); err != nil {
		return nil, errors.Join(err, m.client.Close())
	}
	return m, nil
}

// do makes worker i run op with the job j(i), for each worker of c, and returns all answers.
func (c *crew) do(ctx context.Context, op string, j func(i int) Job) ([]Answer, error) {
	return c.call(ctx, c.members, op, func(i int) any { return j(i) })
}

// crewBound is the maximum duration of a call, in addition to the maximum duration of a job.
const crewBound = 20 * time.Second

var errSilent = errors.New("bench: a worker did not answer in time, so all workers were killed")

// call makes the members run op and returns their answers. If ctx ends first, or if op takes too long, call kills all
// workers.
func (c *crew) call(ctx context.Context, members []*member, op string, arg func(i int) any) ([]Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crewBound+c.jobs, errSilent)
	defer cancel()
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	answers, errs := make([]Answer, len(members)), make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			if err := m.client.Call("Worker."+op, arg(i), &answers[i]); err != nil {
				errs[i] = fmt.Errorf("bench: worker %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return answers, err
	}
	return answers, errors.Join(errs...)
}

func (c *crew) kill() {
	for _, m := range c.members {
		_ = m.cmd.Process.Kill()
	}
}

// close ends the workers by closing their input. It kills workers that continue for more than closeBound and a second.
func (c *crew) close() error {
	timer := time.AfterFunc(closeBound+time.Second, c.kill) // makes Wait return an error
	defer timer.Stop()
	for _, m := range c.members {
		_ = m.client.Close()
	}
	var errs []error
	for i, m := range c.members {
		if err := m.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("bench: worker %d: %w: %s", i, err, bytes.TrimSpace(m.stderr.Bytes())))
		}
	}
	return errors.Join(errs...)
}
