package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// hang is the maximum time of operations that normally take a moment.
const hang = 60 * time.Second

// A deployment consists of some servers on which the command is run.
type deployment struct {
	t       *testing.T
	servers []*redisproc.Server
	urls    []string
}

func newDeployment(t *testing.T, n int, cfg redisproc.Config) *deployment {
	t.Helper()
	f := &deployment{t: t, servers: redistest.Test(t, n, cfg)}
	for _, s := range f.servers {
		f.urls = append(f.urls, s.URL())
	}
	return f
}

// newAdmitted returns n servers that vote.
func newAdmitted(t *testing.T, n int) *deployment {
	t.Helper()
	f := newDeployment(t, n, redisproc.Config{})
	f.call(exitDone, fmt.Sprintf("%[1]d of %[1]d masters vote", n), "admit")
	return f
}

// kill and the next methods do this to the servers with these indices. A server restarts without its data.
func (f *deployment) kill(which ...int)   { f.t.Helper(); f.each((*redisproc.Server).Kill, which) }
func (f *deployment) freeze(which ...int) { f.t.Helper(); f.each((*redisproc.Server).Pause, which) }
func (f *deployment) thaw(which ...int)   { f.t.Helper(); f.each((*redisproc.Server).Resume, which) }
func (f *deployment) restart(which ...int) {
	f.t.Helper()
	f.each(func(s *redisproc.Server) error { return s.Restart(f.t.Context()) }, which)
}

func (f *deployment) each(do func(*redisproc.Server) error, which []int) {
	f.t.Helper()
	for _, i := range which {
		if err := do(f.servers[i]); err != nil {
			f.t.Fatal(err)
		}
	}
}

// addrs returns the names of the masters.
func (f *deployment) addrs() (list []string) {
	for _, s := range f.servers {
		list = append(list, s.Addr())
	}
	return list
}

// call runs the command with all URLs after args. It ends the test unless the exit code is code and the output
// contains want.
func (f *deployment) call(code int, want string, args ...string) {
	f.t.Helper()
	call(f.t, code, want, append(args, f.urls...)...)
}

func call(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(args, &out, &errs); got != code || !strings.Contains(out.String()+errs.String(), want) {
		t.Fatalf("%q: code %d, want %d; want %q in the output\n%s%s", args, got, code, want, out.String(), errs.String())
	}
}

// command runs the command line args, and returns the exit status and the output.
func command(args ...string) (code int, said string) {
	var out bytes.Buffer
	code = run(args, &out, &out)
	return code, out.String()
}

// do sends a command to server i, and returns the reply.
func (f *deployment) do(i int, command string, args ...any) any {
	f.t.Helper()
	return redistest.Do(f.t, f.servers[i], append([]any{command}, args...)...)
}

// all sends a command to every server.
func (f *deployment) all(command string, args ...any) {
	f.t.Helper()
	for i := range f.urls {
		f.do(i, command, args...)
	}
}

// lease writes a lease that expires after left by the clock of master i, or has expired if left is not positive.
func (f *deployment) lease(i int, name string, left time.Duration) {
	f.t.Helper()
	key, fence := scripts.Prefix("redlock").Lock(name), fmt.Sprintf("%016d", 1)
	f.do(i, "HSET", key, scripts.FieldFence, fence, "x:1:y", "1 1 1 "+fence)
	f.do(i, "PEXPIRE", key, (left + scripts.FenceKept).Milliseconds())
}

