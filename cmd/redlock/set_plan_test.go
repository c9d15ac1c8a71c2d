//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock"
)

// The plan names the next command with the file that it was given. An operator who runs what "next" says, each line
// twice, and first in the wrong order, completes a change; the previous file stays beside the present one. The added
// masters, admitted with the default, get the max TTL of the deployment.
func TestPlanCanBeFollowedLiterally(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	program := built(t)
	f := newDeployment(t, 5, redisproc.Config{})
	path := filepath.Join(t.TempDir(), "the locks' file.json")
	writeJSON(t, path, redlock.Configuration{Masters: f.urls[:3]})
	call(t, exitDone, "max TTL 1m0s", "admit", "--max-ttl", "60s", "--config", path)
	call(t, exitDone, "max TTL 30s", append([]string{"admit"}, f.urls[3:]...)...)
	sh := func(line string) (failed bool) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		t.Logf("%s\n%v\n%s", line, err, out)
		return err != nil
	}
	plan := func() string {
		var out, errs bytes.Buffer
		if code := run([]string{"set", path}, &out, &errs); code != exitDone {
			t.Fatalf("redlock set ended with %d: %s", code, errs.String())
		}
		return out.String()
	}
	_, begin, _ := strings.Cut(plan(), "to add one: ")
	begin = strings.ReplaceAll(begin, `"redis://HOST"`, fmt.Sprintf("%q, %q", f.urls[3], f.urls[4]))
	sh(begin)
	if _, last, _ := strings.Cut(plan(), "jq "); true { // too early
		last, _, _ = strings.Cut(last, ": the file")
		text, _ := os.ReadFile(path)
		_ = os.WriteFile(path+".kept", text, 0o600)
		if sh("jq "+last) || !sh("jq "+last) {
			t.Error("the file of the next epoch was written not at all, or twice")
		}
		_ = os.Rename(path+".kept", path)
	}
	for range 3 {
		_, next, found := strings.Cut(plan(), "  next  ")
		next, _, _ = strings.Cut(next, "\n")
		if next, _, _ = strings.Cut(next, ": "); !found {
			t.Fatalf("no next step in\n%s", plan())
		}
		next = strings.Replace(next, "redlock set ", "redlock set --yes ", 1)
		if strings.Contains(next, "--finish") {
			call(t, exitDone, "voting, max TTL 1m0s, epoch 1", "status", "--config", path)
			if strings.Contains(plan(), "max TTL 30s") {
				t.Errorf("an added master has another max TTL:\n%s", plan())
			}
			f.age(119*time.Second, nil)
		}
		sh(next)
		sh(next)
	}
	call(t, exitDone, "next  redlock set --raise '", "set", path)
	for file, epoch := range map[string]int64{path: 2, path + ".1": 1, path + ".0": 0} {
		c, err := configfile.Read(file)
		if err != nil || c.Epoch != epoch {
			t.Errorf("%s has %+v, %v; want epoch %d", file, c, err, epoch)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s, which may contain a password, has the mode %v, %v; want that of the first file", file, info, err)
		}
	}
}

// The masters of admit may be only the added ones of a change: then their number says nothing about the deployment.
func TestAdmitOfAddedMasters(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 2, redisproc.Config{})
	without(t, "one master: locks are as safe", "admit", f.urls[0])
	call(t, exitDone, "one master: locks are as safe", "status", f.urls[0])
	f = newDeployment(t, 2, redisproc.Config{})
	without(t, "use an odd number", append([]string{"admit"}, f.urls...)...)
	call(t, exitDone, "use an odd number", append([]string{"status"}, f.urls...)...)
}

