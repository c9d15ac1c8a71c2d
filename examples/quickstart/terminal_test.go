package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// On a terminal the command moves the cursor to show the masters live; otherwise it prints lines.
func TestOnlyTerminalsAreLive(t *testing.T) {
	redistest.Need(t)
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("needs script, which starts a command on a terminal")
	}
	program := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	moves := fmt.Sprintf(up, 7)
	for _, c := range []struct {
		name string
		cmd  *exec.Cmd
		live bool
	}{
		{"terminal", exec.CommandContext(t.Context(), script, "-qec", program, "/dev/null"), true},
		{"pipe", exec.CommandContext(t.Context(), program), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.cmd.Env = append(c.cmd.Environ(), "TERM=xterm")
			out, err := c.cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if text := string(out); strings.Contains(text, moves) != c.live || !strings.Contains(text, "B holds the lock") {
				t.Errorf("live is %v in\n%q", !c.live, text)
			}
		})
	}
}
