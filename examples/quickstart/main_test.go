package main

import (
	"context"
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
			var out strings.Builder
			if err := demonstrateOn(ctx, &out, bring); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
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
