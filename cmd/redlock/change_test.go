//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// During a change of the masters, all commands work with the clients' configuration file.
func TestCommandsFollowChangeOfMasters(t *testing.T) {
	t.Parallel()
	f := &votingDeployment{newDeployment(t, 5, redisproc.Config{}), built(t), ""}
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit"}, f.urls[:3]...)...)
	f.config = setText(t, f.urls)
	writeJSON(t, f.config, redlock.Configuration{Epoch: 1, Masters: f.urls[:3], Next: f.urls})
	f.start("admit", "--force", "--yes").ends(0, "5 of 5 next masters vote")
	holder := f.start("run", "--label", "holder", "a", "--", "sh", "-c", "echo have it; read x; exit 0")
	holder.hear("have it")
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, `held by "holder"`)
	f.start("who", "a").ends(0, "on 5 of 5 masters")
	f.start("ls").ends(0, "a\n")
	f.start("status").ends(0, "5 of 5 next masters vote")
	// ls also lists names that a majority of only one set has: the epoch of their holder may be earlier or later than that
	// of the other clients.
	for i := 2; i < 5; i++ {
		f.lease(i, "b", time.Hour)
	}
	for i := 1; i < 3; i++ {
		f.lease(i, "c", time.Hour)
	}
	f.lease(0, "d", time.Hour)
	f.lease(4, "d", time.Hour)
	f.start("ls").ends(0, "a\nb\nc\n")
	f.start("release", "--force", "--yes", "a").ends(0, "released on ")
	holder.ends(exitRunLost, "the lock was lost")
}

// If a client's list is wrong or out of date, the advice is to correct the list, and not to start a master that was
// removed.
func TestWrongListIsOneFinding(t *testing.T) {
	t.Parallel()
	f := newAdmitted(t, 5)
	other := newDeployment(t, 1, redisproc.Config{})
	fresh, removed := other.urls[0], "redis://127.0.0.1:1"
	for _, x := range []string{fresh, removed} {
		wrong := append([]string{x}, f.urls[1:]...)
		f.oneFinding(wrong, "failure: list\n", "fix: correct the list of this client",
			"risk: it has no vote, so no lock can be acquired\n",
			"only this client has ["+strings.TrimPrefix(x, "redis://")+"]",
			"only the record has ["+f.servers[0].Addr()+"]")
		call(t, exitNoQuorum, "nothing was changed: ", "set", setText(t, wrong))
	}
	for verb, want := range map[string]string{
		"who": "\"n\": it is unknown whether a client holds it: 1 does not vote and may have forgotten it\n",
		"ls":  "1 of 1 masters do not vote, and may have forgotten names: " + f.servers[0].Addr(),
	} {
		_, said := command(append([]string{verb, f.urls[0]}, map[string][]string{"who": {"n"}}[verb]...)...)
		wrong := "redlock " + verb + ": " + f.servers[0].Addr() + ": redlock: master list mismatch: the list of this client "
		if !strings.Contains(said, want) || !strings.Contains(said, wrong) {
			t.Errorf("%s with a wrong list printed\n%swant %q and %q", verb, said, want, wrong)
		}
	}
	aliases := slices.Clone(f.urls) // other addresses of the same servers: no record names one of this list
	for i, url := range aliases {
		aliases[i] = strings.Replace(url, "127.0.0.1", "localhost", 1)
	}
	f.oneFinding(aliases, "failure: list\n", "fix: correct the list of this client", "only this client has [localhost:")
	for i := range f.urls[1:] { // as after a change that has replaced a master that was down
		f.edit(i+1, func(r *scripts.Record) {
			r.Masters, r.Epoch, r.Final = strings.ReplaceAll(r.Masters, f.servers[0].Addr(), other.servers[0].Addr()), 2, 2
		})
	}
	if err := f.servers[0].Stop(); err != nil {
		t.Fatal(err)
	}
	f.oneFinding(f.urls, "failure: list\n", "fix: use the file of epoch 2")
}

// oneFinding waits until check with these URLs prints exactly one finding, and all texts in want.
func (f *deployment) oneFinding(urls []string, want ...string) {
	f.t.Helper()
	said := ""
	if !redistest.Until(func() bool {
		var code int
		code, said = command(append([]string{"check"}, urls...)...)
		lacking := slices.DeleteFunc(slices.Clone(want), func(text string) bool { return strings.Contains(said, text) })
		return code == exitNoQuorum && strings.Count(said, "fix: ") == 1 && len(lacking) == 0
	}) {
		f.t.Errorf("check does not print exactly one finding with %q:\n%s", want, said)
	}
}
