package redlock_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// An ailment is a fault that makes a master unable to vote while it runs and answers.
type ailment struct {
	name   string
	text   string // the error of the call must contain this text
	infect func(f *deployment, i int)
	// user and password are the credentials that the Lockers send to faulty masters.
	user, password string
	args           []string // of every server
}

// ailments lists all the faults of H52, H54, H56, H57, H60 and H106.
func ailments() []ailment {
	set := func(pairs ...any) func(*deployment, int) {
		return func(f *deployment, i int) {
			for k := 0; k < len(pairs); k += 2 { // Redis 6 sets only one parameter at a time
				f.do(i, "CONFIG", "SET", pairs[k], pairs[k+1])
			}
		}
	}
	acl := func(rules ...any) func(*deployment, int) {
		return func(f *deployment, i int) {
			f.do(i, "ACL", append([]any{"SETUSER", "app", "on", ">secret-word", "~*", "&*"}, rules...)...)
		}
	}
	return []ailment{
		{name: "OOM", text: "OOM ", infect: set("maxmemory", "1")},
		{name: "NOREPLICAS", text: "NOREPLICAS ", infect: set("min-replicas-to-write", "1")},
		{name: "MISCONF", text: "MISCONF ", infect: breakSaving},
		{name: "READONLY", text: "it is a replica",
			infect: func(f *deployment, i int) { f.do(i, "REPLICAOF", "127.0.0.1", "1") }},
		{name: "data at the key", text: "WRONGTYPE ",
			infect: func(f *deployment, i int) { f.do(i, "SET", redlock.DefaultPrefix+":{n}", "data") }},
		{name: "a large hash at the key", text: "WRONGTYPE ", infect: func(f *deployment, i int) { // H106
			for field := range 20 {
				f.do(i, "HSET", redlock.DefaultPrefix+":{n}", field, strings.Repeat("x", 200_000))
			}
		}},
		{name: "eviction", text: "maxmemory-policy", infect: set("maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")},
		{name: "eviction of keys with a TTL", text: "volatile-ttl",
			infect: set("maxmemory", "100mb", "maxmemory-policy", "volatile-ttl")},
		{name: "NOPERM", text: "NOPERM ", infect: acl("+@all", "-evalsha", "-eval"), user: "app", password: "secret-word"},
		{name: "NOPERM of a key", text: "NOPERM ", infect: acl("+@all", "resetkeys", "~other:*"), user: "app",
			password: "secret-word"},
		{name: "INFO denied", text: "@dangerous", infect: acl("+@all", "-@dangerous"), user: "app", password: "secret-word"},
		{name: "NOAUTH", text: "NOAUTH ", infect: set("requirepass", "secret-word")},
		{name: "WRONGPASS", text: "WRONGPASS ", infect: acl("+@all"), user: "app", password: "not-the-secret"},
	}
}

// breakSaving makes a snapshot of the server fail, because a directory has the name of the snapshot file. After that
// the server refuses writes.
func breakSaving(f *deployment, i int) {
	f.Helper()
	f.must(os.Mkdir(filepath.Join(f.servers[i].Dir(), "dump.rdb"), 0o700))
	f.do(i, "CONFIG", "SET", "save", "3600 1")
	f.Cleanup(func() { f.do(i, "CONFIG", "SET", "save", "") }) // otherwise the server does not exit until it can save
	f.do(i, "BGSAVE")
	redistest.Await(f, hang, func() string {
		text := string(f.do(i, "INFO", "persistence").([]byte))
		if !strings.Contains(text, "rdb_last_bgsave_status:err") {
			return "the snapshot has not failed: " + text
		}
		return ""
	})
}

