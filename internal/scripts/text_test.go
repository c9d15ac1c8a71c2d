package scripts_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
)

// TestSHAConstantsAreThoseOfTheTexts (H35): the program never computes a SHA-1, so this test does.
func TestSHAConstantsAreThoseOfTheTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scripts.All {
		sum := sha1.Sum([]byte(s.Text))
		if got := hex.EncodeToString(sum[:]); got != s.SHA {
			t.Errorf("%s: the constant is %s, the text's SHA-1 %s", s.Name, s.SHA, got)
		}
		if seen[s.Name] || seen[s.SHA] {
			t.Errorf("%s is listed twice", s.Name)
		}
		seen[s.Name], seen[s.SHA] = true, true
	}
	if len(scripts.All) != 7 {
		t.Errorf("%d scripts are listed", len(scripts.All))
	}
}

// TestTheScriptsKnowWhatCallsLeaveOut: what stands in the scripts are the times that the calls are made with.
func TestTheScriptsKnowWhatCallsLeaveOut(t *testing.T) {
	window, bar := scripts.UsualWindow.Microseconds(), scripts.Millis(scripts.UsualBarTTL)
	alive := scripts.Millis(scripts.WaiterTTL)
	const halfHour = 30 * time.Minute
	for _, c := range []struct {
		script *scripts.Script
		text   string
		times  int
	}{
		{scripts.Acquire, fmt.Sprintf("local window, keep, mode, depth, epoch = %d, nil, 'a', '1', nil\n", window), 1},
		{scripts.Acquire, fmt.Sprintf("'PX', keep or '%d')\n", bar), 1},
		{scripts.Acquire, fmt.Sprintf("top - top %% %[1]d == last - last %% %[1]d then\n", halfHour.Microseconds()), 1},
		{scripts.Acquire, fmt.Sprintf("text, 'PX', '%d')\n", bar+scripts.Millis(halfHour+2*scripts.UsualWindow)), 1},
		{scripts.Acquire, fmt.Sprintf("now - %d * 1000 then\n", alive), 1},
		{scripts.Acquire, fmt.Sprintf("second + %d, rest)\n", int(scripts.WaiterTTL.Seconds())), 1},
		{scripts.Acquire, fmt.Sprintf(", '%d')\n", alive), 2},
		{scripts.Release, fmt.Sprintf("local window, keep, reserve = %d, nil, '%d'\n", window, scripts.Millis(scripts.Reservation)), 1},
		{scripts.Release, fmt.Sprintf("local window, keep = %d, '%d'\n", window, bar), 1},
		{scripts.Release, fmt.Sprintf("top - top %% %[1]d == high - high %% %[1]d then\n", halfHour.Microseconds()), 1},
		{scripts.Release, fmt.Sprintf("last, 'PX', '%d')\n", bar+scripts.Millis(halfHour+2*scripts.UsualWindow)), 1},
	} {
		if n := strings.Count(c.script.Text, c.text); n != c.times {
			t.Errorf("%s has %q %d times, want %d", c.script.Name, c.text, n, c.times)
		}
	}
}

// TestNoTwoNamesShareAKey: whatever bytes names have, different prefixes, names and kinds have different keys. The
// alphabet is chosen to collide where anything can.
func TestNoTwoNamesShareAKey(t *testing.T) {
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
	for range 50_000 {
		p := word([]string{"p", ":", "marker", "lock"}, 3)
		name := word([]string{"{", "}", ":", "lock", "bar", "free", "}:", ":{", "p", "marker"}, 5)
		if scripts.CheckPrefix(p) != nil || scripts.CheckName(name) != nil {
			t.Fatalf("prefix %q or name %q is refused", p, name)
		}
		x := scripts.Prefix(p)
		claim(x.Lock(name), fmt.Sprintf("the lock %q of %q", name, p))
		claim(x.Bar(name), fmt.Sprintf("the bar %q of %q", name, p))
		claim(x.Channel(name), fmt.Sprintf("the channel %q of %q", name, p))
		claim(x.Queue(name), fmt.Sprintf("the queue %q of %q", name, p))
		claim(x.Alive(name), fmt.Sprintf("the queue's times %q of %q", name, p))
		claim(x.Inbox(name), fmt.Sprintf("the inbox of %q of %q", name, p))
		claim(x.Marker(), fmt.Sprintf("the marker of %q", p))
	}
}

