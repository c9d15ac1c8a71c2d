package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/examples/internal/testmasters"
)

// The program acquires a lock, and releases it.
func TestProgramLocks(t *testing.T) {
	_, urls := testmasters.Start(t, 5)
	args := append([]string{"run", "."}, urls...)
	locker := testmasters.Locker(t, urls)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "locked; each write carries the token ") ||
		strings.Count(string(out), "\n") != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	if h, err := locker.Inspect(ctx, "orders:42"); err != nil || h.ID != "" {
		t.Errorf("after the program has ended, the name is still held by %q (%v)", h.ID, err)
	}
}
