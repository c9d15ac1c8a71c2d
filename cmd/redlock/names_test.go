//go:build unix

package main

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"
)

// H111: names that begin with a dash, or contain unusual characters, are locked, printed and released unchanged. A
// name that is not valid UTF-8 is refused by every command, before anything is sent.
func TestUnusualNames(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for _, name := range []string{"-x", "--", "--force", "\u2028é{}*?", "a b\n\"c\"", "$(touch x)"} {
		p := f.start("run", "--", name, "--", "sh", "-c", `printf 'have %s\n' "$REDLOCK_NAME"; read x`)
		p.hear("have " + name)
		f.start("who", "--json", "--", name).ends(0, `"held":true`)
		list := f.start("ls", "--json", "--", name)
		list.ends(0, "")
		var found struct{ Names []held }
		if err := json.Unmarshal([]byte(list.said()), &found); err != nil || len(found.Names) != 1 ||
			found.Names[0].Name != name {
			t.Errorf("ls lists %+v, %v, want %q", found, err, name)
		}
		f.start("release", "--force", "--yes", "--", name).ends(0, "")
		p.stdin.Close()
		p.ends(exitRunLost, "")
	}
	const refused = `"\xff\xfe", is not UTF-8`
	f.start("run", "\xff\xfe", "--", "true").ends(exitRunUsage, refused)
	f.start("who", "a", "\xff\xfe").ends(exitUsage, refused)
	f.start("release", "--force", "--yes", "\xff\xfe").ends(exitUsage, refused)
	f.start("ls", "\xff\xfe").ends(exitUsage, refused)
	f.lease(0, "\xff\xfe", time.Hour)
	f.lease(1, "\xff\xfe", time.Hour)
	f.start("ls", "--json").ends(0, `"names":[]`)
	if err := exec.Command("test", "-e", "x").Run(); err == nil {
		t.Error("a name was executed")
	}
}