// A file with an epoch that is too high is not raised, since all clients would be refused. The plan names the epoch.
func TestPlanOfASkippedEpoch(t *testing.T) {
	t.Parallel()
	f := newChanging(t)
	l := f.client("web-1", f.urls[:3])
	plan := func(epoch int64, want string, next ...int) {
		t.Helper()
		path := f.file(fmt.Sprint(epoch, ".json"), f.joint(epoch, next...))
		call(t, exitDone, "\n  next  "+want, "set", path)
		call(t, exitDanger, "no change skips an epoch", "set", "--raise", "--force", "--yes", path)
	}
	const from0 = ".json: the masters have epoch 0, so the next change has epoch 1"
	plan(2, "correct the epoch in "+f.dir+"/2"+from0)
	plan(3, "correct the epoch in "+f.dir+"/3"+from0, 3, 4, 5)
	if _, err := l.TryLock(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
	first := f.file("1.json", f.joint(1, 3, 4, 5))
	call(t, exitDone, "", "set", "--raise", "--force", "--yes", first)
	plan(3, "use the file of epoch 1, whose change is not complete", 3, 4, 5)
	call(t, exitDone, "next  redlock set --finish "+first, "set", first)

	// A second operator has begun another change with the same epoch.
	second := f.file("second.json", f.joint(1, 3, 4))
	call(t, exitNoQuorum, "nothing was changed: ", "set", "--raise", "--yes", second)
	call(t, exitNoQuorum, "another change has this epoch: only the record has ["+f.servers[5].Addr(), "check", "--config",
		second)
	call(t, exitNoQuorum, "fix: use the file of epoch 1, with the masters [", "check", "--config", second)
}

// New addresses of the same servers are no new masters. Nobody is told to delete the records of servers that answer.
func TestSameServersAreNotLost(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	f.call(exitDone, "3 of 3 masters vote", "admit")
	path := filepath.Join(t.TempDir(), "masters.json")
	c := redlock.Configuration{Epoch: 1, Masters: f.urls}
	for _, s := range f.servers {
		c.Next = append(c.Next, "unix://"+s.Unix())
	}
	writeJSON(t, path, c)
	code, said := command("set", "--raise", "--force", "--yes", path)
	if code != exitNoQuorum || strings.Contains(said, "lost for good") || strings.Contains(said, "DEL ") {
		t.Errorf("set ended with %d, and printed\n%s", code, said)
	}
	call(t, exitNoQuorum, "fix: use different servers, each on its own machine; a server with a new address keeps its "+
		"name (?name=)\n", "check", "--config", path)
	f.all("CONFIG", "SET", "requirepass", "secret")
	if _, said := command("set", setText(t, f.urls)); !strings.Contains(said, "shows the next step for each\n") {
		t.Errorf("set with servers that want a password printed\n%s", said)
	}
}

// The plan repeats the flags that it was given: without them, its commands would be about another deployment.
func TestPlanRepeatsFlags(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 4, redisproc.Config{})
	path := filepath.Join(t.TempDir(), "masters.json")
	writeJSON(t, path, redlock.Configuration{Epoch: 1, Masters: f.urls[:3], Next: f.urls[1:]})
	for _, urls := range [][]string{f.urls[:3], f.urls[3:]} {
		call(t, exitDone, "masters vote", append([]string{"admit", "--prefix", "the bills"}, urls...)...)
	}
	flags := []string{"set", "--prefix", "the bills", "--yes"}
	call(t, exitDone, "\n  next  redlock set --raise --prefix 'the bills' "+path+": 0 of 3", append(flags, path)...)
	call(t, exitDone, "redlock set --finish --prefix 'the bills' "+path+": 0 of 3 next", append(flags, "--raise", path)...)
	// The old masters at the next epoch cancel the change, which has not happened yet.
	early := filepath.Join(t.TempDir(), "old.json")
	writeJSON(t, early, redlock.Configuration{Epoch: 2, Masters: f.urls[:3]})
	call(t, exitDone, "next  redlock set --abort with the file of epoch 1, if that change is to be cancelled",
		append(flags, early)...)
	call(t, exitDone, "then redlock set --raise --prefix 'the bills' "+path+", for masters",
		append(flags, "--abort", path)...)
	for _, s := range f.servers[:2] {
		_ = s.Kill()
	}
	call(t, exitNoQuorum, "redlock admit --max-ttl 30s --prefix 'the bills', with", append(flags, path)...)
	call(t, exitNoQuorum, " DEL 'the bills:admission'\n", append(flags, path)...)
}
