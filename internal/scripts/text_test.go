package scripts_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/frame"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/scripts/reference"
	"github.com/redlock-go/redlock/internal/skew"
)

// H35: the SHA constants equal the SHA-1 of the scripts. The library itself does not compute a SHA-1.
func TestSHAConstantsMatchTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scripts.All {
		sum := sha1.Sum([]byte(s.Text))
		if got := hex.EncodeToString(sum[:]); got != s.SHA {
			t.Errorf("%s: the constant is %s, but the SHA-1 of the text is %s", s.Name, s.SHA, got)
		}
		if seen[s.Name] || seen[s.SHA] {
			t.Errorf("%s is listed twice", s.Name)
		}
		if s.Once != (s == scripts.Acquire || s == scripts.SlotAcquire || s == scripts.SharedAcquire) {
			t.Errorf("the field Once of %s is %v", s.Name, s.Once)
		}
		seen[s.Name], seen[s.SHA] = true, true
	}
}

// Each script has a header that documents the keys, arguments and replies, and says why the script is safe to repeat.
// No line is longer than 120 bytes.
func TestHeadersOfScripts(t *testing.T) {
	for _, file := range []string{
		"now", "stamp", "record", "common", "holder", "extend_common", "acquire", "extend", "release", "inspect", "admit",
		"../heartbeat/heartbeat", "shared_common", "shared_acquire", "shared_extend", "shared_release",
		"slot_common", "slot_acquire", "slot_extend",
	} {
		text := must.Get(os.ReadFile(file + ".lua"))(t)
		for line := range strings.SplitSeq(string(text), "\n") {
			if len(line) > 120 {
				t.Errorf("%s: a line has %d bytes: %s", file, len(line), line)
			}
		}
		for _, word := range []string{"-- KEYS ", "-- ARGV ", "-- Reply ", "afe to repeat"} {
			part := strings.HasSuffix(file, "common") || file == "now" || file == "stamp" || file == "record" || file == "holder"
			if !part && !strings.Contains(string(text), word) {
				t.Errorf("%s: the header does not contain %q", file, word)
			}
		}
	}
}

// The times in the scripts equal the constants of the library.
func TestScriptConstants(t *testing.T) {
	texts := ""
	for _, file := range []string{
		"now", "common", "acquire", "release", "extend", "extend_common", "shared_common", "shared_acquire", "shared_release",
	} {
		text := must.Get(os.ReadFile(file + ".lua"))(t)
		texts += string(text)
	}
	for text, times := range map[string]int{
		fmt.Sprintf("call('TIME'), %d\n", skew.Window.Microseconds()):                 1,
		fmt.Sprintf("tonumber(kept or %d)", scripts.FenceKept.Milliseconds()):         2,
		fmt.Sprintf("return %d + math.ceil", scripts.FenceKept.Milliseconds()):        1,
		fmt.Sprintf("life - %d > longest", scripts.FenceKept.Milliseconds()):          1,
		fmt.Sprintf("asked < now - %d then", scripts.WaiterCounts.Microseconds()):     1,
		fmt.Sprintf("waiters, now + %d, waiter", scripts.WaiterCounts.Microseconds()): 1,
		fmt.Sprintf(", %d)\n", (scripts.WaiterCounts + time.Second).Milliseconds()):   2,
		fmt.Sprintf("math.min(counts, now + %d)", scripts.ToldCounts.Microseconds()):  1,
	} {
		if n := strings.Count(texts, text); n != times {
			t.Errorf("the scripts contain %q %d times, want %d", text, n, times)
		}
	}
}

