package redlock_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// hang is how long a test waits for an event that should come soon. It only bounds the time of a failure.
const hang = 20 * time.Second

// A deployment has the real masters of one test. Each Locker made from it has its own pool, as in another process.
type deployment struct {
	t       testing.TB
	servers []*redisproc.Server
	urls    []string
}

// newDeployment starts n masters, with further arguments for the server program. They are stopped with the test.
func newDeployment(t testing.TB, n int, args ...string) *deployment {
	t.Helper()
	f := &deployment{t: t, servers: redistest.Test(t, n, redisproc.Config{Args: args})}
	for _, s := range f.servers {
		f.urls = append(f.urls, s.URL())
	}
	return f
}

// calm is the timeout of pools whose masters answer even on a busy machine.
const calm = 5 * time.Second

// dial returns a pool over all masters, which is closed at the end of the test.
func (f *deployment) dial(opts ...pool.Option) *pool.Pool {
	f.t.Helper()
	p, err := pool.Open(f.urls, append([]pool.Option{pool.WithTimeout(calm), pool.WithDialTimeout(calm)}, opts...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.Close() })
	return p
}

// locker returns a Locker with its own pool; both are closed at the end of the test.
func (f *deployment) locker(opts ...redlock.Option) *redlock.Locker {
	f.t.Helper()
	return locker(f.t, f.dial(), opts...)
}

// admitted returns a Locker like locker, with every master admitted at once.
func (f *deployment) admitted(opts ...redlock.Option) *redlock.Locker {
	f.t.Helper()
	l := f.locker(opts...)
	f.admit(l)
	return l
}

func (f *deployment) admit(l *redlock.Locker) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := l.Admin().Admit(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// pause stops masters without closing their connections. Masters that are still paused at the end of the test resume
// before the Lockers are closed.
func (f *deployment) pause(masters ...int) {
	f.t.Helper()
	f.t.Cleanup(func() {
		for _, i := range masters {
			_ = f.servers[i].Resume() // it may have been killed since
		}
	})
	for _, i := range masters {
		if err := f.servers[i].Pause(); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *deployment) resume(masters ...int) {
	f.t.Helper()
	for _, i := range masters {
		if err := f.servers[i].Resume(); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *deployment) kill(masters ...int) {
	f.t.Helper()
	for _, i := range masters {
		if err := f.servers[i].Kill(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// restart kills masters and starts them again, one after the other: empty, unless persistence is on.
func (f *deployment) restart(masters ...int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	for _, i := range masters {
		if err := f.servers[i].Restart(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
}

// ask sends one command to master i on a separate connection.
func (f *deployment) ask(i int, cmd string, args ...any) (any, error) {
	c, err := redis.Dial("unix", f.servers[i].Unix(), redis.DialReadTimeout(hang), redis.DialWriteTimeout(hang))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Do(cmd, args...)
}

// do sends a command like ask, and fails the test on an error.
func (f *deployment) do(i int, cmd string, args ...any) any {
	f.t.Helper()
	v, err := f.ask(i, cmd, args...)
	if err != nil {
		f.t.Fatalf("master %d: %s %v: %v", i, cmd, args, err)
	}
	return v
}

// keys returns the keys of one kind (lock, fence) on master i.
func (f *deployment) keys(i int, kind string) []string {
	f.t.Helper()
	pattern := "*}:" + kind
	if kind == "lock" {
		pattern = "*}"
	}
	list, err := redis.Strings(f.do(i, "KEYS", pattern), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// record returns the admission record of master i.
func (f *deployment) record(i int) string {
	f.t.Helper()
	text, err := redis.String(f.ask(i, "GET", admissionKey))
	if err != nil {
		return err.Error()
	}
	return text
}

const admissionKey = redlock.DefaultPrefix + ":admission"

// hasten makes the quarantines of masters end after left, which is at least the TTL of all locks. A quarantine lasts
// for half a minute and more, since ballots may be 15 s off; no message of a test is.
func (f *deployment) hasten(left time.Duration, masters ...int) {
	f.t.Helper()
	for _, i := range masters {
		eventually(f.t, hang, func() string {
			r, err := scripts.ParseRecord(f.record(i))
			if err != nil || r.Admitted {
				return fmt.Sprintf("master %d is in no quarantine: %q", i, f.record(i))
			}
			before := r.String()
			r.Since -= (r.Quarantine - left).Microseconds()
			const replace = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('SET', KEYS[1], ARGV[2])"
			if f.do(i, "EVAL", replace, 1, admissionKey, before, r.String()) == nil {
				return fmt.Sprintf("the record of master %d is being written", i)
			}
			return ""
		})
	}
}

// noLocks waits until no master has the key of a lock. bound must be well below the TTL of the locks: then they were
// released, and did not expire.
func (f *deployment) noLocks(bound time.Duration) {
	f.t.Helper()
	for i := range f.servers {
		eventually(f.t, bound, func() string {
			if left := f.keys(i, "lock"); len(left) > 0 {
				return fmt.Sprintf("master %d still has %d locks: %.300s", i, len(left), strings.Join(left, " "))
			}
			return ""
		})
	}
}

// states returns the states of the masters of l, for messages.
func states(l *redlock.Locker) string {
	var b strings.Builder
	for _, m := range l.Masters() {
		fmt.Fprintf(&b, "%s %v %v; ", m.State, m.Left, m.Err)
	}
	return b.String()
}

// stateOf waits until l sees master i in a state.
func stateOf(t testing.TB, l *redlock.Locker, i int, state string) {
	t.Helper()
	eventually(t, hang, func() string {
		if m := l.Masters()[i]; m.State != state {
			return fmt.Sprintf("master %d is %q (%v), not %q; %s", i, m.State, m.Err, state, states(l))
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

// within fails the test if f does not return within bound.
func within(t testing.TB, bound time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s has not returned after %v", what, bound)
	}
}

// bounded returns a context that ends only in a hanging test.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	t.Cleanup(cancel)
	return ctx
}

// must returns the value of a call that must not fail.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// held unwraps the result of a call that must acquire a lock.
func held(t testing.TB) func(*redlock.Lock, error) *redlock.Lock { return must[*redlock.Lock](t) }

// longRun reports whether the long forms of the tests were requested.
func longRun() bool { return os.Getenv(longEnv) != "" }

// demote makes master i a replica of another, and waits until it has copied the data.
func (f *deployment) demote(i, of int) {
	f.t.Helper()
	host, port, _ := strings.Cut(f.servers[of].Addr(), ":")
	f.do(i, "REPLICAOF", host, port)
	eventually(f.t, hang, func() string {
		text := string(f.do(i, "INFO", "replication").([]byte))
		if !strings.Contains(text, "master_link_status:up") {
			return text
		}
		return ""
	})
}
