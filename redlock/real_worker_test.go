package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
	Count      int           // holds
}

// roles are the programs that a worker can run. A role returns when ctx ends or its work is done; the worker reports
// its error.
var roles = map[string]func(ctx context.Context, l *redlock.Locker, a workerArgs) error{
	"hold":      holdRole,
	"pair":      pairRole,
	"suspended": suspendedRole,
}

// runRole runs one role in this process. Results are lines on standard output.
func runRole(ctx context.Context, role string, a workerArgs) error {
	p, err := pool.Open(a.URLs, pool.WithTimeout(calm))
	if err != nil {
		return err
	}
	defer p.Close()
	var opts []redlock.Option
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
