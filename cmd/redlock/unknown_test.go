//go:build unix

package main

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// pausedTTL is the TTL of the lock of a paused holder, and pausedBound is shorter than its validity.
const (
	pausedTTL   = 30 * time.Second
	pausedBound = 25 * time.Second
)

// A paused holder is a client whose process was stopped. It holds its lock until the end of its validity, without
// extending it.
type paused struct {
	names []string
	until time.Time // the lock is valid until then, at least
}

// pause starts a client that locks the names, and stops its process.
func (f *votingDeployment) pause(names ...string) paused {
	f.t.Helper()
	args := append([]string{"--label", "pay", "--ttl", pausedTTL.String()}, names...)
	began := time.Now()
	holder := f.start("run", append(args, "--", "sh", "-c", "echo have it; exec sleep 600")...)
	holder.hear("have it")
	for _, name := range names {
		if !redistest.Until(func() bool {
			_, said := command("who", "--config", f.config, name)
			return strings.Contains(said, fmt.Sprintf("on %[1]d of %[1]d masters", len(f.urls)))
		}) {
			f.t.Fatalf("the lock of %s is not on all masters", name)
		}
	}
	holder.signal(syscall.SIGSTOP)
	return paused{names, began.Add(pausedBound)}
}

// forget restarts servers without their data.
func (f *votingDeployment) forget(which ...int) {
	f.t.Helper()
	f.kill(which...)
	f.restart(which...)
}

// H163: three masters restart empty, and two still have the lease of a paused holder. No command says that the name is
// free, and none gives it away unless an operator has seen the lease and insists.
func TestQuarantineMayHideAHolder(t *testing.T) {
	t.Parallel()
	d := newAdmitted(t, 5)
	f := &votingDeployment{d, built(t), setText(t, d.urls)}
	f.pause("pay")
	f.forget(0, 1, 2)
	const lease = "2 of 5 masters have it (pay, "
	const doubt = "s left); 3 do not vote and may have forgotten it"
	for _, c := range []struct {
		status int
		args   []string
	}{
		{exitDanger, []string{"who", "pay"}},
		{exitNoQuorum, []string{"release", "--force", "--yes", "pay"}},
		{exitNoQuorum, []string{"admit", "--force"}},
	} {
		code, said := command(append([]string{c.args[0], "--config", f.config}, c.args[1:]...)...)
		if code != c.status || !strings.Contains(said, lease) || !strings.Contains(said, doubt) ||
			strings.Contains(said, "no client holds") {
			t.Errorf("%q ended with %d, want %d, and printed\n%s", c.args, code, c.status, said)
		}
	}
	call(t, exitDanger, "it is unknown whether a client holds it: 3 do not vote", "who", "--config", f.config, "other")
	call(t, exitDanger, `"held":false,"kept":false,"free":false`, "who", "--json", "--config", f.config, "pay")
	for args, want := range map[string][]string{
		"ls": {"\npay\n", "3 of 5 masters do not vote, and may have forgotten names: " + f.servers[0].Addr(),
			"it is unknown whether clients hold 1 of the listed names"},
		"ls --json": {`"complete":false`, `{"name":"pay","on":2,"unknown":true}`},
		"ls other":  {"do not vote, and may have forgotten"},
	} {
		code, said := command(append(strings.Fields(args), "--config", f.config)...)
		for _, text := range want {
			if code != exitDanger || !strings.Contains("\n"+said, text) {
				t.Errorf("%s ended with %d, and printed\n%swant %q", args, code, said, text)
			}
		}
	}
	page := f.looker()
	if !redistest.Until(func() bool {
		return bytes.Contains(page.state(""), []byte(`"partial":[{"lease":`)) &&
			bytes.Contains(page.state(""), []byte(`"label":"pay","left_ms":`))
	}) {
		t.Errorf("the page does not show the lease: %s", page.state(""))
	}
	if code, said := command("admit", "--config", f.config); code == exitDone || strings.Contains(said, "--force") ||
		!strings.Contains(said, "wait for their quarantine to end") {
		t.Errorf("admit ended with %d, and printed\n%s", code, said)
	}
}

// H163: admit lists leases and clients, and asks, even if a master has no admission record, as after FLUSHALL or in the
// recovery from lost masters.
func TestAdmitListsLeases(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.hold("pay")
	f.all("DEL", "redlock:admission")
	code, said := command("admit", "--config", f.config)
	if code == exitDone || !strings.Contains(said, f.servers[2].Addr()+" would vote immediately: its state is ") ||
		!strings.Contains(said, `"pay": held by "web-1"`) ||
		!strings.Contains(said, "no terminal to ask for confirmation") || strings.Contains(said, "use --yes") {
		t.Errorf("admit ended with code %d, and printed\n%s", code, said)
	}
	f = newVotingDeployment(t)
	f.pause("pay")
	f.locker()
	f.all("FLUSHALL")
	code, said = command("admit", "--config", f.config)
	if code == exitDone || !strings.Contains(said, "clients: pay, web-1") {
		t.Errorf("admit beside a paused client ended with code %d, and printed\n%s", code, said)
	}
	f.all("ACL", "SETUSER", "default", "-client|list")
	code, said = command("admit", "--config", f.config)
	if code == exitDone || !strings.Contains(said, "clients: none is known; CLIENT LIST failed on "+f.servers[0].Addr()) {
		t.Errorf("admit beside a paused client that it cannot see ended with code %d, and printed\n%s", code, said)
	}
}
