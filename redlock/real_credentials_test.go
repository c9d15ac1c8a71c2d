package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// While the passwords of all masters rotate, one master after the other, and all connections are closed, a held lock is
// kept and no call fails.
func TestPasswordsRotateUnderLoad(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	var password atomic.Value
	password.Store("password-0")
	rules := []any{"SETUSER", "app", "on", ">password-0"} // and the documented rights
	for rule := range strings.FieldsSeq(scripts.Prefix(redlock.DefaultPrefix).Rule()) {
		rules = append(rules, rule)
	}
	for i := range f.servers {
		f.do(i, "ACL", rules...)
	}
	p := f.dial(pool.WithCredentialsProvider(func(context.Context) (string, string, error) {
		return "app", password.Load().(string), nil
	}))
	l := locker(t, p)
	for i := range f.servers {
		stateOf(t, l, i, "voting")
	}
	kept := held(t)(l.Lock(bounded(t), "kept"))
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	for g := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, fmt.Sprint("n", g%2), func(context.Context) error { return nil })
				if err != nil && ctx.Err() == nil {
					t.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	defer load.Wait()
	defer stop()
	session := func(i int) (session uint64) {
		p.Transport().Watch(func(e transport.Event) {
			if e.Master == i {
				session = e.Session
			}
		})()
		return session
	}
	for round := 1; round <= 5; round++ {
		password.Store(fmt.Sprint("password-", round))
		for i := range f.servers {
			before := session(i)
			f.do(i, "ACL", "SETUSER", "app", fmt.Sprint(">password-", round), fmt.Sprint("<password-", round-1))
			f.do(i, "CLIENT", "KILL", "USER", "app")
			eventually(t, hang, func() string {
				if now := session(i); now <= before {
					return fmt.Sprintf("master %d has no new session (%d, then %d)", i, before, now)
				}
				return ""
			})
			stateOf(t, l, i, "voting")
		}
	}
	if err := kept.Unlock(bounded(t)); err != nil {
		t.Errorf("the held lock: %v", err)
	}
}

// The connections of a Locker have its label and its epoch as their name in CLIENT LIST.
func TestConnectionsHaveTheLabelAsTheirName(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 1)
	locker(t, f.dial(), redlock.WithOwner("web 1/17"))
	eventually(t, hang, func() string {
		if list := fmt.Sprintf("%s", f.do(0, "CLIENT", "LIST")); !strings.Contains(list, " name=web-1/17;epoch=0 ") {
			return list
		}
		return ""
	})
}
