package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The environment variables of a worker.
const (
	roleEnv = "REDLOCK_TEST_WORKER"      // set in workers only
	argsEnv = "REDLOCK_TEST_WORKER_ARGS" // in JSON
)

// Role returns the role of this process, or "" if the process is not a worker.
func Role() string { return os.Getenv(roleEnv) }

// Main runs f in a worker, with the arguments that were passed to Start, and returns the exit code of the worker. The
// context ends at SIGTERM, and when the standard input is closed, which means that the test has ended or has called
// Finish. Main returns 1 if f fails, or if a goroutine of f is still running after the end of the standard input.
func Main[A any](f func(ctx context.Context, args A) error) int {
	signal.Ignore(os.Interrupt) // an interrupt from a terminal is for the test, which ends the workers
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var args A
	if err := json.Unmarshal([]byte(os.Getenv(argsEnv)), &args); err != nil {
		return fail(err)
	}
	var input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // returns when the test ends
		cancel()
	})
	if err := f(ctx, args); err != nil {
		return fail(err)
	}
	Say("done")
	input.Wait()
	cancel()
	if err := goleak.Find(); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return 1
}

// Say prints one line for the test that started this worker.
func Say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A Process represents a worker in the test that started it.
type Process struct {
	Cmd   *exec.Cmd
	Lines chan string // lines of the worker's standard output; closed after the last line
	Ended chan struct{}
	Err   error // result of Cmd.Wait; must not be read before Ended is closed

	t        testing.TB
	patience time.Duration
	stdin    io.WriteCloser
	trash    bytes.Buffer
}

// Start starts a worker. At the end of the test, the worker is killed if it is still running. Line fails the test after
// it has waited for patience; Join and Finish fail the test after twice that time.
func Start(t testing.TB, role string, args any, patience time.Duration, env ...string) *Process {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{
		t: t, patience: patience, Cmd: exec.Command(exe), Lines: make(chan string, 4096), Ended: make(chan struct{}),
	}
	p.Cmd.Env = append(append(os.Environ(), roleEnv+"="+role, argsEnv+"="+string(text)), env...)
	p.Cmd.Stderr = &p.trash
	if p.stdin, err = p.Cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.Ended)
		defer close(p.Lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.Lines <- s.Text()
		}
		p.Err = p.Cmd.Wait()
	}()
	t.Cleanup(p.Kill)
	return p
}

// Errors returns what the worker has written to its standard error. The worker must have ended.
func (p *Process) Errors() string { return p.trash.String() }

// Kill kills the worker, and returns when the process has ended.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // fails if the process has already ended
	for range p.Lines {
	}
	<-p.Ended
}

// Line returns the rest of the next line that begins with word. It skips other lines.
func (p *Process) Line(word string) string {
	p.t.Helper()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	for {
		select {
		case text, ok := <-p.Lines:
			if !ok {
				<-p.Ended
				p.t.Fatalf("the worker ended (%v) before it printed a line with the prefix %q; its standard error: %s",
					p.Err, word, p.trash.String())
			}
			if rest, found := strings.CutPrefix(text, word); found {
				return strings.TrimSpace(rest)
			}
		case <-timer.C:
			p.t.Fatalf("the worker printed no line with the prefix %q in %v", word, p.patience)
		}
	}
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Finish closes the standard input of the worker, waits until the worker has ended, and fails the test if the worker
// ended with an error.
func (p *Process) Finish() {
	p.t.Helper()
	_ = p.stdin.Close() // fails if the worker has already ended
	p.Join()
	if p.Err != nil {
		p.t.Errorf("the worker failed: %v; its standard error: %s", p.Err, p.trash.String())
	}
}

// Join waits until the worker has ended. Like Finish, Join may be called by any goroutine.
func (p *Process) Join() {
	p.t.Helper()
	timer := time.NewTimer(2 * p.patience)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-p.Lines:
			if !ok {
				<-p.Ended
				return
			}
		case <-timer.C:
			p.t.Errorf("the worker did not end in %v, so the test kills it", 2*p.patience)
			p.Kill()
			return
		}
	}
}
