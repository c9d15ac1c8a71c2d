package pooltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// User configures servers with an ACL user "lock" that has the password "secret".
var User = redisproc.Config{Args: []string{"--user", "lock", "on", ">secret", "~*", "&*", "+@all"}}

// Locks creates a Locker over p, calls holds, and closes p.
func Locks(t *testing.T, p *pool.Pool, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := redlock.New(p)
	holds(t, l, err)
}

// Buckets creates a Locker over the pools of the buckets of a cluster, calls holds, and closes the pools. exists
// returns how many keys with a name the cluster has: there must be an admission record of bucket 1.
func Buckets(t *testing.T, pools []*pool.Pool, exists func(key string) (int64, error)) {
	t.Helper()
	l, err := redlock.NewSharded(pools)
	holds(t, l, err)
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, err := exists("redlock{1}:admission"); n != 1 || err != nil {
		t.Errorf("%d admission records of bucket 1 exist, want 1: %v", n, err)
	}
}

// holds admits the masters of l, acquires some locks, checks that all masters vote, and closes l.
func holds(t *testing.T, l *redlock.Locker, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := admin.Of(l).Admit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		err := l.Do(ctx, fmt.Sprint("orders:", i), func(context.Context, *redlock.Lock) error { return nil })
		if err != nil {
			t.Error(err)
		}
	}
	for _, m := range admin.Of(l).Masters() {
		if m.State != "voting" {
			t.Errorf("master %s is %s, want voting: %v", m.Addr, m.State, m.Err)
		}
	}
}
