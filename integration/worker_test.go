package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// workerEnv is set only for workers, to their workerArgs in JSON.
const workerEnv = "REDLOCK_TEST_WORKER"

// workerArgs are the arguments of a worker.
type workerArgs struct {
	ID      string // prefix of the ids of its holds, and of its file name
	Dir     string // directory of the histories
	URLs    []string
	TLSDir  string // directory of the certificates; "" for no TLS
	Durable bool   // the masters persist every write
	TTL     time.Duration
	Seed    uint64
}

// workerMain runs the workload in this process and returns its exit code. When its standard input ends, the test has
// ended or wants the worker to end.
func workerMain() int {
	signal.Ignore(os.Interrupt) // of a terminal: the test ends the workers
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var a workerArgs
	if err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &a); err != nil {
		return failWorker(err)
	}
	var input sync.WaitGroup
	input.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		cancel()
	})
	if err := runWorker(ctx, a); err != nil {
		return failWorker(err)
	}
	input.Wait()
	if err := goleak.Find(); err != nil {
		return failWorker(err)
	}
	return 0
}

func failWorker(err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return 1
}

func runWorker(ctx context.Context, a workerArgs) (err error) {
	p, err := dialPool(a)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := redlock.New(p, a.options()...)
	if err != nil {
		return err
	}
	rec, err := history.NewRecorder(a.Dir, a.ID)
	if err != nil {
		return err
	}
	defer rec.Close()
	err = (&workload{args: a, l: l, rec: rec}).run(ctx)
	end, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	return errors.Join(err, l.Close(end))
}

// options returns the options of every Locker of the deployment.
func (a workerArgs) options() []redlock.Option {
	opts := []redlock.Option{redlock.WithTTL(a.TTL), redlock.WithMaxTTL(a.TTL)}
	if a.Durable {
		opts = append(opts, redlock.WithDurableMasters())
	}
	return opts
}

func dialPool(a workerArgs) (*pool.Pool, error) {
	var opts []pool.Option
	if a.TLSDir != "" {
		cfg, err := clientTLS(a.TLSDir)
		if err != nil {
			return nil, err
		}
		opts = append(opts, pool.WithTLSConfig(cfg))
	}
	return pool.Dial(a.URLs, opts...)
}

// A worker is a process that runs the workload.
type worker struct {
	id    string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	trash bytes.Buffer
	ended chan struct{}
	err   error // from Wait; read after ended is closed
}

// startWorker starts a process, which is killed and joined at the end of the test.
func startWorker(t testing.TB, a workerArgs) *worker {
	t.Helper()
	args, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{id: a.ID, cmd: exec.Command(exe), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(args))
	w.cmd.Stderr = &w.trash
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		w.err = w.cmd.Wait()
	}()
	t.Cleanup(w.kill)
	return w
}

// kill ends the worker at once, and returns when it is gone.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may already have ended
	<-w.ended
}

// finish makes the worker end, and waits until it has, without an error.
func (w *worker) finish(t testing.TB) {
	t.Helper()
	_ = w.stdin.Close() // the worker may already have ended
	timer := time.NewTimer(2 * hang)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
		w.kill()
		t.Errorf("worker %s did not end within %v: %s", w.id, 2*hang, w.trash.String())
		return
	}
	if w.err != nil {
		t.Errorf("worker %s: %v: %s", w.id, w.err, w.trash.String())
	}
}

// clientTLS trusts the private authority of a directory, and presents the client's certificate.
func clientTLS(dir string) (*tls.Config, error) {
	roots, err := readRoots(dir)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(dir+"/client.pem", dir+"/client.key")
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