// leases returns the number of leases of a name on master i that have not expired by its clock: fields of its hash
// besides the fence and the queue's.
func (f *deployment) leases(i int, name string) (n int) {
	f.t.Helper()
	key := scripts.Prefix("redlock").Lock(name)
	fields, err := redis.Strings(f.do(i, "HKEYS", key), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if f.do(i, "PTTL", key).(int64) <= scripts.FenceKept.Milliseconds() {
		return 0
	}
	for _, field := range fields {
		if field != scripts.FieldFence && field != scripts.FieldQueue {
			n++
		}
	}
	return n
}

// edit changes the admission record of master i.
func (f *deployment) edit(i int, change func(r *scripts.Record)) {
	f.t.Helper()
	text, err := redis.String(redistest.Do(f.t, f.servers[i], "GET", "redlock:admission"), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := scripts.ParseRecord(text)
	if err != nil {
		f.t.Fatal(err)
	}
	change(&r)
	redistest.Do(f.t, f.servers[i], "SET", "redlock:admission", r.String())
}

// locker returns a Locker of the deployment with the label web-1.
func (f *deployment) locker() *redlock.Locker {
	f.t.Helper()
	p, err := pool.Open(f.urls)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.clientOf(p, "web-1")
}

// clientOf returns a Locker that uses p. Both are closed at the end of the test.
func (f *deployment) clientOf(p *pool.Pool, label string, opts ...redlock.Option) *redlock.Locker {
	f.t.Helper()
	l, err := redlock.New(p, append(opts, redlock.WithLabel(label))...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _, _ = l.Close(), p.Close() })
	ctx, cancel := context.WithTimeout(f.t.Context(), hang)
	defer cancel()
	if err := l.WaitReady(ctx); err != nil {
		f.t.Fatal(err)
	}
	return l
}

// waiting waits until a client waits for a name on each master.
func (f *deployment) waiting(name string) {
	f.t.Helper()
	key := scripts.Prefix("redlock").Queue(name)
	redistest.Eventually(f.t, "a client waits", func() bool {
		return !slices.ContainsFunc(f.servers, func(s *redisproc.Server) bool {
			return redistest.Do(f.t, s, "ZCARD", key) == int64(0)
		})
	})
}

// holder returns a lock that a client of the deployment holds.
func (f *deployment) holder(name string) *redlock.Lock {
	f.t.Helper()
	k, err := f.locker().TryLock(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return k
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeJSON writes v to a file.
func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(text))
}

// setText writes a configuration file with these masters, and returns its path.
func setText(t testing.TB, urls []string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "masters.json")
	writeJSON(t, path, redlock.Configuration{Masters: urls})
	return path
}

func TestUsageErrorsSendNothing(t *testing.T) {
	t.Parallel()
	const url = "redis://127.0.0.1:1"
	for _, args := range [][]string{
		nil, {"what"}, {"status"}, {"status", "ftp://x"}, {"admit", "-max-ttl", "1ms", url}, {"admit", "-nonsense"},
		{"status", "-set", "60s", url}, {"check", "-prefix", "{", url}, {"quarantine", url},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != exitUsage || errs.Len() == 0 {
			t.Errorf("%q ended with code %d and printed %q, want code 3 and an error", args, code, errs.String())
		}
	}
}

// H72, H75: commands that only read write nothing to new masters, to masters that vote, or with a mistyped prefix.
func TestReadingCommandsWriteNothing(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	changes := func() (all []string) {
		for i := range f.urls {
			text := fmt.Sprintf("%s", f.do(i, "INFO", "persistence"))
			_, rest, _ := strings.Cut(text, "rdb_changes_since_last_save:")
			n, _, _ := strings.Cut(rest, "\r")
			all = append(all, n)
		}
		return all
	}
	read := func(when string, flags []string, verbs ...string) {
		for _, verb := range verbs {
			args := f.urls
			if verb == "set" {
				args = []string{setText(t, f.urls)}
			}
			before := changes()
			command(slices.Concat([]string{verb}, flags, args)...)
			if after := changes(); !slices.Equal(before, after) {
				t.Errorf("%s, %s: the number of changes on the masters is %v, and was %v", verb, when, after, before)
			}
		}
	}
	read("new masters", nil, "check", "status", "max-ttl") // set needs masters that vote
	f.call(exitDone, "3 of 3 masters vote", "admit")
	read("masters that vote", nil, "max-ttl", "set") // check and status may acquire and release a probe lock
	read("a mistyped prefix", []string{"-prefix", "redlokc"}, "check", "status", "max-ttl", "set")
}