// H105: different prefixes, buckets, names and kinds have different keys and channels, for names of any bytes, and the
// scripts publish wake-ups on the channel to which the client subscribes. The texts are composed of pieces that may
// lead to collisions.
func TestKeysAreDistinct(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func(pieces []string, most int) string {
		var b strings.Builder
		for range 1 + rnd.IntN(most) {
			b.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		return b.String()
	}
	owner := map[string]string{}
	claim := func(key, who string) {
		if other, taken := owner[key]; taken && other != who {
			t.Fatalf("%q belongs to %s and to %s", key, other, who)
		}
		owner[key] = who
	}
	accepted := 0
	for range 50_000 {
		p := word([]string{"p", ":", "admission", "lock", "inbox", "{17}", "{", "p"}, 3)
		name := word([]string{
			"{", "}", ":", "lock", "fence", "queue", "}:", ":{", "p", "admission", ":slot:", "1/2", "17}:", "inbox:",
		}, 5)
		must.Do(t, scripts.CheckName(name))
		if scripts.CheckPrefix(p) != nil {
			continue
		}
		accepted++
		x := scripts.Prefix(p)
		claim(x.Lock(name), fmt.Sprintf("the lock %q of %q", name, p))
		claim(x.Queue(name), fmt.Sprintf("the queue %q of %q", name, p))
		claim(x.Waiters(name), fmt.Sprintf("the waiters %q of %q", name, p))
		claim(x.Shares(name), fmt.Sprintf("the shares %q of %q", name, p))
		slot := scripts.Slot{Number: 1 + rnd.IntN(2), Of: 2}
		one := slot.Name(name)
		claim(x.Lock(one), fmt.Sprintf("slot %s of %q of %q", slot, name, p))
		claim(x.Queue(one), fmt.Sprintf("the queue of slot %s of %q of %q", slot, name, p))
		for _, want := range []string{name, one} {
			if got, ok := x.NameOf(x.Lock(want)); !ok || got != want {
				t.Fatalf("the key %q is that of %q, want %q", x.Lock(want), got, want)
			}
			if got, ok := x.NameOf(x.Queue(want)); ok {
				t.Fatalf("the key %q is that of the lock %q", x.Queue(want), got)
			}
		}
		if n, s := scripts.CutSlot(one); n != name || s != slot {
			t.Fatalf("%q is slot %s of %q", one, s, n)
		}
		claim(x.Inbox(me), fmt.Sprintf("the inbox of %q", p))
		claim(x.Admission(), fmt.Sprintf("the admission of %q", p))
		if k := x.Keys(name); k.Lock() != x.Lock(name) {
			t.Fatalf("the keys %q and %q of the same name differ", k.Lock(), x.Lock(name))
		}
		for _, role := range []scripts.Role{scripts.Plain, scripts.Reader} {
			if got := channelOfWakeUp(x, name, role); got != x.Inbox(other) {
				t.Fatalf("a wake-up of %q in %q goes to %q, want %q", name, p, got, x.Inbox(other))
			}
		}
	}
	if accepted < 10_000 {
		t.Errorf("only %d prefixes were accepted", accepted)
	}
}

// channelOfWakeUp returns the channel on which a release publishes a wake-up while other waits for the name.
func channelOfWakeUp(p scripts.Prefix, name string, role scripts.Role) (channel string) {
	const now = int64(1_700_000_000_000_000)
	waiter := scripts.NewTicket(role, other, 7, "", now, 0).Waiter()
	script := scripts.Release
	if role != scripts.Plain {
		script = scripts.SharedRelease
	}
	var s reference.State
	s.SetScore(now, p.Queue(name), waiter, 0)
	s.SetScore(now, p.Waiters(name), waiter, now+second)
	env := reference.Env{Publish: func(to, _ string) int {
		channel = to
		return 1
	}}
	s.Eval(now, env, script, []string{p.Lock(name)}, []string{scripts.LeaseID(me, 1, "")})
	return channel
}

func TestPrefixNameAndLabelAreChecked(t *testing.T) {
	long := strings.Repeat("x", scripts.MaxName)
	for p, ok := range map[string]bool{"": false, "a{b": false, "a}b": false, "redlock": true, "a:b c\n": true,
		"a{17}": true, "a:b{17}": true, "{17}": false, ":": false, "a:": false, "a:{17}": false, "a::{1}": false,
		long: false} {
		if err := scripts.CheckPrefix(p); (err == nil) != ok {
			t.Errorf("CheckPrefix of %.20q returned %v", p, err)
		}
	}
	for name, ok := range map[string]bool{"": false, "a": true, "\x00ÿ{}": true, "\xff\xfe": false, long: true,
		long + "x": false} {
		if err := scripts.CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName of %.20q returned %v", name, err)
		}
	}
	for label, ok := range map[string]bool{"": true, "host 7: worker/3 ä": true, "a\nb": false, long: false} {
		if err := scripts.CheckLabel(label); (err == nil) != ok {
			t.Errorf("CheckLabel of %.20q returned %v", label, err)
		}
	}
}

