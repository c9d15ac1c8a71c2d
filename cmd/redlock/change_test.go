//go:build unix

package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock"
)

// The clients' configuration file works for all commands during a change of the masters.
func TestAllCommandsGoByAChangeOfTheMasters(t *testing.T) {
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	f := &votingDeployment{newDeployment(t, 5, redisproc.Config{}), program, ""}
	call(t, exitDone, "3 of 3 vote", append([]string{"admit"}, f.urls[:3]...)...)
	f.config = setText(t, f.urls)
	text, err := json.Marshal(redlock.Configuration{Epoch: 1, Masters: f.urls[:3], Next: f.urls})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f.start("admit", "--force", "--yes").ends(0, "5 of 5 vote")
	holder := f.start("run", "--owner", "holder", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	holder.hear("have it")
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, `held by "holder"`)
	f.start("who", "a").ends(0, "on 5 of 5 masters")
	f.start("ls").ends(0, "a\n")
	f.start("status").ends(0, "5 of 5 vote")
	// A majority of one set holds by itself, for a client that has not noticed the change yet, or is ahead of it.
	for i := 2; i < 5; i++ {
		f.do(i, "HSET", "redlock:{b}", "x:1:y", 1)
	}
	for i := 1; i < 3; i++ {
		f.do(i, "HSET", "redlock:{c}", "x:1:y", 1)
	}
	f.do(0, "HSET", "redlock:{d}", "x:1:y", 1)
	f.do(4, "HSET", "redlock:{d}", "x:1:y", 1)
	f.start("ls").ends(0, "a\nb\nc\n")
	f.start("release", "--force", "--yes", "a").ends(0, "released on ")
	holder.ends(exitRunLost, "the lock was lost")
}