func TestPrefixAndNameAreChecked(t *testing.T) {
	for p, ok := range map[string]bool{"": false, "a{b": false, "a}b": false, "redlock": true, "a:b c\n": true, strings.Repeat("x", 1025): false} {
		if err := scripts.CheckPrefix(p); (err == nil) != ok {
			t.Errorf("prefix %.20q: %v", p, err)
		}
	}
	for name, ok := range map[string]bool{
		"": false, "a": true, "\x00\xff{}": true,
		strings.Repeat("x", scripts.MaxName): true, strings.Repeat("x", scripts.MaxName+1): false,
	} {
		if err := scripts.CheckName(name); (err == nil) != ok {
			t.Errorf("name %.20q: %v", name, err)
		}
	}
}

// TestCallsAreWhatTheScriptsRead writes the arguments of each call out, in the order that the headers of the scripts say.
func TestCallsAreWhatTheScriptsRead(t *testing.T) {
	f, unusual := scripts.NewFleet("p", 15*time.Second, time.Hour, 7), scripts.NewFleet("p", 10*time.Second, 2*time.Hour, 7)
	k := scripts.Prefix("p").Keys("n")
	h, imp := scripts.NewHold(k, "me:1", ""), scripts.NewHold(k, "me:2", "me:1")
	tk := scripts.NewTicket("me", 9, 77, 3)
	const lock, bar, queue, alive, marker = "p:{n}:lock", "p:{n}:bar", "p:{n}:queue", "p:{n}:alive", "p:marker"
	const waiter = ">0000000000000077:me:9"
	for _, c := range []struct {
		what  string
		call  *scripts.Call
		stamp int
		want  []any
	}{
		{"acquire", f.AcquireCall(h, scripts.ModeAcquire, time.Second+1, 42, 42, 1), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:1", int64(1001), int64(42)}},
		{"acquire with a block", f.AcquireCall(h, scripts.ModeAcquire, time.Second, 41, 42, 1), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:1", int64(1000), int64(41), "", int64(42)}},
		{"acquire with times of its own", unusual.AcquireCall(h, scripts.ModeAcquire, time.Second, 42, 42, 1), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:1", int64(1000), int64(42), "10000000 7200000"}},
		{"acquire at a depth", f.AcquireCall(h, scripts.ModeAcquire, time.Second, 42, 42, 2), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:1", int64(1000), int64(42), "15000000 3600000 a 2 7"}},
		{"heal", f.AcquireCall(h, scripts.ModeHeal, time.Second, 42, 42, 1), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:1", int64(1000), int64(42), "15000000 3600000 h 1 7"}},
		{"import", unusual.AcquireCall(imp, scripts.ModeImport, time.Second, 42, 42, 2), 5,
			[]any{scripts.Acquire.SHA, "3", lock, bar, marker, "", "me:2", int64(1000), int64(42), "10000000 7200000 i 2 7", int64(42), "me:1"}},
		{"acquire of a waiter", f.QueueCall(h, tk, true, time.Second, 300*time.Millisecond, 41, 42), 7,
			[]any{scripts.Acquire.SHA, "5", lock, bar, marker, queue, alive, "", "me:1", int64(1000), int64(41), "", int64(42), waiter, -3, "1", int64(300)}},
		{"acquire of a waiter that offers nothing", unusual.QueueCall(h, tk, false, time.Second, time.Millisecond-1, 41, 41), 7,
			[]any{scripts.Acquire.SHA, "5", lock, bar, marker, queue, alive, "", "me:1", int64(1000), int64(41), "10000000 7200000", int64(41), waiter, -3, "0", "0"}},
		{"extend", f.ExtendCall(h, time.Second, 3), 5,
			[]any{scripts.Extend.SHA, "3", lock, bar, marker, "", "me:1", int64(1000), 3, int64(7)}},
		{"release", f.ReleaseCall(h, 42, false, scripts.Advance), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "me:1", int64(42)}},
		{"release with times of its own", unusual.ReleaseCall(h, 42, false, scripts.Advance), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "me:1", int64(42), "A 10000000 7200000 500"}},
		{"release with a reservation of its own", f.Reserving(2*time.Second).ReleaseCall(h, 42, false, scripts.Tell), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "me:1", int64(42), "F 15000000 3600000 2000"}},
		{"leave", f.LeaveCall(k, waiter), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", waiter, "0", "L"}},
		{"leave of one that has offered its hold", f.ResignCall(h, 42, waiter), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "me:1", int64(42), "L+", waiter}},
		{"advance", f.AdvanceCall(k), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "", "0"}},
		{"release of an import", f.ReleaseCall(imp, 42, true, scripts.Advance), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "me:2", int64(42), "A+", "me:1"}},
		{"release of all", f.FreeCall(k, []string{"x:1", "x:2", "x:3"}), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "x:1", "0", "A", "x:2", "x:3"}},
		{"release of nobody", f.FreeCall(k, nil), 7,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "", "0"}},
		{"debt", f.DebtCall(k, []string{"x:1", "x:2"}, 9), 0,
			[]any{scripts.Release.SHA, "5", lock, bar, queue, alive, marker, "", "x:1", int64(9), "F+", "x:2"}},
		{"inspect", f.InspectCall(k), 0, []any{scripts.Inspect.SHA, "3", lock, bar, marker}},
		{"admit", f.AdmitCall(scripts.AdmitRequest{Step: scripts.AdmitStart, Identity: "a/b", Seen: "m", Median: 5, Tolerance: time.Second,
			Quarantine: time.Minute, Guard: time.Second, Epoch: 3, Alone: 2}), 0,
			[]any{scripts.Admit.SHA, "1", marker, "start", "a/b", "m", int64(5), int64(1e6), int64(60e6), int64(1000), int64(3), "", int64(2)}},
	} {
		if c.call.Stamp != c.stamp || !reflect.DeepEqual(c.call.Args, c.want) {
			t.Errorf("%s, stamp at %d:\n got %v\nwant %v", c.what, c.call.Stamp, c.call.Args, c.want)
		}
	}
}

func TestMillisRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 500 * time.Microsecond: 1} {
		if got := scripts.Millis(d); got != want {
			t.Errorf("%v: %d ms, want %d (H13)", d, got, want)
		}
	}
}

func TestDecodeVote(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	const year = int64(946684800000000)
	for _, c := range []struct {
		reply any
		want  scripts.Vote
	}{
		{int64(1), scripts.Vote{Kind: scripts.Granted}},
		{[]any{int64(2), int64(1500), b("77"), year, b("x:1"), int64(3)}, scripts.Vote{Kind: scripts.Held, Left: 1500 * time.Millisecond, Bar: 77, Time: year, Holder: "x:1", Place: 3}},
		{[]any{int64(2), int64(-1), "0", year, "", int64(-1)}, scripts.Vote{Kind: scripts.Held, Left: -time.Millisecond, Time: year, Place: -1}},
		{[]any{int64(2), int64(math.MaxInt64), b("0"), year, "", int64(0)}, scripts.Vote{Kind: scripts.Held, Left: math.MaxInt64 / time.Millisecond * time.Millisecond, Time: year}},
		{[]any{int64(3), b("9007199254740991"), year}, scripts.Vote{Kind: scripts.Stale, Bar: scripts.MaxBallot, Time: year}},
		{[]any{int64(4), b("5"), year}, scripts.Vote{Kind: scripts.Ahead, Bar: 5, Time: year}},
		{[]any{int64(5), b("5"), year, int64(-2)}, scripts.Vote{Kind: scripts.Missing, Bar: 5, Time: year, Left: -2 * time.Millisecond}},
		{[]any{int64(6), b(""), year}, scripts.Vote{Kind: scripts.Abstained, Time: year}},
		{[]any{int64(7), b("v1 x"), year, "more"}, scripts.Vote{Kind: scripts.Refused, Marker: "v1 x", Time: year}},
	} {
		if got, err := scripts.DecodeVote(c.reply); err != nil || got != c.want {
			t.Errorf("%v: %+v, %v; want %+v", c.reply, got, err, c.want)
		}
	}
	for _, hostile := range []any{
		nil, "OK", b("1"), int64(0), int64(2), int64(-1), 1.5, []any{}, []any{nil}, []any{"2"}, []any{int64(1)}, []any{int64(0)},
		[]any{int64(8)}, []any{int64(-1)}, []any{int64(257)}, []any{int64(2)}, []any{int64(2), int64(1), b("7")},
		[]any{int64(2), b("1"), b("7"), year}, []any{int64(3), b("12x"), year}, []any{int64(3), b(""), year}, []any{int64(3), b("-1"), year},
		[]any{int64(3), b("1e3"), year}, []any{int64(3), b(strings.Repeat("9", 30)), year}, []any{int64(3), int64(7), year},
		[]any{int64(6), nil, year}, []any{int64(7), b("v1 x"), b("now")}, []any{[]any{int64(1)}},
	} {
		if got, err := scripts.DecodeVote(hostile); err == nil || got.Kind == scripts.Granted {
			t.Errorf("%v is taken for %+v", hostile, got)
		}
	}
}

