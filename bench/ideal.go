package main

import (
	"context"
	"sync"
)

// The ideal is the same work on a mutex of one process: what no lock over a network can beat.
type ideal struct{ mu sync.Mutex }

const nameIdeal = "local mutex"

func (i *ideal) caller() caller { return i }

func (i *ideal) tryLock(ctx context.Context, name string) (held, error) { return i.lock(ctx, name) }

func (i *ideal) lock(context.Context, string) (held, error) {
	i.mu.Lock()
	return i, nil
}

// Unlock implements held.
func (i *ideal) Unlock(context.Context) error {
	i.mu.Unlock()
	return nil
}

func (i *ideal) close(context.Context) error { return nil }
