package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// open returns a Locker over the masters. Its pool considers a master down after a second without a reply.
func open(t *testing.T, list []Master, opts ...redlock.Option) *redlock.Locker {
	t.Helper()
	p, err := pool.Open(urls(list), pool.WithTimeout(time.Second), pool.WithDialTimeout(3*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l, err := redlock.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
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
