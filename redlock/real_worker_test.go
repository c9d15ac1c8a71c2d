package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// longEnv is an environment variable; any value runs the long forms of the tests.
const longEnv = "REDLOCK_TEST_LONG"

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

// runRole runs one role in this process. Results are lines on standard output.
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
	p, err := pool.Open(a.URLs, dialOpts...)
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

// startWorker starts a process, which is killed and joined at the end of the test.
func startWorker(t testing.TB, role string, a workerArgs, env ...string) *worker.Process {
	t.Helper()
	return worker.Start(t, role, a, hang, env...)
}
