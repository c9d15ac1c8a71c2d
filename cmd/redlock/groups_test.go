package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/redlock"
)

// records fails the test if a master's record does not contain its group of three.
func (f *deployment) records(groups ...string) {
	f.t.Helper()
	for i := range f.urls {
		record := fmt.Sprintf("%s", f.do(i, "GET", "redlock:admission"))
		if want := " group=" + groups[i/3] + " "; !strings.Contains(record, want) {
			f.t.Errorf("master %d: %q does not contain %q", i, record, want)
		}
	}
}

// All commands support groups: a slash separates the masters of two. Commands that write admission records set, or
// keep, the group.
func TestCommandsKnowGroups(t *testing.T) {
	f := newDeployment(t, 6, redisproc.Config{})
	urls := slices.Concat(f.urls[:3], []string{"/"}, f.urls[3:])
	both := func(code int, want string, args ...string) {
		t.Helper()
		call(t, code, want, append(args, urls...)...)
	}
	both(exitNoQuorum, "group 2: 0 of 3 vote, 2 are needed", "status")
	both(exitDone, "group 2: 3 of 3 vote, 2 are needed", "admit")
	f.records("1/2", "2/2")
	both(exitDone, "nothing found", "check")
	both(exitDone, "max TTL 1m0s", "guard", "--set", "60s")
	f.records("1/2", "2/2")
	f.call(exitNoQuorum, "says group 1 of 2, this client has no groups", "status")
	f.call(exitNoQuorum, "says group 1 of 2, this client has no groups", "admit", "--timeout", "2s")
	call(t, exitNoQuorum, "says group 2 of 2, this client has group 1 of 2", "status", f.urls[3], f.urls[4], f.urls[5],
		"/", f.urls[0], f.urls[1], f.urls[2])
	f.records("1/2", "2/2")

	t.Setenv(mastersVariable, strings.Join(urls, " "))
	c := &deploymentConfig{Prefix: private.DefaultPrefix, guard: private.DefaultMaxTTL}
	c.name(urls)
	l, shut, err := (&app{stdout: t.Output(), stderr: t.Output()}).open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t.Context())
	for i := range 8 { // some in each group
		name := fmt.Sprint("job", i)
		if _, err := l.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		call(t, exitDone, "of 3 masters", "who", name)
		call(t, exitDone, name+"\n", "ls")
		call(t, exitDone, " of 3 masters", "release", "--force", "--yes", name)
	}
	for k := range 2 {
		if keys := f.do(3*k, "KEYS", "redlock:{job*}:fence").([]any); len(keys) == 0 || len(keys) == 8 {
			t.Errorf("group %d has %d of 8 names", k+1, len(keys))
		}
	}

	if err := f.servers[4].Kill(); err != nil {
		t.Fatal(err)
	}
	call(t, exitDone, "group 2: 2 of 3 vote", "status")
	if err := f.servers[5].Kill(); err != nil {
		t.Fatal(err)
	}
	call(t, exitNoQuorum, "group 1: 3 of 3 vote, 2 are needed", "status")
	call(t, exitNoQuorum, "group 2 of 2: failure: quorum", "check")
}

// quarantine does not replace records if all of them have another group: that requires their deletion, with no client
// running. A group alone does not begin.
func TestQuarantineKeepsRecordsOfAnotherGroup(t *testing.T) {
	f := newDeployment(t, 6, redisproc.Config{})
	urls := slices.Concat(f.urls[:3], []string{"/"}, f.urls[3:])
	path := filepath.Join(t.TempDir(), "group.json")
	write := func(v any) {
		t.Helper()
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(map[string]any{"group": "2/3", "masters": f.urls[3:]})
	call(t, exitNoQuorum, "group 2 of 3, of which none has voted yet", "admit", "--timeout", "2s", "--config", path)
	call(t, exitNoQuorum, "says group 2 of 3, this client has group 2 of 2",
		append([]string{"admit", "--timeout", "2s"}, urls...)...)
	for i := range 3 {
		addr := strings.TrimPrefix(f.urls[3+i], "redis://")
		call(t, exitNoQuorum, "says group 2 of 3", append([]string{"quarantine", "--master", addr}, urls...)...)
	}
	for i := range 3 {
		f.do(3+i, "DEL", "redlock:admission")
	}
	write(map[string]any{"groups": []redlock.Configuration{{Masters: f.urls[:3]}, {Masters: f.urls[3:]}}})
	call(t, exitDone, "group 2: 3 of 3 vote", "admit", "--config", path)
	f.records("1/2", "2/2")

	// A change of the masters of one group also keeps the group.
	write(map[string]any{"group": "1/2", "epoch": 1, "masters": f.urls[:3], "next": f.urls[:1]})
	call(t, exitDone, "epoch 1: 3 of 3 old masters have it", "set", "--raise", path)
	f.records("1/2", "2/2")
	for _, wrong := range []map[string]any{
		{"groups": []redlock.Configuration{{Masters: f.urls[:3]}}}, {"group": "two", "masters": f.urls},
		{"groups": []redlock.Configuration{{Masters: f.urls[:3]}}, "masters": f.urls},
	} {
		write(wrong)
		call(t, exitUsage, "group", "set", path)
	}
}
