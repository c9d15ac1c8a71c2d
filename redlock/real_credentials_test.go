package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// rightsOf returns the documented rights of a user, as arguments of ACL SETUSER.
func rightsOf(user string, more ...any) []any {
	rules := []any{"SETUSER", user, "on"}
	for rule := range strings.FieldsSeq(scripts.Prefix(redlock.DefaultPrefix).Rule()) {
		rules = append(rules, rule)
	}
	return append(rules, more...)
}

// A secret is a password that changes, and the provider that returns it.
type secret struct {
	password atomic.Pointer[string]
	problem  atomic.Pointer[error]
	calls    atomic.Int64
}

func (s *secret) rotate(password string) { s.password.Store(&password) }

func (s *secret) provide(context.Context) (user, password string, err error) {
	s.calls.Add(1)
	if problem := s.problem.Load(); problem != nil {
		return "", "", *problem
	}
	return "app", *s.password.Load(), nil
}

// sessionOf returns the number of the session of master i, or 0 while it is down.
func sessionOf(p *pool.Pool, i int) (session uint64) {
	p.Transport().Watch(func(e transport.Event) {
		if e.Master == i {
			session = e.Session
		}
	})()
	return session
}

// While the passwords of all masters rotate, one master after the other, and all connections are closed, a held lock is
// kept and no call fails. When the passwords of all masters rotate at once, calls may have to be repeated.
func TestPasswordsRotateUnderLoad(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	s := &secret{}
	s.rotate("password-0")
	for i := range f.servers {
		f.do(i, "ACL", rightsOf("app", ">password-0")...)
	}
	p := f.dial(pool.WithCredentialsProvider(s.provide))
	l := locker(t, p)
	for i := range f.servers {
		stateOf(t, l, i, "voting")
	}
	kept := held(t)(l.Lock(bounded(t), "kept"))

	var together atomic.Bool // the passwords of all masters rotate at once
	var done, repeated atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	defer load.Wait()
	defer stop()
	for g := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				err := l.Do(ctx, fmt.Sprint("n", g%2), func(context.Context) error { return nil })
				switch {
				case err == nil:
					done.Add(1)
				case ctx.Err() != nil:
				case together.Load() && errors.Is(err, redlock.ErrNoQuorum):
					repeated.Add(1)
					time.Sleep(5 * time.Millisecond)
				default:
					t.Errorf("a call failed: %v", err)
					return
				}
			}
		})
	}
	rounds := 5
	if longRun() {
		rounds = 50
	}
	rotate := func(i, round int) {
		f.do(i, "ACL", "SETUSER", "app", fmt.Sprint(">password-", round), fmt.Sprint("<password-", round-1))
		f.do(i, "CLIENT", "KILL", "USER", "app")
	}
	before := done.Load()
	for round := 1; round <= rounds; round++ {
		together.Store(round == rounds)
		s.rotate(fmt.Sprint("password-", round))
		for i := range f.servers {
			session := sessionOf(p, i)
			rotate(i, round)
			if round < rounds {
				eventually(t, hang, func() string {
					if now := sessionOf(p, i); now <= session {
						return fmt.Sprintf("master %d has no new session (%d, then %d)", i, session, now)
					}
					return ""
				})
				stateOf(t, l, i, "voting")
			}
		}
	}
	for i := range f.servers {
		stateOf(t, l, i, "voting")
	}
	if err := l.Do(bounded(t), "after", func(context.Context) error { return nil }); err != nil {
		t.Errorf("after the last rotation: %v", err)
	}
	if err := kept.Err(); err != nil {
		t.Errorf("the held lock was lost: %v", err)
	}
	if err := kept.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
	if n, least := s.calls.Load(), int64(3*(rounds+1)); n < least || done.Load() == before {
		t.Errorf("%d calls of the provider, fewer than %d; %d locks", n, least, done.Load()-before)
	}
	t.Logf("%d locks, %d repeated calls, %d calls of the provider", done.Load(), repeated.Load(), s.calls.Load())
}

// A provider that fails for a while keeps its master down with that reason. The other masters hold the locks, and the
// master comes back with the provider.
func TestAProviderThatFailsForAWhile(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	first, others := &secret{}, &secret{}
	var list []pool.Master
	for i, url := range f.urls {
		s := others
		if i == 0 {
			s = first
		}
		s.rotate("password-of-app")
		f.do(i, "ACL", rightsOf("app", ">password-of-app")...)
		list = append(list, pool.URL(url, pool.WithCredentialsProvider(s.provide)))
	}
	p, err := pool.New(list, pool.WithTimeout(calm), pool.WithDialTimeout(calm))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l := locker(t, p)
	for i := range f.servers {
		stateOf(t, l, i, "voting")
	}
	kept := held(t)(l.Lock(bounded(t), "kept"))
	sealed := errors.New("the vault is sealed")
	first.problem.Store(&sealed)
	f.do(0, "CLIENT", "KILL", "USER", "app")
	const reason = "the credentials provider failed: the vault is sealed"
	eventually(t, hang, func() string {
		if m := l.Masters()[0]; m.Err == nil || !strings.Contains(m.Err.Error(), reason) {
			return fmt.Sprintf("master 0 is %q: %v", m.State, m.Err)
		}
		return ""
	})
	if err := l.Do(bounded(t), "n", func(context.Context) error { return nil }); err != nil {
		t.Errorf("with two of three masters: %v", err)
	}
	first.problem.Store(nil)
	stateOf(t, l, 0, "voting")
	if err := kept.Unlock(bounded(t)); err != nil {
		t.Error(err)
	}
}

// The connections of a Locker have its label as their name in CLIENT LIST.
func TestConnectionsHaveTheLabelAsTheirName(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 1)
	locker(t, f.dial(), redlock.WithOwner("web 1/17"))
	eventually(t, hang, func() string {
		if list := fmt.Sprintf("%s", f.do(0, "CLIENT", "LIST")); !strings.Contains(list, " name=web-1/17 ") {
			return list
		}
		return ""
	})
}
