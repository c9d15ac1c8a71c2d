package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The program in the README is this one, to the letter.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```go\n" + strings.TrimSpace(string(program)) + "\n```"; !strings.Contains(string(readme), want) {
		t.Error("the program in README.md is not examples/quickstart/main.go")
	}
}

func TestProgramLocks(t *testing.T) {
	servers := redistest.Test(t, 5, redisproc.Config{})
	args := []string{"run", "."}
	for _, s := range servers {
		args = append(args, s.URL())
	}
	masters, err := pool.Dial(args[2:])
	if err != nil {
		t.Fatal(err)
	}
	defer masters.Close()
	locker, err := redlock.New(masters)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer locker.Close(ctx)
	if err := locker.AdmitNow(ctx); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "mine; each write carries the token ") || strings.Count(string(out), "\n") != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if h, err := locker.Inspect(ctx, "orders:42"); err != nil || h.ID != "" {
		t.Errorf("afterwards the name is held by %q (%v)", h.ID, err)
	}
}
