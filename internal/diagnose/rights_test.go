package diagnose

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/heartbeat"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/transport"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

var commandOfACL = regexp.MustCompile("`ACL SETUSER ([^`]*)`")

// H113: all rights that a user lacks are in one command, also if the user may not run INFO or SELECT, and with them
// nothing is missing. The command revokes no right, because the user may be shared with an application.
func TestMissingRightsAreOneCommand(t *testing.T) {
	for _, c := range []struct {
		rules, path string
		durable     bool
		advice      string // of the whole command; "" for any
	}{
		{rules: "~* &* +@all -hset", advice: "lock +hset"},
		{rules: "~* &* +@all -@dangerous -@admin -@scripting"},
		{rules: "~* &* +@all -@slow"},
		{rules: "~app:* +@all -@dangerous -@admin"},
		{rules: "~* resetchannels +@all -@dangerous"},
		{rules: "~* resetchannels +@all -@fast -@write", path: "/3"},
		{rules: "-@all", path: "/3", durable: true},
	} {
		t.Run(c.rules, func(t *testing.T) {
			s := newServer(t, "--appendonly", "yes", "--appendfsync", "always")
			redistest.Do(t, s, append([]any{"ACL", "SETUSER", "lock", "on", ">pw"}, rules(c.rules)...)...)
			p := open(t, []string{"redis://lock:pw@" + s.Addr() + c.path}, patient()...)
			opts := options()
			if c.durable {
				opts.Durable = []string{s.Addr()}
			}
			steps := func() (list []string, found []redlockinfo.Finding) {
				found, err := Masters(t.Context(), p, opts)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range found {
					for _, m := range commandOfACL.FindAllStringSubmatch(f.Fix, -1) {
						list = append(list, m[1])
					}
				}
				slices.Sort(list)
				return slices.Compact(list), found
			}
			list, found := steps()
			if len(list) != 1 || c.advice != "" && list[0] != c.advice {
				t.Fatalf("Check advises %q, want one command, %q: %v", list, c.advice, found)
			}
			if strings.Contains(list[0], " -") || strings.Contains(list[0], "reset") {
				t.Errorf("the advice %q revokes rights", list[0])
			}
			redistest.Do(t, s, append([]any{"ACL", "SETUSER"}, rules(list[0])...)...)
			if list, found := steps(); len(list) > 0 || len(found) > 0 {
				t.Errorf("after the advice, Check finds %v", found)
			}
		})
	}
}

// H113: a refusal that no grant changes is reported with the words of the server: the user has the right according to
// ACL DRYRUN, or the reply denies something else, or a script is refused.
func TestRefusalsThatNoGrantChanges(t *testing.T) {
	encoder := scripts.NewEncoder(testPrefix, 0)
	k := testPrefix.Keys("x")
	inspect := encoder.Inspect(&k, 0).Script.SHA
	for _, c := range []struct {
		name, first, second, reply, what string
		dryRun                           bool // whether only ACL DRYRUN can show it
	}{
		{"a right that the user has", "HGET", "", "NOPERM this user has no permissions to run the 'hget' command",
			"it refused hget: NOPERM this user has no permissions to run the 'hget' command", true},
		{"a database", "HGET", "", "NOPERM No permissions to access database 2",
			"it refused hget: NOPERM No permissions to access database 2", false},
		{"a category", "ZADD", "", "NOPERM User app may not run commands of the category @sortedset", "it refused zadd",
			false},
		{"a key that may be used", "GETRANGE", "", "NOPERM No permissions to access a key", "it refused getrange", true},
		{"a key of another kind", "PUBLISH", "", "NOPERM the keyspace is closed", "it refused publish", false},
		{"undeclared keys", "EVALSHA", inspect, "ERR script tried accessing undeclared key",
			"it refused inspect: ERR script tried accessing undeclared key", false},
		{"INFO in scripts", "EVALSHA", heartbeat.Script.SHA, "ERR This command is not allowed from script",
			"it refused heartbeat: ERR This command is not allowed from script", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			if c.dryRun && strings.HasPrefix(s.Version(), "6.") {
				t.Skip("needs ACL DRYRUN, of Redis 7 and Valkey")
			}
			addr := redistest.Refusing(t, s.Addr(), func(words []string) string {
				if words[0] == c.first && (c.second == "" || words[1] == c.second) {
					return c.reply
				}
				return ""
			})
			p := open(t, []string{"redis://" + addr}, patient()...)
			found, err := Masters(t.Context(), p, options())
			if err != nil || len(found) != 1 {
				t.Fatalf("Check found %v, %v, want one finding", found, err)
			}
			if f := found[0]; f.About != "scripts" || !strings.HasPrefix(f.What, c.what) || f.Fix != transport.StepRefuses {
				t.Errorf("Check found %v, want %q with the step %q", f, c.what, transport.StepRefuses)
			}
		})
	}
}

// rules returns the words of text as arguments of a command.
func rules(text string) (list []any) {
	for _, w := range strings.Fields(text) {
		list = append(list, w)
	}
	return list
}
