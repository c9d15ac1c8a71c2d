package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/history"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/worker"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// workerArgs holds the arguments of a worker process.
type workerArgs struct {
	ID      string // prefix of the ids of its holds, and of the name of its history
	Dir     string // directory of the histories
	URLs    []string
	TLSDir  string // directory of the certificates; "" for no TLS
	Durable bool   // the masters persist every write
	TTL     time.Duration
	Seed    uint64
}

// runWorker runs the workload in this process.
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
	return errors.Join(err, l.Close())
}

// options returns the options of each Locker of the deployment.
func (a workerArgs) options() []redlock.Option {
	opts := []redlock.Option{redlock.WithTTL(a.TTL), redlock.WithMaxTTL(a.TTL)}
	if a.Durable {
		opts = append(opts, redlock.WithAllMastersDurable())
	}
	return opts
}

func dialPool(a workerArgs) (*pool.Pool, error) {
	var opts []pool.Option
	if a.TLSDir != "" {
		cfg, err := redistest.ClientTLS(a.TLSDir)
		if err != nil {
			return nil, err
		}
		opts = append(opts, pool.WithTLSConfig(cfg))
	}
	return pool.Open(a.URLs, opts...)
}

// A client is a process that runs the workload.
type client struct {
	id string
	*worker.Process
}

// startWorker starts a worker process. At the end of the test the process is killed, if it still runs.
func startWorker(t testing.TB, a workerArgs) *client {
	t.Helper()
	return &client{id: a.ID, Process: worker.Start(t, "workload", a, hang)}
}
