package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock"
)

// The masters are changed with the commands of the documentation, in the same order. The old masters must have had
// the epoch for a minute, so the test rewrites their records as if most of that time had passed.
func TestSetChangesMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, redisproc.Config{})
	path := filepath.Join(t.TempDir(), "masters.json")
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit"}, f.urls[:3]...)...)
	call(t, exitDone, "2 of 2 masters vote", append([]string{"admit"}, f.urls[3:]...)...)
	writeJSON(t, path, redlock.Configuration{Epoch: 1, Masters: f.urls[:3], Next: f.urls})
	call(t, exitDone, "next  redlock set --raise "+path+": 0 of 3", "set", path)
	call(t, exitDanger, "a majority is needed; see redlock set --raise", "set", "--yes", "-finish", path)
	call(t, exitDone, "3 of 3 masters refuse clients", "set", "--yes", "-raise", path)
	call(t, exitDanger, "may live for another", "set", "--yes", "-finish", path)
	early := filepath.Join(t.TempDir(), "early.json") // the clients have this file, but cannot use it yet
	writeJSON(t, early, redlock.Configuration{Epoch: 2, Masters: f.urls})
	call(t, exitDanger, "redlock set: nothing was changed: the next step that is shown comes first\n", "set", "--yes",
		"-raise", early)
	f.age(59*time.Second, nil)
	call(t, exitDone, "5 of 5 next masters may act without the old ones\n  next  cp -p "+path+" ",
		"set", "--yes", "-finish", path)
	call(t, exitNoQuorum, ": the masters have changed", append([]string{"status"}, f.urls[3:]...)...)
	list := scripts.Configuration{Masters: scripts.List(f.addrs()[:3]), Next: scripts.List(f.addrs()), Epoch: 1}.Hash()
	call(t, exitDone, "max TTL 30s, epoch 1, list "+list+"\n", "status", "--config", path)
	call(t, exitDone, `"epoch":1,"list":"`+list+`"}`, "status", "--json", "--config", path)
	writeJSON(t, path, redlock.Configuration{Epoch: 2, Masters: f.urls})
	call(t, exitDone, "next  redlock set --raise "+path+": 0 of 5", "set", path)
	call(t, exitDone, "next  stop the masters that are not in the file", "set", "--yes", "-raise", path)
}

// H182: a master that has lost its data, and was admitted alone by mistake, does not vote because of a change: it may
// have forgotten a held lock. The advice is to put it into quarantine.
func TestSetRaisesNoStrayRecord(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 5, redisproc.Config{})
	path := filepath.Join(t.TempDir(), "masters.json")
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit"}, f.urls[:3]...)...)
	call(t, exitDone, "2 of 2 masters vote", append([]string{"admit"}, f.urls[3:]...)...)
	f.restart(1)
	call(t, exitDone, "1 of 1 masters vote", "admit", f.urls[1])
	writeJSON(t, path, redlock.Configuration{Epoch: 1, Masters: f.urls[:3], Next: f.urls})
	call(t, exitDone, "set --raise "+path+": 2 of 3 masters refuse", "set", "--yes", "-raise", path)
	list := scripts.Configuration{Masters: scripts.List(f.addrs()[:3]), Next: scripts.List(f.addrs()), Epoch: 1}.Hash()
	for _, want := range []string{"2 of 3 old masters vote", "max TTL 30s, epoch 1, list " + list + "\n"} {
		call(t, exitDone, want, "status", "--config", path)
	}
	call(t, exitDone, `"epoch":1,"list":"`+list+`"}`, "status", "--json", "--config", path)
	addr := f.servers[1].Addr()
	call(t, exitDanger, "replace it: `redlock quarantine --master "+addr+"`, with the URLs", "check", "--config", path)
	call(t, exitDone, "2 of 3 old masters vote", "quarantine", "--yes", "--master", addr, "--config", path)
	call(t, exitDanger, "the master is in quarantine until", "check", "--config", path)
}

// age changes the records of all masters that are not in dead, as if the epoch had been raised earlier by d.
func (f *deployment) age(d time.Duration, dead map[int]bool) {
	f.t.Helper()
	for i := range f.servers {
		if !dead[i] {
			f.edit(i, func(r *scripts.Record) { r.Raised -= d.Microseconds() })
		}
	}
}

// If an old master hangs, and the clock of another is an hour behind, no reading shows which clock is right: a jump
// forward must not end the wait for locks early. So set says what ends the wait: the third master.
func TestFinishNamesClocksThatDiffer(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	old := redistest.Shifted(t, 3, redisproc.Config{})
	for i, s := range old {
		f.servers[i], f.urls[i] = s.Server, s.URL()
	}
	call(t, exitDone, "3 of 3 masters vote", append([]string{"admit"}, f.urls[:3]...)...)
	path := f.file("1.json", f.joint(1, 0, 1, 3))
	old[1].Shift(-time.Hour)
	call(t, exitDone, "next  redlock set --finish "+path, "set", "--raise", "--yes", path)
	f.age(119*time.Second, nil)
	f.freeze(2)
	const why = "the clocks of old masters differ, and too few can be read to show which are right: start the old " +
		"masters that are down"
	call(t, exitDone, "may act without the old ones; not possible now: "+why, "set", path)
	call(t, exitDanger, why, "set", "--finish", "--yes", path)
	f.thaw(2)
	call(t, exitDone, "", "set", "--finish", "--yes", path)
}

func TestSetRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "masters.json")
	for text, want := range map[string]string{
		"{":                             "invalid configuration of masters",
		`{"epoch":1,"masters":["x"]}`:   "needs next masters",
		`{"epoch":0,"masters":["x:1"]}`: "redis://",
		`{"epoch":0,"more":1}`:          "more",
		`{"epoch":0}}`:                  "unexpected text after",
	} {
		writeFile(t, path, text)
		call(t, exitUsage, want, "set", path)
	}
	path = setText(t, []string{"redis://127.0.0.1:1"})
	for _, steps := range [][]string{{"--raise", "--finish"}, {"--raise", "--abort"}, {"--finish", "--abort"}} {
		call(t, exitUsage, "only one of --raise, --finish and --abort", append([]string{"set", "--yes", path}, steps...)...)
	}
	call(t, exitUsage, "--force needs --raise", "set", "--yes", "--finish", "--force", path)
	for _, args := range [][]string{
		{"set"}, {"set", path, path}, {"set", path + "-none"}, {"status", "-raise", "redis://x"},
	} {
		call(t, exitUsage, "", args...)
	}
}
