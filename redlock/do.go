package redlock

import (
	"context"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// noFunction returns the error of a call without a function to run.
func noFunction(name string) error {
	return client.Invalid("%s %.80q: the function is nil", redlockinfo.OpDo, name)
}

// A lockOrLocks is a Lock or Locks, which during releases.
type lockOrLocks interface {
	Context(parent context.Context) context.Context
	finish(ctx context.Context) error
}

// during runs f while k is held, and then releases k. err is the error of f; lost is the reason if k ended before f
// returned.
func during[K lockOrLocks](ctx context.Context, k K, f func(ctx context.Context, k K) error) (err, lost error) {
	defer func() { lost = k.finish(ctx) }()
	return f(k.Context(ctx), k), nil
}

// finish releases k; see [client.Lock.Finish].
func (k *Lock) finish(ctx context.Context) error { return public(k.held.Finish(ctx, k.Unlock)) }
