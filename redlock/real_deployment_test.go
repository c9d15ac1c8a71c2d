package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// hang is how long a test waits for an event that should come soon. It only bounds the time of a failure.
const hang = 20 * time.Second

// A deployment has the real masters of one test. Each Locker made from it has its own pool, as in another process.
type deployment struct {
	tester
	servers []*redisproc.Server
	urls    []string
}

// newDeployment starts n masters, with further arguments for the server program. They are stopped with the test.
func newDeployment(t testing.TB, n int, args ...string) *deployment {
	t.Helper()
	f := &deployment{tester: tester{t}, servers: redistest.Test(t, n, redisproc.Config{Args: args})}
	for _, s := range f.servers {
		f.urls = append(f.urls, s.URL())
	}
	return f
}

// calm is the timeout of pools whose masters answer even on a busy machine.
const calm = 5 * time.Second

// dial returns a pool over all masters, which is closed at the end of the test.
func (f *deployment) dial(opts ...pool.Option) *pool.Pool {
	f.Helper()
	p, err := pool.Open(f.urls, append([]pool.Option{pool.WithTimeout(calm), pool.WithDialTimeout(calm)}, opts...)...)
	f.must(err)
	f.Cleanup(func() { p.Close() })
	return p
}

// locker returns a Locker with its own pool; both are closed at the end of the test.
func (f *deployment) locker(opts ...redlock.Option) *redlock.Locker {
	f.Helper()
	return locker(f, f.dial(), opts...)
}

// admitted returns a Locker like locker, with every master admitted at once.
func (f *deployment) admitted(opts ...redlock.Option) *redlock.Locker {
	f.Helper()
	l := f.locker(opts...)
	f.must(l.Admin().Admit(bounded(f)))
	return l
}

// restart kills masters and starts them again, one after the other: empty, unless persistence is on.
func (f *deployment) restart(masters ...int) {
	f.Helper()
	for _, i := range masters {
		f.must(f.servers[i].Restart(bounded(f)))
	}
}

// do sends one command to master i on a separate connection.
func (f *deployment) do(i int, cmd string, args ...any) any {
	f.Helper()
	c, err := redis.Dial("unix", f.servers[i].Unix(), redis.DialReadTimeout(hang), redis.DialWriteTimeout(hang))
	f.must(err)
	defer c.Close()
	v, err := c.Do(cmd, args...)
	if err != nil {
		f.Fatalf("master %d: %s %v: %v", i, cmd, args, err)
	}
	return v
}

// noLocks waits until no master has the key of a lock. bound must be well below the TTL of the locks: then they were
// released, and did not expire.
func (f *deployment) noLocks(bound time.Duration) {
	f.Helper()
	for i := range f.servers {
		eventually(f, bound, func() string {
			if left := f.do(i, "KEYS", "*}").([]any); len(left) > 0 {
				return fmt.Sprintf("master %d still has %d locks: %.300s", i, len(left), left)
			}
			return ""
		})
	}
}

// stateOf waits until l sees master i in a state.
func stateOf(t testing.TB, l *redlock.Locker, i int, state string) {
	t.Helper()
	eventually(t, hang, func() string {
		if m := l.Masters()[i]; m.State != state {
			return fmt.Sprintf("master %d is not %q; %+v", i, state, l.Masters())
		}
		return ""
	})
}

// eventually calls problem until it reports none, and fails the test if it still reports one after bound.
func eventually(t testing.TB, bound time.Duration, problem func() string) {
	t.Helper()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		last := problem()
		if last == "" {
			return
		}
		select {
		case <-timer.C:
			t.Fatalf("still after %v: %s", bound, last)
		case <-tick.C:
		}
	}
}

// bounded returns a context that ends only in a hanging test.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// demote makes master i a replica of another, and waits until it has copied the data.
func (f *deployment) demote(i, of int) {
	f.Helper()
	host, port, _ := strings.Cut(f.servers[of].Addr(), ":")
	f.do(i, "REPLICAOF", host, port)
	eventually(f, hang, func() string {
		text := string(f.do(i, "INFO", "replication").([]byte))
		if !strings.Contains(text, "master_link_status:up") {
			return text
		}
		return ""
	})
}