func TestDecodeOthers(t *testing.T) {
	for _, c := range []struct {
		reply any
		there bool
		ok    bool
	}{{int64(1), true, true}, {int64(0), false, true}, {int64(2), false, false}, {nil, false, false}, {"1", false, false}, {[]any{int64(1)}, false, false}} {
		if there, err := scripts.DecodeReleased(c.reply); there != c.there || (err == nil) != c.ok {
			t.Errorf("released %v: %v, %v", c.reply, there, err)
		}
	}
	h, err := scripts.DecodeHolding([]any{"me:1", "2", int64(1500), []byte("77"), int64(5), ""})
	if want := (scripts.Holding{ID: "me:1", Depth: 2, Left: 1500 * time.Millisecond, Bar: 77, Time: 5}); err != nil || h != want {
		t.Errorf("holding %+v, %v", h, err)
	}
	a, err := scripts.DecodeAdmission([]any{int64(5), "m", int64(9), "a/b"})
	if want := (scripts.Admission{Result: scripts.AdmitTooEarly, Marker: "m", Time: 9, Identity: "a/b"}); err != nil || a != want {
		t.Errorf("admission %+v, %v", a, err)
	}
	for _, hostile := range []any{nil, int64(1), []any{}, []any{"me:1", "x", int64(1), "7", int64(5), ""}, []any{int64(0), "m", int64(9), "a"}, []any{int64(6), "m", int64(9), "a"}} {
		if h, err := scripts.DecodeHolding(hostile); err == nil {
			t.Errorf("%v is taken for %+v", hostile, h)
		}
		if a, err := scripts.DecodeAdmission(hostile); err == nil {
			t.Errorf("%v is taken for %+v", hostile, a)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	if got := fmt.Sprint(scripts.Failed, scripts.Granted, scripts.Refused, scripts.Kind(99)); got != "failed granted refused kind(99)" {
		t.Error(got)
	}
}

func TestMarkerRoundTrip(t *testing.T) {
	for _, m := range []scripts.Marker{
		{Identity: "a1/b2", Guard: 30 * time.Second},
		{Identity: "a1/b2", Guard: 30 * time.Second, Epoch: 17, Since: 946684800000000, Alone: 16, Pending: 946684800000000},
		{Identity: "/", Guard: 0},
		{Identity: "a/b", Home: "h", Guard: time.Second, Epoch: 1, Since: 5},
		{Identity: "a1/b2", Guard: time.Millisecond, Pending: 1},
		{Identity: "a1/b2", Home: scripts.Home("10.0.0.1:6379"), Guard: time.Second},
		{Identity: "a1/b2", Home: scripts.Home("/var/run/my redis% guard=1 .sock"), Guard: time.Second, Pending: 7},
	} {
		got, err := scripts.ParseMarker(m.String())
		if err != nil || got != m || got.Admitted() != (m.Pending == 0) {
			t.Errorf("%q: %+v, %v", m, got, err)
		}
	}
	for _, s := range []string{
		"", "v1", "v2 id=a/b guard=1 epoch=0 state=admitted", "v1 id=a/b guard=1 epoch=0 state=admitted ", "v1 id=a/b guard=01 epoch=0 state=admitted",
		"v1 id=a/b guard=-1 epoch=0 state=admitted", "v1 id=a/b guard=1 epoch=x state=admitted", "v1 id=a/b guard=1 epoch=0 state=",
		"v1 id=a/b guard=1 epoch=0 state=pending", "v1 id=a/b guard=1 epoch=0 state=pending:", "v1 id=a/b guard=1 epoch=0 state=pending:0",
		"v1 id=a/b guard=1 epoch=0 state=pending:-5", "v1 guard=1 id=a/b epoch=0 state=admitted", "v1  id=a/b guard=1 epoch=0 state=admitted",
		"v1 id=a/b guard=9223372036854775807 epoch=0 state=admitted", "v1 id=a/b guard=1 epoch=0 state=admitted\n",
		"v1 id=a/b home= guard=1 epoch=0 state=admitted", "v1 id=a/b guard=1 home=h epoch=0 state=admitted", "v1 id=a/b h guard=1 epoch=0 state=admitted",
		"v1 id=a/b home=h home=h guard=1 epoch=0 state=admitted", "v1 id=a/b guard=1 epoch=1 state=admitted", "v1 id=a/b guard=1 epoch=-1 state=admitted",
		"v1 id=a/b guard=1 epoch=0 since=1 alone=0 state=admitted", "v1 id=a/b guard=1 epoch=1 since=x alone=0 state=admitted",
		"v1 id=a/b guard=1 epoch=1 since=1 alone=-1 state=admitted", "v1 id=a/b guard=1 epoch=1 alone=0 since=1 state=admitted",
	} {
		if m, err := scripts.ParseMarker(s); err == nil {
			t.Errorf("%q is taken for %+v", s, m)
		}
	}
}
