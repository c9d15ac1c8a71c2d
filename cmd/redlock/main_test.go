package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestWrongCallsAreToldBeforeAnythingIsSent(t *testing.T) {
	for _, args := range [][]string{nil, {"what"}, {"status"}, {"status", "ftp://x"}, {"admit", "-guard", "1ms", "redis://127.0.0.1:1"}, {"admit", "-nonsense"}} {
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
	step("status", 0, "voting")
}
