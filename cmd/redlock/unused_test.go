//go:build unix

package main

import (
	"testing"

	"github.com/redlock-go/redlock/internal/scripts"
)

// H185: the write with which check and the page find out whether a master accepts writes is to a key that no lock can
// have. It was that of a name, so it ended a lock of that name on all masters while its holder believed in it.
func TestChecksEndNoLock(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for _, name := range []string{
		"check of writes", "check of scripts", "check of rights", "unused", ":unused", "}:unused",
	} {
		handle := f.lock(name)
		f.start("check").ends(0, "")
		f.start("status").ends(0, "")
		f.start("who", "--json", "--", name).ends(0, `"held":true`)
		f.start("unlock", handle).ends(0, "")
		if p := scripts.Prefix("redlock"); p.Lock(name) == p.Unused() {
			t.Errorf("the lock of %q has the key of the checks", name)
		}
	}
}
