package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// open returns a Locker over the masters. Its pool considers a master down after a second without a reply.
func open(t *testing.T, list []Master, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	p := must.Get(pool.Open(urls(list), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second)))(t)
	l := must.Get(redlock.New(p, opts...))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close failed: %v", err)
		}
		p.Close()
	})
	return l
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}
