package main

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/admin"
)

// A changing deployment has three old masters and three new ones, which vote, and files of epoch 1.
type changing struct {
	*deployment
	dir   string
	pools []*pool.Pool // of the clients
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	f := &changing{newDeployment(t, 6, redisproc.Config{}), t.TempDir(), nil}
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit"}, f.urls[:3]...)...)
	for _, u := range f.urls[3:] {
		call(t, exitDone, "1 of 1 masters vote", "admit", u)
	}
	return f
}

// joint returns the configuration from the old masters to the next ones.
func (f *changing) joint(epoch int64, next ...int) redlock.Configuration {
	c := redlock.Configuration{Epoch: epoch, Masters: f.urls[:3]}
	for _, i := range next {
		c.Next = append(c.Next, f.urls[i])
	}
	return c
}

// file writes a file of --config, and returns its path.
func (f *changing) file(name string, c redlock.Configuration) string {
	path := filepath.Join(f.dir, name)
	writeJSON(f.t, path, c)
	return path
}

// client returns a Locker that uses the old masters. urls replace their URLs.
func (f *changing) client(label string, urls []string, opts ...redlock.Option) *redlock.Locker {
	f.t.Helper()
	p, err := pool.Open(urls)
	if err != nil {
		f.t.Fatal(err)
	}
	f.pools = append(f.pools, p)
	return f.clientOf(p, label, opts...)
}

// use makes l use c.
func (f *changing) use(l *redlock.Locker, c redlock.Configuration) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), hang)
	defer cancel()
	if err := admin.Of(l).Reconfigure(ctx, c); err != nil {
		f.t.Fatal(err)
	}
}

// without runs the command, and fails if the output contains text.
func without(t *testing.T, text string, args ...string) {
	t.Helper()
	if _, said := command(args...); strings.Contains(said, text) {
		t.Errorf("%q printed %q:\n%s", args, text, said)
	}
}

