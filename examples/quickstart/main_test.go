package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/pool"
	"github.com/redlock-go/redlock/redlock"
)

// The demonstration runs to its end on servers, and in memory.
func TestDemonstration(t *testing.T) {
	for what, bring := range map[string]func(context.Context, int) (*fleet, error){
		"the masters that it chooses": bring,
		"in memory":                   func(_ context.Context, n int) (*fleet, error) { return inMemory(n) },
	} {
		t.Run(what, func(t *testing.T) {
			if what != "in memory" {
				redistest.Need(t) // else it chooses masters in memory
			}
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out strings.Builder
			if err := demonstrateOn(ctx, &out, bring); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			rest := out.String()
			for _, line := range []string{"A holds", "B waits", "are killed", "holds it still (true)", "quarantine", "hang",
				"A is told in time", "lost", "go on", "program B holds it"} {
				_, after, found := strings.Cut(rest, line)
				if !found {
					t.Fatalf("%q is not told, or not in its order:\n%s", line, &out)
				}
				rest = after
			}
		})
	}
}

// With the addresses of masters it takes a lock over these.
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
