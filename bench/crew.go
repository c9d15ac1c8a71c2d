package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A crew is a number of worker processes, each with a client of its own.
type crew struct {
	members []*member
	jobs    time.Duration // how long a job may take by itself
}

// A member is one worker process.
type member struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	enc    *json.Encoder
	dec    *json.Decoder
	stderr bytes.Buffer
}

// startCrew starts n workers that lock with the contender of that name, and returns when all are connected. After an
// error none is left. jobs is how long one of their jobs takes at most.
func startCrew(ctx context.Context, n int, contender string, jobs time.Duration, s func(i int) setting) (*crew, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: cannot start workers: %w", err)
	}
	c := &crew{jobs: jobs}
	for i := range n {
		m, err := startMember(program, setup{Contender: contender, Process: i, Setting: s(i)})
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.members = append(c.members, m)
	}
	if _, err := c.answers(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func startMember(program string, s setup) (*member, error) {
	m := &member{cmd: exec.Command(program)}
	m.cmd.Env = append(os.Environ(), workerEnv+"=1")
	m.cmd.Stderr = &m.stderr
	in, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: worker: %w", err)
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: worker: %w", err)
	}
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: worker: %w", err)
	}
	m.in, m.enc, m.dec = in, json.NewEncoder(in), json.NewDecoder(out)
	_ = m.enc.Encode(s) // a worker that has ended already is seen by its answer
	return m, nil
}

// do gives every worker its job and returns their answers.
func (c *crew) do(ctx context.Context, j func(i int) job) ([]answer, error) {
	for i, m := range c.members {
		_ = m.enc.Encode(j(i)) // as above
	}
	return c.answers(ctx)
}

// crewBound is how long a crew may take for anything but its job itself: no job of this program takes longer.
const crewBound = 20 * time.Second

var errSilent = errors.New("bench: a worker has not answered in time, and was ended")

// answers reads one answer of each. Where ctx ends first, or they take too long, the workers are killed.
func (c *crew) answers(ctx context.Context) ([]answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, crewBound+c.jobs, errSilent)
	defer cancel()
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	list, errs := make([]answer, len(c.members)), make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() { list[i], errs[i] = m.answer(i) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return list, errors.Join(errs...)
}

func (m *member) answer(i int) (a answer, err error) {
	if err := m.dec.Decode(&a); err != nil {
		return a, fmt.Errorf("bench: worker %d has ended: %w", i, err)
	}
	if a.Err != "" {
		return a, fmt.Errorf("bench: worker %d: %s", i, a.Err)
	}
	return a, nil
}

func (c *crew) kill() {
	for _, m := range c.members {
		_ = m.cmd.Process.Kill()
	}
}

// close lets the workers end, and kills those that have not after closeBound.
func (c *crew) close() error {
	timer := time.AfterFunc(closeBound+time.Second, c.kill) // the error of Wait then says so
	defer timer.Stop()
	for _, m := range c.members {
		_ = m.in.Close()
	}
	var errs []error
	for i, m := range c.members {
		if err := m.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("bench: worker %d: %w: %s", i, err, bytes.TrimSpace(m.stderr.Bytes())))
		}
	}
	return errors.Join(errs...)
}
