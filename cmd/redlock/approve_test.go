package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
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

// H98: an operator with a list of three of the five masters changes nothing. The error says that the list is wrong,
// shows both lists, and does not suggest to replace a record. The clients go on.
func TestAWrongListChangesNothing(t *testing.T) {
	f := newDeployment(t, 5, redisproc.Config{})
	f.call(exitDone, "5 of 5 vote", "admit")
	k, before, short := f.holder("orders"), f.admissions(), f.urls[:3]
	for _, args := range [][]string{
		{"quarantine", "--yes", "--master", f.servers[0].Addr()}, {"admit", "--yes", "--force"},
		{"guard", "--yes", "--set", "60s"}, {"release", "--yes", "--force", "--masters", strings.Join(short, " "), "orders"},
		{"status"}, {"check"},
	} {
		if args[0] != "release" {
			args = append(args, short...)
		}
		var out, errs bytes.Buffer
		code := run(args, &out, &errs)
		text := out.String() + errs.String()
		if code == exitDone || code == exitUsage ||
			!strings.Contains(text, "the list of this client is probably wrong: it has epoch 0 and the masters [") ||
			strings.Contains(text, "redlock quarantine --master") ||
			!strings.Contains(text, f.servers[4].Addr()) {
			t.Errorf("%q: code %d\n%s", args, code, text)
		}
	}
	if after := f.admissions(); after != before || k.Err() != nil {
		t.Errorf("the holder: %v; records\n%sbefore\n%s", k.Err(), after, before)
	}
}

// A command that may stop clients shows them and what will happen, and does nothing without an answer or --yes. A stray
// record on a minority does not stop it.
func TestCommandsThatMayStopClientsAsk(t *testing.T) {
	f := newDeployment(t, 5, redisproc.Config{})
	f.call(exitDone, "5 of 5 vote", "admit") // new masters: no question
	k, before := f.holder("orders"), f.admissions()
	addr := f.servers[0].Addr()
	for _, args := range [][]string{
		{"quarantine", "--master", addr}, {"guard", "--set", "60s"},
		{"set", "--raise", setText(t, f.urls)},
	} {
		if args[0] != "set" {
			args = append(args, f.urls...)
		}
		call(t, exitUsage, "use --yes", args...)
	}
	call(t, exitUsage, "use --yes",
		"release", "--force", "--masters", strings.Join(f.urls, " "), "orders")
	if f.admissions() != before {
		t.Error("a command without an answer has written")
	}
	f.do(4, "SET", "redlock:admission", "v1 of an older program")
	f.call(exitDone, "it will not vote for 30s: meanwhile 3 of 5 masters vote, 3 are needed\nclients: web-1\n",
		"quarantine", "--yes", "--master", addr)
	f.call(exitDanger, "no terminal to ask for confirmation", "admit", "--force")
	if k.Err() != nil {
		t.Error(k.Err())
	}
}

// Names may follow the URLs, as they do in other commands.
func TestURLsBeforeNames(t *testing.T) {
	f := newDeployment(t, 3, redisproc.Config{})
	f.call(exitDone, "3 of 3 vote", "admit")
	f.holder("orders:1")
	call(t, exitDone, `held by "web-1"`, append(append([]string{"who"}, f.urls...), "orders:1")...)
	call(t, exitDone, "orders:1", append([]string{"ls"}, f.urls...)...)
	call(t, exitDone, "orders:1", append(append([]string{"ls"}, f.urls...), "orders:")...)
	call(t, exitUsage, "give the name of a lock", append([]string{"who"}, f.urls...)...)
}
