package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// admissions returns the admission records of all masters.
func (f *deployment) admissions() (all string) {
	f.t.Helper()
	for i := range f.urls {
		text, _ := f.do(i, "GET", "redlock:admission").([]byte)
		all += string(text) + "\n"
	}
	return all
}

// H98: if an operator's list contains only three of the five masters, commands change nothing. The error says that the
// list is wrong, shows both lists, and does not advise to replace a record. The clients keep their locks.
func TestWrongListChangesNothing(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 5)
	k, before, short := f.holder("orders"), f.admissions(), f.urls[:3]
	for _, args := range [][]string{
		{"quarantine", "--yes", "--master", f.servers[0].Addr()}, {"admit", "--yes", "--force"},
		{"max-ttl", "--yes", "--set", "60s"},
		{"release", "--yes", "--force", "--masters", strings.Join(short, " "), "orders"},
		{"status"}, {"check"}, {"who", "--masters", strings.Join(short, " "), "orders"},
	} {
		if args[0] != "release" && args[0] != "who" {
			args = append(args, short...)
		}
		var out, errs bytes.Buffer
		code := run(args, &out, &errs)
		text := out.String() + errs.String()
		if code == exitDone || code == exitUsage ||
			!strings.Contains(text, "the list of this client is probably wrong: only ") ||
			strings.Contains(text, "redlock quarantine --master") ||
			!strings.Contains(text, f.servers[4].Addr()) {
			t.Errorf("%q ended with code %d, want an error about the list; it printed\n%s", args, code, text)
		}
	}
	c := &configfile.Config{Configuration: redlock.Configuration{Masters: short}, Prefix: "redlock"}
	l, err := new(deploymentFlags).open(c, observer)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	page := newWebLooker(t.Context(), l)
	if !redistest.Until(func() bool {
		return bytes.Contains(page.state(""), []byte(`{"verdict":"No lock can be acquired with this list of masters. `))
	}) {
		t.Errorf("the page does not show that the list is wrong: %s", page.state(""))
	}
	if after := f.admissions(); after != before || k.Err() != nil {
		t.Errorf("the error of the lock is %v, want none; the records are\n%swant\n%s", k.Err(), after, before)
	}
}

// While the masters are changed, the majorities of the old and of the next set are counted separately, because a
// majority of all masters together may be a majority of neither set.
func TestSetsAreCountedSeparately(t *testing.T) {
	t.Parallel()
	sets := func(states string) []masterSet {
		var all []redlockinfo.Master
		for i, state := range states {
			m := redlockinfo.Master{Addr: string(rune('a' + i)), State: "voting"}
			if state != 'v' {
				m.State, m.Err = "down", errors.New("pool: "+m.Addr+": no answer")
			}
			all = append(all, m)
		}
		return []masterSet{{"old masters", all[:3]}, {"next masters", all[2:]}}
	}
	for _, c := range []struct{ states, agreed, loses string }{
		{
			"vvvvvvv", "",
			"the master will not vote for 30s: meanwhile 2 of 3 old masters vote, 2 are needed\n" +
				"the master will not vote for 30s: meanwhile 4 of 5 next masters vote, 3 are needed",
		},
		{
			"--vvvvv",
			"redlock x: nothing was changed: 1 of 3 old masters can be read, 2 are needed; a: no answer; b: no answer",
			"the master will not vote for 30s: meanwhile 0 of 3 old masters vote, 2 are needed",
		},
		{
			"vvv--v-",
			"redlock x: nothing was changed: 2 of 5 next masters can be read, 3 are needed; d: no answer; e: no answer; " +
				"g: no answer", "the master will not vote for 30s: meanwhile 1 of 5 next masters vote, 3 are needed",
		},
	} {
		if got := fmt.Sprint(agreement(&change{command: "x"}, sets(c.states))); got != cmp.Or(c.agreed, "<nil>") {
			t.Errorf("%s: agreement returned %s\nwant %s", c.states, got, c.agreed)
		}
		if got := strings.Join(loses("c", sets(c.states)), "\n"); !strings.Contains(got, c.loses) {
			t.Errorf("%s: loses returned %s\nwant %s", c.states, got, c.loses)
		}
	}
}

// A command that may stop clients shows these clients and the consequences. Without a confirmation or --yes, it does
// nothing. A wrong record on a minority of the masters does not prevent the command.
func TestCommandsThatMayStopClientsAsk(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 5) // new masters: no confirmation is needed
	f.call(exitDone, "\nclients: no client is connected\n", "max-ttl", "--yes", "--set", "30s")
	words, restricted := []any{"SETUSER", "lock", "on", ">secret"}, []string{"max-ttl", "--yes", "--set", "30s"}
	for word := range strings.FieldsSeq(scripts.Prefix("redlock").Rule()) { // without CLIENT LIST
		words = append(words, word)
	}
	f.all("ACL", words...)
	for _, s := range f.servers {
		restricted = append(restricted, "redis://lock:secret@"+s.Addr())
	}
	call(t, exitDone, "\nclients: none is known; CLIENT LIST failed on "+strings.Join(f.addrs(), ", ")+"\n", restricted...)
	k, before := f.holder("orders"), f.admissions()
	addr := f.servers[0].Addr()
	for _, args := range [][]string{
		{"quarantine", "--master", addr}, {"max-ttl", "--set", "60s"},
		{"set", "--raise", setText(t, f.urls)},
	} {
		if args[0] != "set" {
			args = append(args, f.urls...)
		}
		call(t, exitUsage, "see --yes in redlock ", args...)
	}
	call(t, exitUsage, "see --yes in redlock ",
		"release", "--force", "--masters", strings.Join(f.urls, " "), "orders")
	if f.admissions() != before {
		t.Error("a command changed a record without a confirmation")
	}
	f.do(4, "SET", "redlock:admission", "v1 of an older program")
	f.call(exitDone, "the master will not vote for 30s: meanwhile 3 of 5 masters vote, 3 are needed\nclients: web-1\n",
		"quarantine", "--yes", "--master", addr)
	f.call(exitDanger, "no terminal to ask for confirmation", "admit", "--force")
	if k.Err() != nil {
		t.Error(k.Err())
	}
}
