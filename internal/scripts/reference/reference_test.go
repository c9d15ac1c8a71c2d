package reference_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A test of package scripts compares the replies of this package with those of a real server. The tests here cover
// the Go code without a counterpart on the server.

const now = int64(946684800_000_000)

func TestKeysStayThroughTheirLastMillisecond(t *testing.T) {
	var s reference.State
	s.Set(now, "a", "1", 10)
	for _, c := range []struct {
		at   int64
		left int64
	}{{now, 10}, {now + 999, 10}, {now + 1000, 9}, {now + 10_000, 0}, {now + 10_999, 0}, {now + 11_000, -2}} {
		if left := s.Clone().TTL(c.at, "a"); left != c.left {
			t.Errorf("after %d us the TTL is %d ms, want %d", c.at-now, left, c.left)
		}
	}
	if _, there := s.Get(now+11_000, "a"); there {
		t.Error("an expired key exists")
	}
	if left := s.TTL(now, "a"); left != -2 {
		t.Error("a key that was found expired exists again after the clock was set back")
	}
}

func TestHelpers(t *testing.T) {
	var s reference.State
	s.Set(now, "text", "x", 0)
	s.SetHash("hash", reference.Field{Name: "f", Value: "1"}, reference.Field{Name: "g", Value: "2"})
	s.SetHash("none")
	s.SetOther("other")
	if got := s.Keys(now); !slices.Equal(got, []string{"hash", "other", "text"}) {
		t.Errorf("the keys are %q", got)
	}
	if got := s.Hash(now, "hash"); !maps.Equal(got, map[string]string{"f": "1", "g": "2"}) {
		t.Errorf("the hash is %v", got)
	}
	if _, ok := s.Get(now, "hash"); ok || s.Hash(now, "text") != nil || s.TTL(now, "text") != -1 {
		t.Error("a key was read as another type")
	}
	if !s.Expire(now, "text", 5) || s.TTL(now, "text") != 5 || s.Expire(now, "nobody", 5) || !s.Expire(now, "text",
		0) || s.Delete(now, "text") {
		t.Error("Expire or Delete returned a wrong result")
	}
	if !s.Delete(now, "other") || s.Delete(now, "other") {
		t.Error("Delete returned a wrong result")
	}
	s.Flush()
	if got := s.Keys(now); len(got) != 0 || s.String() != "" {
		t.Errorf("after Flush the keys are %q", got)
	}
}

func TestClonesShareNothing(t *testing.T) {
	var s reference.State
	s.SetHash("redlock:{a}", reference.Field{Name: "me:1", Value: scripts.LeaseText(1, now, now, now)})
	s.Expire(now, "redlock:{a}", 76_000)
	before := s.String()
	c := s.Clone()
	if c.String() != before {
		t.Errorf("the clone is %q", c)
	}
	keys := []string{"redlock:{a}", "redlock:admission"}
	c.Eval(now, reference.Env{}, scripts.Extend, keys, []string{"", "me:1", "80000", "0", "2", "0"})
	if c.String() == before || s.String() != before {
		t.Errorf("the original is %q, and the clone is %q", &s, c)
	}
	look := s.Look(now, "redlock:{a}")
	look.Fields[0].Value = "9"
	if s.String() != before {
		t.Error("Look returned the fields of the state itself")
	}
	var empty reference.State
	if empty.Clone().Set(now, "a", "1", 0); len(empty.Keys(now)) != 0 {
		t.Error("the clone of an empty state shares its keys")
	}
}

// H96: a master that has restarted or was flushed since a round began has another record, or none, and refuses the
// acquire and the repair of that round.
func TestAcquireAndRepairNeedTheRecordOfTheirRound(t *testing.T) {
	enc := scripts.NewEncoder("redlock", 0)
	for _, role := range []scripts.Role{scripts.Plain, scripts.Reader, scripts.Writer} {
		k := scripts.Prefix("redlock").KeysOf("a", role)
		id := scripts.ShareID("me", 1, role, now, "")
		for name, call := range map[string]*frame.Call{
			"acquire": enc.Acquire(&k, id, term(time.Second, now), now, now, 1, nil),
			"repair":  enc.Repair(&k, id, "", term(time.Second, now), now, now, 1, ""),
		} {
			for record, want := range map[string]any{"v4 0123456789abcdef": int64(1), "v4 0123456789abcde0": nil, "": nil} {
				var s reference.State
				if record != "" {
					s.Set(now, "redlock:admission", record, 0)
				}
				keys, args := call.Arguments("v4 0123456789abcdef")
				reply := s.Eval(now, reference.Env{}, call.Script, keys, args)
				refused, _ := reply.([]any)
				if reply != want && (want != nil || refused[0] != int64(quorum.Abstained)) {
					t.Errorf("%s of role %v with the record %q: the reply is %v", name, role, record, reply)
				}
			}
		}
	}
}

// H106: if another program has stored a hash at the key of a lock, the reply is an error, and the hash is not read.
func TestForeignHashIsNotRead(t *testing.T) {
	const lock = "redlock:{a}"
	var s reference.State
	s.SetHash(lock, reference.Field{Name: "name", Value: "a"}, reference.Field{Name: "text", Value: "b"})
	reply := s.Eval(now, reference.Env{RunID: "abc"}, scripts.Inspect, []string{lock, "redlock:admission"}, nil)
	if reply != reference.NoLock {
		t.Errorf("the reply is %v, want %v", reply, reference.NoLock)
	}
}

// H86: for any queue, one script notifies or removes at most 8 waiters, and drops at most 500 waiters that have
// expired.
func TestScriptHandlesBoundedWaiters(t *testing.T) {
	names := []string{"redlock:{a}", "", "redlock:{a}:queue", "redlock:{a}:waiters"}
	for counts, want := range map[int64]int{now + 1: 2000 - 8, now: 2000 - 500 - 8} {
		var s reference.State
		for i := range int64(2000) {
			id := fmt.Sprintf("%016d:gone:%d:", now-i, i)
			s.SetScore(now, names[2], id, 0)
			s.SetScore(now, names[3], id, counts)
		}
		notified := 0
		env := reference.Env{Publish: func(string, string) int { notified++; return 0 }}
		s.Eval(now, env, scripts.Release, names[:1], []string{"me:1:"})
		if left := len(s.Look(now, names[2]).Fields); left != want || notified > 8 {
			t.Errorf("%d of 2000 waiters are left, want %d; %d were notified, want at most 8", left, want, notified)
		}
	}
}

// A call that package scripts never encodes gets an error. It does not cause a panic, and is not granted.
func TestMalformedCallsAreErrors(t *testing.T) {
	names := []string{"lock", "admission"}
	for _, script := range scripts.All {
		for n := range 16 {
			var s reference.State
			reply := s.Eval(now, reference.Env{}, script, names[:min(n, 2)], slices.Repeat([]string{"x"}, n))
			if reply == int64(1) {
				t.Errorf("%s with %d arguments was granted", script.Name, n)
			}
			if e, ok := reply.(reference.Error); ok && !strings.HasPrefix(e.Error(), "ERR ") {
				t.Errorf("%s with %d arguments returned %v", script.Name, n, e)
			}
		}
	}
}
