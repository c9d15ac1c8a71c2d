package main

import (
	"context"
	"errors"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock/redlocktest"
)

// A deployment holds the masters of the demonstration, and functions that inject faults.
type deployment struct {
	what    string // description of the masters
	urls    []string
	kill    func(i int) error
	restart func(ctx context.Context, i int) error // without data
	hang    func(i int) error
	goOn    func(i int) error
	close   func() error
}

// bring starts n servers if a server program is installed, and otherwise n masters in memory.
func bring(ctx context.Context, n int) (*deployment, error) {
	if path, err := redisproc.Find(); err == nil {
		return processes(ctx, n, path)
	}
	return inMemory(n)
}

func processes(ctx context.Context, n int, path string) (*deployment, error) {
	servers, err := redisproc.StartN(ctx, n, redisproc.Config{})
	if err != nil {
		return nil, err
	}
	f := &deployment{
		what:    "processes of " + path,
		kill:    func(i int) error { return servers[i].Kill() },
		restart: func(ctx context.Context, i int) error { return servers[i].Restart(ctx) },
		hang:    func(i int) error { return servers[i].Pause() },
		goOn:    func(i int) error { return servers[i].Resume() },
		close: func() error {
			var errs []error
			for _, s := range servers {
				errs = append(errs, s.Stop())
			}
			return errors.Join(errs...)
		},
	}
	for _, s := range servers {
		f.urls = append(f.urls, s.URL())
	}
	return f, nil
}

func inMemory(n int) (*deployment, error) {
	masters := redlocktest.New(n, redlocktest.Fresh())
	addrs, err := masters.Listen()
	if err != nil {
		return nil, err
	}
	do := func(f func(*redlocktest.Master)) func(int) error {
		return func(i int) error {
			f(masters.Master(i))
			return nil
		}
	}
	return &deployment{
		what: "in memory, because no redis-server is installed",
		urls: addrs,
		kill: do((*redlocktest.Master).Stop),
		restart: func(_ context.Context, i int) error {
			masters.Master(i).Restart(false)
			return nil
		},
		hang:  do((*redlocktest.Master).Hang),
		goOn:  do((*redlocktest.Master).Resume),
		close: func() error { masters.Close(); return nil },
	}, nil
}