// H164: a typing error in the file of a change is corrected in a second file of the same epoch. A client that uses the
// first file never uses the second. So no command says that it does, and --raise is refused. The advice, followed
// literally, cancels the change while the client holds a lock, and the next change begins with the next epoch.
func TestCorrectedFileOfTheSameEpoch(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	l := f.client("web-1", f.urls[:3])
	held, err := l.TryLock(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	first, second := f.file("first.json", f.joint(1, 0, 1, 3)), f.file("second.json", f.joint(1, 0, 1, 4))
	call(t, exitDone, "next  every client uses this file; not yet: web-1 (epoch 0)", "set", first)
	call(t, exitDone, "locks can be acquired: yes", "check", "--config", first) // the change has not begun
	f.use(l, f.joint(1, 0, 1, 3))
	call(t, exitDone, "done  every client uses this file", "set", first)
	call(t, exitDone, "locks can be acquired: yes", "check", "--config", first)
	call(t, exitDone, "3 of 3 old masters vote", "status", "--config", first)

	const who = "web-1 (epoch 1 with another list: "
	advice := "`redlock set --abort " + second + "`"
	call(t, exitDone, "next  clients cannot use this file: "+who, "set", second)
	call(t, exitDone, `"late":["`+who, "set", "--json", second)
	without(t, "every client uses this file", "set", second)
	call(t, exitDanger, "nothing was changed: "+who, "set", "--raise", "--yes", second)
	call(t, exitDanger, advice, "set", "--raise", "--yes", second)
	call(t, exitDanger, "deployment: failure: clients\n    "+who, "check", "--config", second)
	call(t, exitDanger, "    fix: "+advice, "check", "--config", second)
	call(t, exitDanger, `"about":"clients"`, "check", "--json", "--config", second)
	call(t, exitDanger, advice, "status", "--config", second)
	call(t, exitDanger, "web-1 (epoch 1): this list has only epoch 0, and no client goes back",
		append([]string{"check"}, f.urls[:3]...)...) // a command without a file
	f.page(second, "Locks can be acquired: 3 of 3 old masters vote, 2 are needed, so 1 of them may fail. deployment: "+who)
	call(t, exitDone, "0 of 3 masters refuse clients", "set", first) // nothing was written

	call(t, exitDone, "epoch 2: the old masters act without the next ones", "set", "--yes", "--abort", second)
	ownAccord := func() bool { // until its next heartbeat, check reports the client: its step begins with waiting for that
		code, said := command(append([]string{"check"}, f.urls[:3]...)...)
		if strings.Contains(said, "refuses this epoch") && !strings.Contains(said, "fix: wait 10 s, since clients") {
			t.Errorf("check does not say that the client changes by itself:\n%s", said)
		}
		return code == exitDone
	}
	if !redistest.Until(ownAccord) {
		t.Error("check still finds a fault after the change was cancelled")
	}
	if c := admin.Of(l).Configuration()[0]; c.Epoch != 2 {
		t.Fatalf("the client uses %+v, want epoch 2", c)
	}
	f.use(l, f.joint(3, 0, 1, 4))
	third := f.file("third.json", f.joint(3, 0, 1, 4))
	call(t, exitDone, "3 of 3 masters refuse clients", "set", "--raise", "--yes", third)
	if err := held.Unlock(t.Context()); err != nil {
		t.Errorf("the lock was lost: %v", err)
	}
}

// page waits until redlock web shows the verdict for a file.
func (f *changing) page(path, verdict string) {
	f.t.Helper()
	c, err := configfile.Read(path)
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := new(deploymentFlags).open(c, observer)
	if err != nil {
		f.t.Fatal(err)
	}
	defer l.close()
	page := newWebLooker(f.t.Context(), l)
	if !redistest.Until(func() bool { return strings.Contains(string(page.state("")), verdict) }) {
		f.t.Errorf("the page does not show %q: %s", verdict, page.state(""))
	}
}

// H164: with --force, the command says which clients lose their locks. Afterwards these clients are reported.
func TestForcedRaiseSaysWhatEnds(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	other, late := f.client("other", f.urls[:3]), f.client("late", f.urls[:3])
	f.use(other, f.joint(1, 0, 1, 3))
	path := f.file("second.json", f.joint(1, 0, 1, 4))
	call(t, exitDanger, "nothing was changed: other (", "set", "--raise", "--yes", path)
	call(t, exitDone, "immediately; clients that do not use this file: late (epoch 0), other (epoch 1 with another list: ",
		"set", "--raise", "--yes", "--force", path)
	call(t, exitDone, "done  every client uses this file, or is refused: late (epoch 0), other (epoch 1", "set", path)
	call(t, exitDanger, "late (epoch 0): a majority of the masters refuses this epoch", "check", "--config", path)
	if _, err := late.TryLock(t.Context(), "x"); err == nil {
		t.Error("a client with an earlier epoch has acquired a lock")
	}
	if _, err := other.TryLock(t.Context(), "x"); err == nil {
		t.Error("a client with another list has acquired a lock")
	}
}

// H164: a client whose connections have no name, because its user may not run CLIENT SETNAME, counts as a client that
// does not use the file, whether it is idle, holds a lock or waits. The connections of the command, which have no name
// either, do not count.
func TestNamelessClients(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	c := f.joint(1, 0, 1, 3)
	old := make([]string, 3)
	for i, u := range f.urls {
		words := []any{"SETUSER", "app", "on", ">secret"}
		for word := range strings.FieldsSeq(scripts.Prefix("redlock").Rule() + " +client|list") {
			words = append(words, word)
		}
		f.do(i, "ACL", words...)
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		parsed.User = url.UserPassword("app", "secret")
		if i < 3 {
			old[i] = parsed.String()
			c.Masters = append([]string{}, old[:i+1]...)
		}
	}
	same := f.joint(1, 0, 1, 3)
	same.Masters, same.Next = old, []string{old[0], old[1], f.urls[3]}
	named, nameless := f.file("named.json", f.joint(1, 0, 1, 3)), f.file("nameless.json", same)
	raise := func(code int, want string) {
		t.Helper()
		for _, path := range []string{named, nameless} {
			call(t, code, want, "set", "--raise", "--yes", "--timeout", "1500ms", path)
		}
	}
	l := f.client("app", old)
	const connection = `a nameless connection of user "app" from 127.0.0.1`
	call(t, exitDone, "next  every client uses this file; not yet: "+connection, "set", named)
	raise(exitDanger, "not every client uses this file yet: "+connection)
	held, err := l.TryLock(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	raise(exitDanger, "not every client uses this file yet: "+connection)
	waiter := f.client("waiter", old)
	waiting, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := waiter.Lock(waiting, "orders")
		done <- err
	}()
	(&deployment{t, f.servers[:3], old}).waiting("orders")
	raise(exitDanger, "not every client uses this file yet: "+connection)
	stop()
	if err := <-done; err == nil {
		t.Error("the waiter has acquired a lock that is held")
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Errorf("the lock was lost: %v", err)
	}
	for _, l := range []*redlock.Locker{l, waiter} {
		f.closes(l)
	}
	raise(exitDanger, "not every client uses this file yet: "+connection) // the pools are open
	for _, p := range f.pools {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	raise(exitDone, "3 of 3 masters refuse clients")
}

func (f *changing) closes(l *redlock.Locker) {
	f.t.Helper()
	if err := l.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// H164: the Lockers of one pool count as one client each. A client of another prefix, and a client that only observes,
// do not count.
func TestClientsOfOnePool(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	p, err := pool.Open(f.urls[:3])
	if err != nil {
		t.Fatal(err)
	}
	first, second := f.clientOf(p, "first"), f.clientOf(p, "second")
	stranger, err := redlock.New(p, redlock.WithPrefix("another"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.closes(stranger) }()
	page, err := pool.Open(f.urls[:3])
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	defer f.closes(f.clientOf(page, "page", observer))
	path := f.file("file.json", f.joint(1, 0, 1, 3))
	f.use(first, f.joint(1, 0, 1, 3))
	call(t, exitDone, "next  every client uses this file; not yet: second (epoch 0)\n", "set", path)
	call(t, exitDanger, "uses this file yet: second (epoch 0);", "set", "--raise", "--yes", "--timeout", "1s", path)
	f.use(second, f.joint(1, 0, 1, 3))
	call(t, exitDone, "3 of 3 masters refuse clients", "set", "--raise", "--yes", path)
}

// H164: a client could have a majority of the masters that do not list their clients, so --raise needs --force. A file
// whose epoch is earlier than that of the deployment is refused.
func TestRaiseNeedsListsOfEnoughMasters(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	path := f.file("file.json", f.joint(1, 0, 1, 3))
	f.do(0, "ACL", "SETUSER", "default", "-client", "+client|setname")
	call(t, exitDone, "done  every client uses this file\n", "set", path)
	f.do(1, "ACL", "SETUSER", "default", "-client", "+client|setname")
	call(t, exitDone, "next  every client uses this file; the clients cannot be listed (CLIENT LIST)", "set", path)
	call(t, exitDanger, "too few old masters list their clients (CLIENT LIST): use --force if every client uses this file",
		"set", "--raise", "--yes", path)
	call(t, exitDone, "0 of 3 masters refuse", "set", path)
	call(t, exitDone, "and those that are not known, because too few masters list their clients\n",
		"set", "--raise", "--yes", "--force", path)
	call(t, exitDone, "3 of 3 masters refuse", "set", "--raise", "--yes", "--force", path)
	call(t, exitDone, "epoch 2: the old masters act without the next ones", "set", "--yes", "--abort", path)
	for _, step := range [][]string{nil, {"--yes", "--raise"}, {"--yes", "--finish"}, {"--yes", "--abort"}} {
		args := append(append([]string{"set"}, step...), path)
		call(t, exitDanger, "has epoch 1, but the masters have epoch 2", args...)
	}
}

// A client has the last file of a change too early, so it acquires nothing. The advice is not to use that file.
func TestClientAheadOfTheMasters(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	both := f.file("both.json", f.joint(1, 0, 1, 3))
	last := redlock.Configuration{Epoch: 2, Masters: []string{f.urls[0], f.urls[1], f.urls[3]}}
	early := func(label string) {
		l, err := redlock.Open(last.Masters, redlock.WithConfiguration(last), redlock.WithLabel(label))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if !redistest.Until(func() bool { return admin.Of(l).Masters()[0].State == "blocked" }) {
			t.Fatalf("the masters are %v, want blocked", admin.Of(l).Masters())
		}
	}
	early("early")
	check := func(want string) {
		t.Helper()
		call(t, exitDanger, want, "check", "--config", both)
		without(t, "use the file of these clients", "check", "--config", both)
	}
	check("warning: clients\n    early (epoch 2): no master has this epoch yet, or allows it\n")
	call(t, exitDone, "not yet: early (epoch 2)", "set", both)
	call(t, exitDone, "3 of 3 masters refuse", "set", "--raise", "--yes", "--force", both)
	check("early (epoch 2): no master has this epoch yet, or allows it\n")
	call(t, exitDone, "locks can be acquired: yes", "status", "--config", both)
	f.age(time.Minute, nil)
	call(t, exitDone, "done  redlock set --finish", "set", "--finish", "--yes", both)
	call(t, exitDanger, "early (epoch 2): this list has only epoch 1, and no client goes", "check", "--config", both)
}
