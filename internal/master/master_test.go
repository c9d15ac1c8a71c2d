package master_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/master"
	"github.com/redlock-go/redlock/internal/scripts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The replies are compared with a real server's in package scripts; the tests here are of what is Go's alone.

const now = int64(946684800_000_000)

func TestKeysStayThroughTheirLastMillisecond(t *testing.T) {
	var s master.State
	s.Set(now, "a", "1", 10)
	for _, c := range []struct {
		at   int64
		left int64
	}{{now, 10}, {now + 999, 10}, {now + 1000, 9}, {now + 10_000, 0}, {now + 10_999, 0}, {now + 11_000, -2}} {
		if left := s.Clone().TTL(c.at, "a"); left != c.left {
			t.Errorf("after %d us: %d ms left, want %d", c.at-now, left, c.left)
		}
	}
	if _, there := s.Get(now+11_000, "a"); there {
		t.Error("an expired key is there")
	}
	if left := s.TTL(now, "a"); left != -2 {
		t.Error("a key that was found expired is there again when the clock goes back")
	}
}

func TestHelpers(t *testing.T) {
	var s master.State
	s.Set(now, "text", "x", 0)
	s.SetHash("hash", master.Field{Name: "f", Value: "1"}, master.Field{Name: "g", Value: "2"})
	s.SetHash("none")
	s.SetOther("other")
	if got := s.Keys(now); !slices.Equal(got, []string{"hash", "other", "text"}) {
		t.Errorf("keys %q", got)
	}
	if got := s.Hash(now, "hash"); !maps.Equal(got, map[string]string{"f": "1", "g": "2"}) {
		t.Errorf("hash %v", got)
	}
	if _, ok := s.Get(now, "hash"); ok || s.Hash(now, "text") != nil || s.TTL(now, "text") != -1 {
		t.Error("types are mixed up")
	}
	if !s.Expire(now, "text", 5) || s.TTL(now, "text") != 5 || s.Expire(now, "nobody", 5) || !s.Expire(now, "text", 0) || s.Delete(now, "text") {
		t.Error("Expire misreports")
	}
	if !s.Delete(now, "other") || s.Delete(now, "other") {
		t.Error("Delete misreports")
	}
	s.Flush()
	if got := s.Keys(now); len(got) != 0 || s.String() != "" {
		t.Errorf("after Flush: %q", got)
	}
}

func TestClonesShareNothing(t *testing.T) {
	var s master.State
	s.SetHash("redlock:{a}:lock", master.Field{Name: "me:1", Value: "1"})
	s.Expire(now, "redlock:{a}:lock", 1000)
	before := s.String()
	c := s.Clone()
	if c.String() != before {
		t.Errorf("the clone is %q", c)
	}
	keys := []string{"redlock:{a}:lock", "redlock:{a}:bar", "redlock:marker"}
	c.Eval(now, master.Env{}, scripts.Extend, keys, []string{"", "me:1", "5000", "2", "0"})
	if c.String() == before || s.String() != before {
		t.Errorf("the original is %q, the clone %q", &s, c)
	}
	look := s.Look(now, "redlock:{a}:lock")
	look.Fields[0].Value = "9"
	if s.String() != before {
		t.Error("what Look returned is the state's own")
	}
	var empty master.State
	if empty.Clone().Set(now, "a", "1", 0); len(empty.Keys(now)) != 0 {
		t.Error("the clone of an empty state shares it")
	}
}

// TestEvalDependsOnItsArgumentsAlone: the same state, time and call give the same reply, messages and state.
func TestEvalDependsOnItsArgumentsAlone(t *testing.T) {
	env := master.Env{RunID: "abc", ReplID: "def"}
	lock, bar, marker := "redlock:{a}:lock", "redlock:{a}:bar", "redlock:marker"
	var s master.State
	for i, step := range []struct {
		script *scripts.Script
		keys   []string
		args   []string
		want   any
		out    []master.Message
	}{
		{scripts.Admit, []string{marker}, []string{"now", "abc/def", "", "0", "0", "0", "30000", "0"},
			[]any{int64(1), "v1 id=abc/def guard=30000 epoch=0 state=admitted", now, "abc/def"}, nil},
		{scripts.Acquire, []string{lock, bar, marker},
			[]string{"v1 id=abc/def guard=30000 epoch=0 state=admitted", "me:1", "1000", fmt.Sprint(now)},
			int64(1), nil},
		{scripts.Inspect, []string{lock, bar, marker}, nil,
			[]any{"me:1", "1", int64(1000), fmt.Sprint(now), now, "v1 id=abc/def guard=30000 epoch=0 state=admitted"}, nil},
		{scripts.Release, []string{lock, bar, "queue", "alive", marker}, []string{"", "me:1", fmt.Sprint(now)}, int64(1), []master.Message{{Channel: "redlock:{a}:free", Payload: "me:1"}}},
		{scripts.Release, []string{lock, bar, "queue", "alive", marker}, []string{"", "me:1", fmt.Sprint(now)}, int64(0), nil},
		{&scripts.Script{Name: "foreign"}, nil, nil, master.Error("NOSCRIPT No matching script. Please use EVAL."), nil},
	} {
		twin := s.Clone()
		for _, state := range []*master.State{&s, twin} {
			reply, out := state.Eval(now, env, step.script, step.keys, step.args)
			if !reflect.DeepEqual(reply, step.want) || !reflect.DeepEqual(out, step.out) {
				t.Errorf("step %d: %v, %v; want %v, %v", i, reply, out, step.want, step.out)
			}
		}
		if twin.String() != s.String() {
			t.Errorf("step %d: %q and %q", i, &s, twin)
		}
	}
}

// TestMalformedCallsAreErrors: what package scripts never encodes is an error, not a panic, and is never a grant.
func TestMalformedCallsAreErrors(t *testing.T) {
	for _, script := range scripts.All {
		for n := range 16 {
			var s master.State
			reply, _ := s.Eval(now, master.Env{}, script, []string{"lock", "bar", "marker", "queue", "alive"}[:min(n, 5)], slices.Repeat([]string{"x"}, n))
			if reply == int64(1) {
				t.Errorf("%s with %d arguments is granted", script.Name, n)
			}
			if e, ok := reply.(master.Error); ok && !strings.HasPrefix(e.Error(), "ERR ") {
				t.Errorf("%s with %d arguments: %v", script.Name, n, e)
			}
		}
	}
}