// The ids of leases and waiters end with the label of their owner, so a refusal can name the holder.
func TestIDsHaveOwnerAndLabel(t *testing.T) {
	for _, label := range []string{"", "host 7", "a:b:c", "1700000000000000:x"} {
		ticket := scripts.NewTicket(scripts.Plain, me, 12, label, 1_700_000_000_000_000, 3)
		id := scripts.LeaseID(me, 12, label)
		if want := "1700000000000000:" + id; ticket.Waiter() != want || id != me+":12:"+label {
			t.Errorf("the ids are %q and %q", ticket.Waiter(), id)
		}
		for _, id := range []string{id, ticket.Waiter()} {
			if owner, got := scripts.LeaseLabel(id); owner != me || got != label {
				t.Errorf("%q was parsed as owner %q with label %q", id, owner, got)
			}
		}
	}
	for _, id := range []string{"", "x", "x:y", "x:y:z", "x:-1:z", "x:01:z", "1700000000000000:x"} {
		if owner, label := scripts.LeaseLabel(id); owner != "" || label != "" {
			t.Errorf("the invalid id %q was parsed as owner %q with label %q", id, owner, label)
		}
	}
	early, late := scripts.NewTicket(scripts.Plain, me, 1, "", -5, 0).Waiter(),
		scripts.NewTicket(scripts.Plain, me, 1, "", math.MaxInt64, 0).Waiter()
	if len(early) != len(late) || early > late {
		t.Errorf("times out of range are encoded as %q and %q", early, late)
	}
}

