package scripts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
)

// ofConnections lists rights that connections need in addition to those of the scripts: for the handshake, the
// calls, and subscriptions.
var ofConnections = []string{"info", "evalsha", "eval", "script|load", "time", "subscribe", "unsubscribe", "ping"}

func TestRightsCoverScriptCommands(t *testing.T) {
	used := slices.Clone(ofConnections)
	call := regexp.MustCompile(`\bp?call\(\s*['"]([A-Za-z]+)['"]`)
	for _, s := range scripts.All {
		if strings.Count(s.Text, "call(") != len(call.FindAllString(s.Text, -1)) {
			t.Errorf("%s calls a command whose name is not a literal", s.Name)
		}
		for _, found := range call.FindAllStringSubmatch(s.Text, -1) {
			used = append(used, strings.ToLower(found[1]))
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	used = slices.DeleteFunc(used, func(name string) bool { return name == "cluster" }) // for buckets: docs/guide.md
	var listed []string
	for _, r := range scripts.Rights {
		listed = append(listed, r.Rule)
	}
	slices.Sort(listed)
	if !slices.Equal(used, listed) {
		t.Errorf("the used rights are   %q\nbut the listed ones are %q", used, listed)
	}
}

// The rights that these files list equal those of package scripts.
func TestDocumentedRightsMatchList(t *testing.T) {
	for file, prefix := range map[string]scripts.Prefix{"../../docs/run.md": "redlock",
		"../../pool/doc.go": "prefix"} {
		text := must.Get(os.ReadFile(file))(t)
		plain := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", " ")), " ")
		if !strings.Contains(plain, prefix.Rule()) {
			t.Errorf("%s does not contain: %s", file, prefix.Rule())
		}
	}
}

// A probe is denied if and only if the right is missing. Probes change no data.
func TestProbesReportMissingRights(t *testing.T) {
	server := redistest.Test(t, 1, redisproc.Config{})[0]
	admin := redistest.Dial(t, server)
	do := func(c redis.Conn, cmd string, args ...any) error {
		t.Helper()
		_, err := c.Do(cmd, args...)
		return err
	}
	const p = scripts.Prefix("redlock")
	grant := func(rules ...string) {
		t.Helper()
		args := []any{"SETUSER", "lock", "reset", "on", ">pw"}
		for _, r := range rules {
			args = append(args, r)
		}
		must.Do(t, do(admin, "ACL", args...))
	}
	all := strings.Fields(p.Rule())
	for _, r := range append([]scripts.Right{{Rule: "nothing"}}, scripts.Rights...) {
		grant(slices.DeleteFunc(slices.Clone(all), func(word string) bool { return word == "+"+r.Rule })...)
		user := redistest.Dial(t, server)
		must.Do(t, do(user, "AUTH", "lock", "pw"))
		for _, tried := range scripts.Rights {
			words := tried.Probe(p)
			err := do(user, words[0], redis.Args{}.AddFlat(words[1:])...)
			denied := err != nil && strings.HasPrefix(err.Error(), "NOPERM")
			if denied != (tried.Rule == r.Rule) {
				t.Errorf("without %s the probe of %s returned %v", r.Rule, tried.Rule, err)
			}
		}
		_ = user.Close()
	}
	grant(append(slices.Clone(all), "resetkeys", "~other:*")...)
	user := redistest.Dial(t, server)
	must.Do(t, do(user, "AUTH", "lock", "pw"))
	for _, r := range scripts.Rights {
		words := r.Probe(p)
		err := do(user, words[0], redis.Args{}.AddFlat(words[1:])...)
		if strings.HasSuffix(words[0], "GET") && (err == nil ||
			!strings.HasPrefix(err.Error(), "NOPERM")) {
			t.Errorf("the probe of %s for a key of another prefix returned %v", r.Rule, err)
		}
	}
	if n, err := redis.Int(admin.Do("DBSIZE")); n != 0 || err != nil {
		t.Errorf("the probes left %d keys, %v", n, err)
	}
}

// The calls of Probes change nothing, and cover the scripts of all kinds of calls.
func TestProbesOfScriptsChangeNothing(t *testing.T) {
	server := redistest.Test(t, 1, redisproc.Config{})[0]
	c := redistest.Dial(t, server)
	ran := map[string]bool{}
	for _, call := range scripts.Probes("redlock") {
		words, _ := frame.Next(call.Append(nil, "-", true))
		if _, err := c.Do(words[0], redis.Args{}.AddFlat(words[1:])...); err != nil {
			t.Errorf("%s returned %v", call.Script.Name, err)
		}
		ran[call.Script.Name] = true
	}
	for _, s := range scripts.All {
		if !ran[s.Name] {
			t.Errorf("no probe runs %s", s.Name)
		}
	}
	if n, err := redis.Int(c.Do("DBSIZE")); n != 0 || err != nil {
		t.Errorf("the probes left %d keys, %v", n, err)
	}
}
