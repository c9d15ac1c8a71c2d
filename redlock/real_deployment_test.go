package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// hang is how long a test waits for an event that should come soon. It only bounds the time of a failure.
const hang = 20 * time.Second

// A deployment contains the real masters of one test. Each Locker made from it has its own pool, as in another
// process.
type deployment struct {
	tester
	servers []*redisproc.Server
	urls    []string
}

// newDeployment starts n masters, with further arguments for the server program. The masters are stopped at the end of
// the test.
func newDeployment(t testing.TB, n int, args ...string) *deployment {
	t.Helper()
	f := &deployment{tester: tester{t}, servers: redistest.Test(t, n, redisproc.Config{Args: args})}
	for _, s := range f.servers {
		f.urls = append(f.urls, s.URL())
	}
	return f
}

// calm is a timeout that is long enough for masters on a busy machine.
const calm = 5 * time.Second

// dial returns a pool over all masters, which is closed at the end of the test.
func (f *deployment) dial(opts ...pool.Option) *pool.Pool {
	f.Helper()
	p, err := pool.Open(f.urls, append([]pool.Option{pool.WithTimeout(calm), pool.WithDialTimeout(calm)}, opts...)...)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Close() })
	return p
}

// locker returns a Locker with its own pool; both are closed at the end of the test.
func (f *deployment) locker(opts ...redlock.Option) *redlock.Locker {
	f.Helper()
	return locker(f, f.dial(), opts...)
}

// admitted returns a Locker like locker, after it has admitted every master without a quarantine.
func (f *deployment) admitted(opts ...redlock.Option) *redlock.Locker {
	f.Helper()
	l := f.locker(opts...)
	f.admit(l)
	return l
}

func (f *deployment) admit(l *redlock.Locker) {
	f.Helper()
	f.must(admin.Of(l).Admit(f.withTimeout(hang)))
}

func (f *deployment) kill(masters ...int) {
	f.Helper()
	for _, i := range masters {
		f.must(f.servers[i].Kill())
	}
}

// restart kills masters and starts them again, one after the other: empty, unless persistence is on.
func (f *deployment) restart(masters ...int) {
	f.Helper()
	for _, i := range masters {
		f.must(f.servers[i].Restart(f.withTimeout(hang)))
	}
}

// do sends one command to master i, and returns the reply.
func (f *deployment) do(i int, command string, args ...any) any {
	f.Helper()
	return redistest.Do(f, f.servers[i], append([]any{command}, args...)...)
}

// allow gives all masters a user "lock" with the password "pw" and the documented rights, and then applies more rules.
func (f *deployment) allow(more ...string) {
	f.Helper()
	rules := []any{"SETUSER", "lock", "on", ">pw"}
	for _, rule := range append(strings.Fields(defaultPrefix.Rule()), more...) {
		rules = append(rules, rule)
	}
	for i := range f.servers {
		f.do(i, "ACL", rules...)
	}
}

// locks returns the keys of the names that have a lease, or shares, on master i.
func (f *deployment) locks(i int) []string {
	f.Helper()
	return must(redis.Strings(f.do(i, "EVAL", `local held = redis.call('KEYS', '*}:shares')
		for _, name in ipairs(redis.call('KEYS', '*}')) do
			for _, field in ipairs(redis.call('HKEYS', name)) do
				if string.find(field, ':') then table.insert(held, name) end
			end
		end
		return held`, 0), nil))(f)
}

// record returns the admission record of master i.
func (f *deployment) record(i int) string {
	f.Helper()
	text, err := redis.String(f.do(i, "GET", admissionKey), nil)
	if err != nil {
		return err.Error()
	}
	return text
}

const admissionKey = redlock.DefaultPrefix + ":admission"

// noLocks waits until no master has a lease. bound must be well below the TTL of the locks, so that the leases cannot
// have expired instead of being released.
func (f *deployment) noLocks(bound time.Duration) {
	f.Helper()
	for i := range f.servers {
		redistest.Await(f, bound, func() string {
			if left := f.locks(i); len(left) > 0 {
				return fmt.Sprintf("master %d still has %d locks: %.300s", i, len(left), strings.Join(left, " "))
			}
			return ""
		})
	}
}

// states returns the states of the masters of l, for failure messages.
func states(l *redlock.Locker) string {
	var b strings.Builder
	for _, m := range admin.Of(l).Masters() {
		fmt.Fprintf(&b, "%s %v %v; ", m.State, m.Left, m.Err)
	}
	return b.String()
}

// awaitState waits until l reports this state of master i.
func (f *deployment) awaitState(l *redlock.Locker, i int, state redlockinfo.State) {
	f.Helper()
	redistest.Await(f, hang, func() string {
		if m := admin.Of(l).Masters()[i]; m.State != state {
			return fmt.Sprintf("master %d is %q (%v), not %q; %s", i, m.State, m.Err, state, states(l))
		}
		return ""
	})
}

// demote makes master i a replica of another, and waits until the data is copied.
func (f *deployment) demote(i, of int) {
	f.Helper()
	host, port, _ := strings.Cut(f.servers[of].Addr(), ":")
	f.do(i, "REPLICAOF", host, port)
	redistest.Await(f, hang, func() string {
		text := string(f.do(i, "INFO", "replication").([]byte))
		if !strings.Contains(text, "master_link_status:up") {
			return text
		}
		return ""
	})
}