// Each call is encoded in the order that the header of its script documents. S is the stamp.
func TestEncodedCalls(t *testing.T) {
	e, k := scripts.NewEncoder("p", 7), scripts.Prefix("p").Keys("n")
	ticket := scripts.NewTicket(scripts.Plain, "me", 9, "l", 77, 3)
	const waiter = "0000000000000077:me:9:l"
	const b41, b42, b90 = "0000000000000041", "0000000000000042", "0000000000000090"
	w, second := scripts.Prefix("p").KeysOf("n", scripts.Writer), scripts.Term{TTL: time.Second, Until: 90}
	asked := scripts.Term{TTL: time.Second, Until: 90, Asked: 41}
	slot := scripts.Prefix("p").Keys(scripts.Slot{Number: 2, Of: 3}.Name("n"))
	shared := scripts.SharedAcquire.SHA + " 2 p:{n} p:admission S "
	acquire, extend := scripts.Acquire.SHA+" 2 p:{n} p:admission S ", scripts.Extend.SHA+" 2 p:{n} p:admission S "
	release := scripts.Release.SHA + " 1 p:{n} "
	value := must.Get(scripts.NewValue(3, "a b"))(t)
	for _, c := range []struct {
		what string
		call *frame.Call
		want string
	}{
		{"acquire", e.Acquire(&k, "me:1:l", scripts.Term{TTL: time.Second + 1, Until: 90}, 42, 42, 1, nil),
			acquire + "me:1:l 76001 " + b42 + " " + b42 + " 1 " + b42 + " " + b42 + " " + b90},
		{"acquire with a ticket", e.Acquire(&k, "me:1:l", second, 41, 42, 1|scripts.Lingers, ticket),
			acquire + "me:1:l 76000 " + b41 + " " + b42 + " 1~ " + b41 + " " + b42 + " " + b90 + " acquire " + waiter + " -3"},
		{"acquire above a fence that is ahead", e.Acquire(&k, "me:1:l", asked, 42, 42, 1, nil),
			acquire + "me:1:l 76000 " + b42 + " " + b42 + " 1 " + b42 + " " + b42 + " " + b90 + " acquire  0 " + b41},
		{"the same with a ticket", e.Acquire(&k, "me:1:l", asked, 42, 42, 1, ticket), acquire +
			"me:1:l 76000 " + b42 + " " + b42 + " 1 " + b42 + " " + b42 + " " + b90 + " acquire " + waiter + " -3 " + b41},
		{"a repair above a fence that is ahead", e.Repair(&k, "me:1:l", "", asked, 42, 7, 2, ""),
			acquire + "me:1:l 76000 " + b42 + " " + b42 + " 2 0000000000000007 " + b42 + " " + b90 + " repair   " + b41},
		{"an import above a fence that is ahead", e.Import(&k, "me:2:l", "me:1:l", asked, 42, 42),
			acquire + "me:2:l 76000 " + b42 + " " + b42 + " 1 " + b42 + " " + b42 + " " + b90 + " import me:1:l  " + b41},
		{"repair", e.Repair(&k, "me:1:l", "", second, 42, 7, 2, ""),
			acquire + "me:1:l 76000 " + b42 + " " + b42 + " 2 0000000000000007 " + b42 + " " + b90 + " repair"},
		{"import", e.Import(&k, "me:2:l", "me:1:l", second, 41, 42),
			acquire + "me:2:l 76000 " + b41 + " " + b42 + " 1 " + b41 + " " + b42 + " " + b90 + " import me:1:l"},
		{"repair of an import, with a value", e.Repair(&k, "me:2:l", "me:1:l", second, 42, 7, 2, value),
			acquire + "me:2:l 76000 " + b42 + " " + b42 + " 2 0000000000000007 " + b42 + " " + b90 +
				" 0000000000000003 a b repair me:1:l"},
		{"acquire of a share", e.Acquire(&w, "me:1w5:l", second, 41, 42, 1, nil),
			shared + "me:1w5:l 76000 " + b41 + " " + b42 + " " + b90},
		{"acquire of a slot", e.Acquire(&slot, "me:1:l", second, 41, 42, 1, nil), scripts.SlotAcquire.SHA +
			" 2 p:{n}:slot:2/3 p:admission S me:1:l 76000 " + b41 + " " + b42 + " 1 " + b41 + " " + b42 + " " + b90},
		{"extend of a slot", e.Extend(&slot, "me:1:l", second, 3, ""),
			scripts.SlotExtend.SHA + " 2 p:{n}:slot:2/3 p:admission S me:1:l 76000 7 3 " + b90},
		{"release of a slot", e.Release(&slot, scripts.Ending{Leases: []string{"me:1:l"}}),
			scripts.Release.SHA + " 1 p:{n}:slot:2/3 me:1:l"},
		{"extend", e.Extend(&k, "me:1:l", second, 3, ""), extend + "me:1:l 76000 7 3 " + b90},
		{"extend with a value", e.Extend(&k, "me:1:l", scripts.Term{}, 1, value),
			extend + "me:1:l 0 7 1 0  0000000000000003 a b"},
		{"release", e.Release(&k, scripts.Ending{Leases: []string{"me:1:l"}}), release + "me:1:l"},
		{"kept", e.Release(&k, scripts.Ending{Leases: []string{"me:1:l"}, Keep: second}),
			release + "me:1:l 0 76000 " + b90 + "   0"},
		{"roll-back", e.Release(&k, scripts.Ending{Leases: []string{"me:1:l"}, Ballot: 42, Waiter: ticket, Back: true,
			AskBallot: 41}), release + "me:1:l " + b42 + " 0 0 " + waiter + " -3 41"},
		{"leaving", e.Release(&k, scripts.Ending{Waiter: ticket}), release + " 0 0 0 " + waiter + "  0"},
		{"pending release", e.Release(&k, scripts.Ending{Leases: []string{"me:1:l", "me:2:l"}, Ballot: 42}),
			release + "me:1:l " + b42 + " 0 0   0 me:2:l"},
		{"inspect", e.Inspect(&k, 0), scripts.Inspect.SHA + " 2 p:{n} p:admission"},
		{"inspect at a time", e.Inspect(&k, 42), scripts.Inspect.SHA + " 2 p:{n} p:admission " + b42},
		{"admit", e.Admit(scripts.AdmitRequest{Step: scripts.AdmitStart, Identity: "a/b/7", Seen: "s", Median: 5,
			Tolerance: time.Second,
			Record:    scripts.Record{Stamp: "0123456789abcdef", Masters: three, MaxTTL: time.Second}}),
			scripts.Admit.SHA + " 1 p:admission start a/b/7 s 5 1000000 " +
				stamped + "id= masters=a,b,c epoch=0 maxttl=1000 quarantine=0 state=quarantine since=0"},
	} {
		if got := strings.Join(c.call.Words("S", false), " "); got != "EVALSHA "+c.want {
			t.Errorf("%s is encoded as\n     %s\nwant %s", c.what, got, c.want)
		}
		text := c.call.Words("S", true)
		if text[0] != "EVAL" || text[1] != c.call.Script.Text || strings.Join(text[2:], " ") != c.want[41:] {
			t.Errorf("%s is encoded with the text as %q", c.what, text[2:])
		}
	}
	if got := frame.Command("ping", "PING", "a b").Words("", false); !slices.Equal(got, []string{"PING", "a b"}) {
		t.Errorf("a command is encoded as %q", got)
	}
}
