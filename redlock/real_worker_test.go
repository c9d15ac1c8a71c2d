package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The environment variables of workers and tests.
const (
	workerEnv     = "REDLOCK_TEST_WORKER"      // the role; set in workers only
	workerArgsEnv = "REDLOCK_TEST_WORKER_ARGS" // workerArgs in JSON
	workerTestEnv = "REDLOCK_TEST_LONG"        // any value: run the long forms
)

func longEnv() string { return os.Getenv(workerTestEnv) }

// workerArgs holds the settings of a worker.
type workerArgs struct {
	URLs       []string
	Name       string        // of the lock
	TTL, Guard time.Duration // 0: the defaults
	Shift      time.Duration // clock offset
	ShiftPool  bool          // the pool's clock is offset as well
	Timeout    time.Duration // of its pool; 0: calm
	Count      int           // holds
	Goroutines int
	Dir        string // of shared files
	Stay       bool   // one hold is never released
}

// roles are the programs that a worker can run. A role returns when ctx ends or its work is done; the worker reports
// its error.
var roles = map[string]func(ctx context.Context, l *redlock.Locker, a workerArgs) error{
	"hold":      holdRole,
	"pair":      pairRole,
	"suspended": suspendedRole,
	"tokens":    tokensRole,
	"turns":     turnsRole,
	"write":     writeRole,
}

// workerMain runs one role in this process and returns its exit code. When its standard input ends, the test is gone or
// wants the worker to end. Results are lines on standard output.
func workerMain(role string) int {
	var a workerArgs
	if err := json.Unmarshal([]byte(os.Getenv(workerArgsEnv)), &a); err != nil {
		return failWorker(err)
	}
	ctx, cancel := termContext()
	defer cancel()
	var input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		cancel()
	})
	if err := runRole(ctx, role, a); err != nil {
		return failWorker(err)
	}
	say("done")
	input.Wait()
	cancel()
	if err := goleak.Find(); err != nil {
		return failWorker(err)
	}
	return 0
}

func runRole(ctx context.Context, role string, a workerArgs) error {
	clk := (*clock.Clock)(nil)
	if a.Shift != 0 {
		clk = clock.New(func() clock.Instant { return (*clock.Clock)(nil).Now().Add(a.Shift) })
	}
	timeout := a.Timeout
	if timeout == 0 {
		timeout = calm
	}
	dialOpts := []pool.Option{pool.WithTimeout(timeout)}
	if a.ShiftPool {
		dialOpts = append(dialOpts, transport.WithClock(clk))
	}
	p, err := pool.Dial(a.URLs, dialOpts...)
	if err != nil {
		return err
	}
	defer p.Close()
	opts := []redlock.Option{redlock.WithClock(clk)}
	if a.TTL > 0 {
		opts = append(opts, redlock.WithTTL(a.TTL))
	}
	if a.Guard > 0 {
		opts = append(opts, redlock.WithMaxTTL(a.Guard))
	}
	l, err := redlock.New(p, opts...)
	if err != nil {
		return err
	}
	err = roles[role](ctx, l, a)
	end, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	return errors.Join(err, l.Close(end))
}

// termContext ends when the process is asked to end.
func termContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM)
}

// say writes one line to the test.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func failWorker(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return 1
}

// A worker is a process of this test binary in one role.
type worker struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // its output; closed at the end
	trash bytes.Buffer
	ended chan struct{}
	err   error // its exit error; read after ended
}

// startWorker starts a process, which is killed and joined at the end of the test.
func startWorker(t testing.TB, role string, a workerArgs, env ...string) *worker {
	t.Helper()
	args, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	exe := must[string](t)(os.Executable())
	w := &worker{t: t, cmd: exec.Command(exe), lines: make(chan string, 4096), ended: make(chan struct{})}
	w.cmd.Env = append(append(os.Environ(), workerEnv+"="+role, workerArgsEnv+"="+string(args)), env...)
	w.cmd.Stderr = &w.trash
	w.stdin = must[io.WriteCloser](t)(w.cmd.StdinPipe())
	out := must[io.ReadCloser](t)(w.cmd.StdoutPipe())
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		defer close(w.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
		w.err = w.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended
		for range w.lines {
		}
		<-w.ended
	})
	return w
}

// line returns the next line that begins with a word, without that word. It skips other lines before it.
func (w *worker) line(word string) string {
	w.t.Helper()
	timer := time.NewTimer(hang)
	defer timer.Stop()
	for {
		select {
		case text, ok := <-w.lines:
			if !ok {
				<-w.ended
				w.t.Fatalf("the worker ended (%v) without %q: %s", w.err, word, w.trash.String())
			}
			if rest, found := strings.CutPrefix(text, word); found {
				return strings.TrimSpace(rest)
			}
		case <-timer.C:
			w.t.Fatalf("the worker has not said %q after %v", word, hang)
		}
	}
}

func (w *worker) signal(s os.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// finish asks the worker to end, and waits until it has, without an error.
func (w *worker) finish() {
	w.t.Helper()
	_ = w.stdin.Close() // the worker may have ended
	w.join()
	if w.err != nil {
		w.t.Errorf("worker: %v: %s", w.err, w.trash.String())
	}
}

// finishAfter calls finish after the worker has written a word.
func (w *worker) finishAfter(word string) {
	w.t.Helper()
	timer := time.NewTimer(longHang)
	defer timer.Stop()
	for {
		select {
		case text, ok := <-w.lines:
			if !ok || strings.HasPrefix(text, word) {
				w.finish()
				return
			}
		case <-timer.C:
			w.t.Fatalf("the worker has not said %q after %v", word, longHang)
		}
	}
}

// join waits until the process has ended.
func (w *worker) join() {
	w.t.Helper()
	timer := time.NewTimer(2 * hang)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-w.lines:
			if !ok {
				<-w.ended
				return
			}
		case <-timer.C:
			w.t.Fatalf("the worker has not ended after %v", 2*hang)
		}
	}
}