// H52, H54, H56, H57, H60: locks work while a minority of the masters has any of the faults. If a majority has the
// fault, the error is ErrNoQuorum, not ErrHeld, and contains each faulty master and its reply. No error contains a
// password.
func TestUnhealthyMinorityIsTolerated(t *testing.T) {
	t.Parallel()
	for _, a := range ailments() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			f := newDeployment(t, 5, a.args...)
			f.admitted()
			ill := []int{1, 3, 4}
			for _, i := range ill[:2] {
				f.fallIll(i, &a)
			}
			l := locker(t, f.dial(transport.WithHeartbeat(50*time.Millisecond)), redlock.WithTTL(20*time.Second))
			for range 20 {
				lock := must(l.Lock(f.Context(), "n"))(f)
				inner := must(l.Lock(lock.Context(f.withTimeout(hang)), "n", redlock.WithReentry()))(f)
				f.must(lock.Extend(f.withTimeout(hang)), inner.Unlock(f.withTimeout(hang)), lock.Unlock(f.withTimeout(hang)))
			}
			f.fallIll(ill[2], &a)
			l = locker(t, f.dial(), redlock.WithTTL(20*time.Second))
			client.SetOf(l).AwaitKnown(f.withTimeout(hang)) // otherwise the error reports masters that have no connection yet
			_, err := l.TryLock(f.withTimeout(hang), "n")
			f.says(err, redlock.ErrNoQuorum, a.text, f.servers[1].Addr(), f.servers[3].Addr(), f.servers[4].Addr())
			f.notError(err, redlock.ErrHeld)
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("a password is in %v", err)
			}
		})
	}
}

// fallIll applies the fault a to master i. If a has a password, Lockers that are created later log in with it.
func (f *deployment) fallIll(i int, a *ailment) {
	f.Helper()
	a.infect(f, i)
	if a.password != "" {
		f.urls[i] = (&url.URL{Scheme: "redis", User: url.UserPassword(a.user, a.password),
			Host: f.servers[i].Addr()}).String()
	}
}

// A full master extends locks, and refuses values. So it is failing after it has refused a value, also if it extends
// the lock next, until it grants a lock.
func TestFullMasterFailsUntilItGrants(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3)
	f.admitted()
	l := f.locker()
	f.must(l.WaitReady(f.withTimeout(hang))) // it waits for all masters that can be reached
	lock := must(l.Lock(f.withTimeout(hang), "n", redlock.WithTTL(20*time.Second)))(f)
	state := func() redlockinfo.State { return admin.Of(l).Masters()[0].State }
	f.do(0, "CONFIG", "SET", "maxmemory", "1")
	f.must(lock.SetValue(f.withTimeout(hang), "v"))
	if !redistest.Until(func() bool { return state() == redlockinfo.StateFailing }) {
		t.Fatalf("after a value the master is %s", state())
	}
	f.must(lock.Extend(f.withTimeout(hang)))
	time.Sleep(200 * time.Millisecond) // until its answer has arrived
	if state() != redlockinfo.StateFailing {
		t.Errorf("after an extension the master is %s", state())
	}
	f.do(0, "CONFIG", "SET", "maxmemory", "0")
	f.must(must(l.Lock(f.withTimeout(hang), "m"))(f).Unlock(f.withTimeout(hang)))
	if !redistest.Until(func() bool { return state() == redlockinfo.StateVoting }) {
		t.Errorf("after a lock the master is %s", state())
	}
}

// H50: one server under two names has one vote, and the error says why.
func TestSameServerTwiceHasOneVote(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 2)
	f.urls = append(f.urls, "unix://"+f.servers[0].Unix())
	l := f.locker()
	err := admin.Of(l).Admit(f.withTimeout(4 * time.Second)) // it tries the third master until its context ends
	if err == nil || !strings.Contains(err.Error(), "same server") {
		t.Errorf("Admit: %v, want the duplicate named", err)
	}
	lock := must(l.Lock(f.withTimeout(hang), "n"))(f) // two different servers are a majority of three
	f.wantHeld(lock, 2)
	f.noError(lock.Unlock(f.withTimeout(hang)))
	f.kill(1)
	f.awaitState(l, 1, "down")
	if _, err := l.TryLock(f.withTimeout(hang), "n"); !errors.Is(err, redlock.ErrNoQuorum) ||
		!strings.Contains(err.Error(), "same server") {
		t.Errorf("one server with two names granted a majority: %v", err)
	}
}
