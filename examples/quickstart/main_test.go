package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// The demonstration runs to its end, both on servers and on masters in memory.
func TestDemonstration(t *testing.T) {
	for what, bring := range map[string]func(context.Context, int) (*deployment, error){
		"the masters that it chooses": bring,
		"in memory":                   func(_ context.Context, n int) (*deployment, error) { return inMemory(n) },
	} {
		t.Run(what, func(t *testing.T) {
			if what != "in memory" {
				redistest.Need(t) // without Redis servers the demonstration would fall back to masters in memory
			}
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out, screen strings.Builder
			p, view := &picture{}, &live{out: &screen}
			each := func(f frame) { p.add(f); view.show(f) }
			if err := demonstrateOn(ctx, func(s string) { out.WriteString(s + "\n") }, each, p, bring); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			drawn(t, p, screen.String())
			rest := out.String()
			for _, line := range []string{"A holds", "B waits", "are killed", "still holds the lock (true)", "quarantine",
				"hang", "A learns of the loss in time", "lost", "continue", "program B holds the lock"} {
				_, after, found := strings.Cut(rest, line)
				if !found {
					t.Fatalf("%q is missing or out of order:\n%s", line, &out)
				}
				rest = after
			}
		})
	}
}

// drawn checks the picture and the live view: they show each state of a master, and both holders.
func drawn(t *testing.T, p *picture, screen string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lock.svg")
	if err := p.write(file); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{">killed<", ">hangs<", `class="quarantine"`, ">lock of A<", ">lock of B<",
		"A learns of the loss"} {
		if !strings.Contains(string(svg), part) {
			t.Errorf("%q is missing in the picture", part)
		}
	}
	for _, part := range []string{"master 5", votes, killed, hangs, quarantine, "A holds", "B holds", "nobody"} {
		if !strings.Contains(screen, part) {
			t.Errorf("%q is missing in the live view", part)
		}
	}
}
