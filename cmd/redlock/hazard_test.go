package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// command runs the command like a shell, and returns its exit status and its output.
func command(args ...string) (code int, said string) {
	var out bytes.Buffer
	code = run(args, &out, &out)
	return code, out.String()
}

// newMasters starts n servers that no client has admitted, and returns their URLs as well.
func newMasters(t testing.TB, n int) (servers []*redisproc.Server, urls []string) {
	t.Helper()
	servers = redistest.Test(t, n, redisproc.Config{})
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	return servers, urls
}

// admitAll makes all masters vote.
func admitAll(t testing.TB, urls []string) {
	t.Helper()
	if code, said := command(append([]string{"admit"}, urls...)...); code != 0 {
		t.Fatalf("admit: exit status %d\n%s", code, said)
	}
}

// changes returns the number of changes of a server's data.
func changes(t testing.TB, s *redisproc.Server) string {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := redis.String(c.Do("INFO", "persistence"))
	_, rest, found := strings.Cut(text, "rdb_changes_since_last_save:")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, text)
	}
	n, _, _ := strings.Cut(rest, "\r")
	return n
}

// H72: the exit status of a check shows whether a majority votes.
func TestHazardCheckStatusShowsQuorum(t *testing.T) {
	t.Parallel()
	for id, c := range map[string]struct {
		admit bool
		down  int
		good  bool
	}{
		"H72 none votes":       {},
		"H72 all vote":         {admit: true, good: true},
		"H72 a minority votes": {admit: true, down: 2},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			servers, urls := newMasters(t, 3)
			if c.admit {
				admitAll(t, urls)
			}
			for _, s := range servers[:c.down] {
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if code, said := command(append([]string{"check"}, urls...)...); (code == 0) != c.good {
				t.Errorf("exit status %d; output:\n%s", code, said)
			}
		})
	}
}

// H72: commands that read write nothing, on masters that vote or on new ones, with the prefix of the deployment or a
// mistyped one. H75.
func TestHazardCommandsThatReadWriteNothing(t *testing.T) {
	t.Parallel()
	for id, verb := range map[string]string{
		"H72 check writes nothing":  "check",  // if no quorum votes
		"H72 status writes nothing": "status", // if no quorum votes
		"H72 guard writes nothing":  "guard",
		"H72 set writes nothing":    "set",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			servers, urls := newMasters(t, 3)
			args := urls
			if verb == "set" {
				args = []string{setText(t, urls)}
			}
			read := func(when string, flags ...string) {
				var before, after []string
				for _, s := range servers {
					before = append(before, changes(t, s))
				}
				command(append(append([]string{verb}, flags...), args...)...)
				for _, s := range servers {
					after = append(after, changes(t, s))
				}
				if fmt.Sprint(before) != fmt.Sprint(after) {
					t.Errorf("%s: %v changes on the masters, %v before", when, after, before)
				}
			}
			if verb != "set" { // set needs masters that vote
				read("new masters")
			}
			admitAll(t, urls)
			if verb != "status" && verb != "check" { // these acquire and release a lock of their own name there
				read("masters that vote")
			}
			read("a mistyped prefix", "-prefix", "redlokc")
		})
	}
}

// setText writes a file that names the masters.
func setText(t testing.TB, urls []string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "masters.json")
	text := fmt.Sprintf(`{"epoch": 0, "masters": ["%s"]}`, strings.Join(urls, `", "`))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
