package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/configfile"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock"
)

// records fails the test unless the record of each master contains its shard. All shards have equally many masters.
func (f *deployment) records(shards ...string) {
	f.t.Helper()
	for i := range f.urls {
		record := fmt.Sprintf("%s", f.do(i, "GET", "redlock:admission"))
		if want := " shard=" + shards[i*len(shards)/len(f.urls)] + " "; !strings.Contains(record, want) {
			f.t.Errorf("the record %[2]q of master %[1]d does not contain %[3]q", i, record, want)
		}
	}
}

// All commands support shards: a slash separates the masters of two shards. Commands that write admission records
// write the shard, or keep it.
func TestCommandsKnowShards(t *testing.T) {
	f := newDeployment(t, 6, redisproc.Config{})
	urls := slices.Concat(f.urls[:3], []string{"/"}, f.urls[3:])
	both := func(code int, want string, args ...string) {
		t.Helper()
		call(t, code, want, append(args, urls...)...)
	}
	both(exitNoQuorum, "shard 2: 0 of 3 masters vote, 2 are needed", "status")
	both(exitDone, "shard 2: 3 of 3 masters vote, 2 are needed", "admit")
	f.records("1/2", "2/2")
	both(exitDone, "locks can be acquired: yes, and one more master may fail\n", "check")
	both(exitDone, "max TTL 1m0s", "max-ttl", "--yes", "--set", "60s")
	f.records("1/2", "2/2")
	f.call(exitNoQuorum, "it has no shards, and the record of this master has shard 1 of 2", "status")
	f.call(exitNoQuorum, "it has no shards, and the record of this master has shard 1 of 2", "admit", "--timeout", "2s")
	call(t, exitNoQuorum, "it has shard 1 of 2, and the record of this master has shard 2 of 2",
		"status", f.urls[3], f.urls[4], f.urls[5], "/", f.urls[0], f.urls[1], f.urls[2])
	f.records("1/2", "2/2")

	t.Setenv(mastersVariable, strings.Join(urls, " "))
	c := configfile.New()
	c.Name(urls)
	l, err := new(deploymentFlags).open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i := range 8 { // enough names for each shard to have some
		name := fmt.Sprint("job", i)
		if _, err := l.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		call(t, exitDone, "of 3 masters", "who", name)
		call(t, exitDone, name+"\n", "ls")
		call(t, exitDone, " of 3 masters", "release", "--force", "--yes", name)
	}
	for k := range 2 {
		if keys := f.do(3*k, "KEYS", "redlock:{job*}").([]any); len(keys) == 0 || len(keys) == 8 {
			t.Errorf("shard %d has %d of 8 names, want some, but not all", k+1, len(keys))
		}
	}

	f.kill(4)
	call(t, exitDone, "shard 2: 2 of 3 masters vote", "status")
	f.kill(5)
	call(t, exitNoQuorum, "shard 1: 3 of 3 masters vote, 2 are needed", "status")
	call(t, exitNoQuorum, "shard 2 of 2: failure: quorum", "check")
}

// quarantine does not replace the records if all of them contain another shard. In that case the records must be
// deleted while no client runs. A single shard cannot be started alone.
func TestQuarantineKeepsRecordsOfAnotherShard(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 6, redisproc.Config{})
	urls := slices.Concat(f.urls[:3], []string{"/"}, f.urls[3:])
	path := filepath.Join(t.TempDir(), "shard.json")
	write := func(v any) { t.Helper(); writeJSON(t, path, v) }
	write(map[string]any{"shard": "2/3", "masters": f.urls[3:]})
	call(t, exitNoQuorum, "shard 2 of 3, where no master has voted yet", "admit", "--timeout", "2s", "--config", path)
	call(t, exitNoQuorum, "it has shard 2 of 2, and the record of this master has shard 2 of 3",
		append([]string{"admit", "--timeout", "2s"}, urls...)...)
	for i := range 3 {
		addr := strings.TrimPrefix(f.urls[3+i], "redis://")
		call(t, exitNoQuorum, "the record of this master has shard 2 of 3",
			append([]string{"quarantine", "--yes", "--master", addr}, urls...)...)
	}
	for i := range 3 {
		f.do(3+i, "DEL", "redlock:admission")
	}
	write(map[string]any{"shards": []redlock.Configuration{{Masters: f.urls[:3]}, {Masters: f.urls[3:]}}})
	call(t, exitDone, "shard 2: 3 of 3 masters vote", "admit", "--config", path)
	f.records("1/2", "2/2")

	// A change of the masters of one shard also keeps the shard.
	write(map[string]any{"shard": "1/2", "epoch": 1, "masters": f.urls[:3], "next": f.urls[:1]})
	call(t, exitDone, "3 of 3 masters refuse clients", "set", "--yes", "--raise", path)
	f.records("1/2", "2/2")
	for _, wrong := range []map[string]any{
		{"shards": []redlock.Configuration{{Masters: f.urls[:3]}}}, {"shard": "two", "masters": f.urls},
		{"shards": []redlock.Configuration{{Masters: f.urls[:3]}}, "masters": f.urls},
	} {
		write(wrong)
		call(t, exitUsage, "shard", "set", path)
	}
}

// H160: admit --from changes the number of shards. It refuses while a name of any shard is locked. A master that is in
// no shard any more can be used again by a later change.
func TestAdmitChangesNumberOfShards(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 3, redisproc.Config{})
	layout := func(n int) []string { return strings.Fields(strings.Join(f.urls[:n], " / ")) }
	change := func(code int, want string, from, to int) {
		t.Helper()
		args := []string{"admit", "--yes", "--from", strings.Join(layout(from), " ")}
		call(t, code, want, append(args, layout(to)...)...)
	}
	call(t, exitDone, "shard 3: 1 of 1 masters vote", append([]string{"admit"}, layout(3)...)...)
	c := configfile.New()
	c.Name(layout(3))
	three, err := new(deploymentFlags).open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer three.close()
	for _, name := range []string{"a", "e", "h"} { // one in each shard
		k, err := three.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		change(exitDanger, fmt.Sprintf("nothing was changed: the previous layout has 1 name locked, such as %q", name), 3, 2)
		if err := k.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.records("1/3", "2/3", "3/3")
	call(t, exitDanger, "no terminal to ask for confirmation: see --yes in redlock admit --help\n",
		append([]string{"admit", "--from", strings.Join(layout(3), " ")}, layout(2)...)...)
	change(exitDone, "shard 2: 1 of 1 masters vote", 3, 2)
	f.records("1/2", "2/2", "0/2")
	// No client can have the shards in the record of a master that is in no shard.
	call(t, exitNoQuorum, "    fix: configure this client with the shards of the other clients; only redlock admit "+
		"--from changes them\n", "check", f.urls[2])
	change(exitDone, "shard 2: 1 of 1 masters vote", 3, 2) // again
	change(exitNoQuorum, "is of neither layout", 1, 3)
	f.records("1/2", "2/2", "0/2")
	change(exitDone, "shard 3: 1 of 1 masters vote", 2, 3)
	f.records("1/3", "2/3", "3/3")
}

// A new shard in the list of this client is not the first sign of a deployment: the other masters have records.
func TestNewShardIsNoNewDeployment(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 2, redisproc.Config{})
	call(t, exitDone, "1 of 1 masters vote", "admit", f.urls[0])
	const advice = "shard 1 of 2, shard 2 of 2: failure: quorum\n    0 of 1 masters vote, 1 are needed\n    risk: no " +
		"lock can be acquired\n    fix: follow the advice for the masters below\n"
	call(t, exitNoQuorum, advice, "check", f.urls[0], "/", f.urls[1])
}