// max-ttl raises the max TTL of a deployment. H72: it creates no key if there is no record, as with a mistyped prefix.
func TestMaxTTLIsRaised(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	f.call(exitNoQuorum, "0 of 3 masters agreed", "max-ttl", "--yes", "-set", "60s", "-prefix", "redlok")
	const first = "no master has a record with this prefix (--prefix): if it is wrong, correct it; if the masters are " +
		"new, and no client has run yet, run `redlock admit` with the same masters; if they have restarted, wait while a " +
		"client runs"
	f.call(exitNoQuorum, "deployment: failure: quorum\n    0 of 3 masters vote, 2 are needed\n    risk: no lock can be "+
		"acquired\n    fix: "+first+"\n", "check", "-prefix", "redlok")
	f.call(exitNoQuorum, "locks can be acquired: no\n"+first+"\n", "status", "-prefix", "redlok")
	for i := range f.urls {
		if n := f.do(i, "DBSIZE"); n != int64(0) {
			t.Errorf("master %d has %v keys, want 0", i, n)
		}
	}
	f.call(exitDone, "max TTL 30s", "admit")
	f.call(exitDanger, "`CONFIG SET repl-backlog-ttl 7200`", "max-ttl", "--yes", "-set", "2h")
	f.call(exitDone, "locks can be acquired: yes, and one more master may fail\n", "check") // nothing was written
	f.all("CONFIG", "SET", "repl-backlog-ttl", "7200")
	f.call(exitDone, "max TTL 2h0m0s", "max-ttl", "--yes", "-set", "2h")
	f.call(exitDone, "voting, max TTL 2h0m0s", "max-ttl")
	f.call(exitDanger, "it can be lowered only while no client runs", "max-ttl", "--yes", "-set", "10s")
	f.all("CONFIG", "SET", "repl-backlog-ttl", "0")
	f.kill(2)
	f.call(exitDanger, "not every master accepts TTLs up to 3h0m0s: repeat the command when all masters are up", "max-ttl",
		"--yes", "-set", "3h")
	f.restart(2)
	f.all("DEL", "redlock:admission")
	f.call(exitDone, "max TTL 10s", "admit", "-max-ttl", "10s")
	f.call(exitDone, "locks can be acquired: yes, and one more master may fail\n", "check")
	f.call(exitDone, "the deployment accepts TTLs up to 10s, but the max TTL of this client is 20s",
		"check", "-max-ttl", "20s")
	f.call(exitDone, `unknown master "nobody:1"`, "check", "-durable", "nobody:1")
}

// If a master was admitted in another deployment, this deployment cannot start. The error names the command that
// fixes this. If some masters vote, clients may hold locks that another master has lost: then admit requires --force.
func TestQuarantineReplacesAStrayRecord(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	call(t, exitDone, "1 of 1 masters vote", "admit", f.urls[0])
	addr := f.servers[0].Addr()
	f.call(exitNoQuorum, "redlock quarantine --master", "admit", "--yes", "-timeout", "500ms")
	f.call(exitNoQuorum, "no master is named", "quarantine", "--yes", "-master", "nobody:1")
	f.call(exitNoQuorum, addr, "quarantine", "--yes", "-master", addr)
	if n := f.do(1, "DBSIZE"); n != int64(0) {
		t.Errorf("another master has %v keys, want 0", n)
	}
	f.call(exitDone, "3 of 3 masters vote", "admit", "--yes")
	f.do(0, "FLUSHALL")
	f.call(exitDanger, "2 of 3 masters vote, so clients may hold locks", "admit")
	f.call(exitDone, "2 of 3 masters vote", "status")
	f.call(exitDone, "3 of 3 masters vote", "admit", "--force", "--yes")
	f.do(2, "SET", "redlock:admission", "v1 of an older program")
	f.call(exitDanger, "redlock quarantine --master", "check")
	f.call(exitDone, "quarantine, 30s left, max TTL 30s: until ", "quarantine", "--yes", "-master", f.servers[2].Addr())
}
