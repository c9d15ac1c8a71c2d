//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Without a terminal, release needs --yes, and may be given the id of the grant.
func TestReleaseInScripts(t *testing.T) {
	f := newVotingDeployment(t)
	f.start("release", "a").ends(exitUsage, "--force is wanted")
	f.start("release", "--force", "a").ends(exitUsage, "no terminal to ask in")
	f.start("release", "--force").ends(exitUsage, "the name of one lock is wanted")
	f.start("release", "--force", "--yes", "a").ends(exitDanger, `no client holds "a"`)
	f.hold("a", "b")
	f.start("release", "--force", "--yes", "--grant", "x:1:y", "a").ends(exitDanger, "held by another grant")
	who := f.start("who", "--json", "a")
	who.ends(0, "")
	var seen struct{ Grant string }
	if err := json.Unmarshal([]byte(who.said()), &seen); err != nil || seen.Grant == "" {
		t.Fatalf("%v: %s", err, who.said())
	}
	p := f.start("release", "--force", "--yes", "--json", "--grant", seen.Grant, "a")
	p.ends(exitDone, `"released":3`)
	if !strings.HasPrefix(p.said(), "{") || strings.Count(p.said(), "\n") != 1 {
		t.Errorf("output:\n%s", p.said())
	}
	f.start("ls").ends(0, "b\n")
	for _, s := range f.servers[:2] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	f.start("release", "--force", "--yes", "b").ends(exitNoQuorum, "connection refused")
}
