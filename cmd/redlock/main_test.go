package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestWrongCallsAreToldBeforeAnythingIsSent(t *testing.T) {
	for _, args := range [][]string{nil, {"what"}, {"status"}, {"status", "ftp://x"}, {"admit", "-guard", "1ms", "redis://127.0.0.1:1"}, {"admit", "-nonsense"},
		{"status", "-set", "60s", "redis://127.0.0.1:1"}, {"check", "-prefix", "{", "redis://127.0.0.1:1"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, errs.String())
		}
	}
}

func TestAdmitLetsNewMastersVote(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{})
	args := []string{"status"}
	for _, s := range servers {
		args = append(args, s.URL())
	}
	step := func(command string, code int, want string) {
		t.Helper()
		args[0] = command
		var out, errs bytes.Buffer
		if got := run(args, &out, &errs); got != code || !strings.Contains(out.String(), want) {
			t.Fatalf("%s: code %d, want %d with %q\n%s%s", command, got, code, want, out.String(), errs.String())
		}
	}
	step("status", 1, "quarantine, ")
	step("admit", 0, "3 of 3 vote")
	step("status", 0, "voting, guard time 30s")
	step("check", 0, "nothing found")
}

func TestCheckSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{Args: []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}})
	args := []string{"check", "-durable", "all"}
	for _, s := range servers {
		args = append(args, s.URL())
	}
	var out, errs bytes.Buffer
	code := run(args, &out, &errs)
	for _, want := range []string{": failure: eviction\n", "endangers: ", "to do: CONFIG SET maxmemory-policy noeviction", ": failure: persistence\n"} {
		if code != 1 || strings.Count(out.String(), want) < 3 {
			t.Errorf("code %d, want 1 with %q for each master\n%s%s", code, want, out.String(), errs.String())
		}
	}
}

func TestGuardSetsTheGuardTime(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{})
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	step := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(append(args, urls...), &out, &errs); got != code || !strings.Contains(out.String()+errs.String(), want) {
			t.Fatalf("%q: code %d, want %d with %q\n%s%s", args, got, code, want, out.String(), errs.String())
		}
	}
	step(0, "guard time 30s", "admit")
	step(0, "guard time 2h0m0s", "guard", "-set", "2h")
	step(0, "voting, guard time 2h0m0s", "guard")
	step(1, "lowered only with nobody running", "guard", "-set", "10s")
	step(0, "guard time 10s", "guard", "-set", "10s", "-lower")
	step(0, "nothing found", "check")
	step(0, "the guard time of the fleet is 10s, that of this program 20s", "check", "-guard", "20s")
	step(0, `"nobody:1" is named`, "check", "-durable", "nobody:1")
}
