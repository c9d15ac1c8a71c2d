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

// User configures servers with an ACL user "lock" that has the password "secret". Without a login no lock can be
// acquired.
var User = redisproc.Config{Args: []string{
	"--user", "lock", "on", ">secret", "~*", "&*", "+@all", "--user", "default", "on", "nopass", "~*", "&*", "+@all",
	"-@scripting",
}}

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

// Buckets creates a Locker over the pools of the buckets of a cluster, calls holds, and closes the pools.
func Buckets(t *testing.T, pools []*pool.Pool) {
	t.Helper()
	l, err := redlock.NewSharded(pools)
	holds(t, l, err)
	for _, p := range pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
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
