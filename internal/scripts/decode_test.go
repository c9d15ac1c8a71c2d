package scripts_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

func TestDecodeVote(t *testing.T) {
	b := func(s string) []byte { return []byte(s) }
	const year = int64(946684800000000)
	lock := []any{b("x:1:"), b("2 0000000000000033 0000000000000044")}
	for _, c := range []struct {
		reply any
		want  scripts.Vote
	}{
		{int64(1), scripts.Vote{Outcome: quorum.Granted, Place: -1}},
		{[]any{int64(2), int64(1500), int64(0), lock, int64(3), b("77"), year},
			scripts.Vote{Outcome: quorum.Held, Left: 1500 * time.Millisecond, Holder: "x:1:", Token: 33, Place: 3, Fence: 77,
				Time: year}},
		{[]any{int64(2), int64(-1), int64(0), lock, int64(-1), "0", year},
			scripts.Vote{Outcome: quorum.Held, Left: -1, Holder: "x:1:", Token: 33, Place: -1, Time: year}},
		{[]any{int64(2), int64(0), int64(1), []any{}, int64(0), "0", year}, scripts.Vote{Outcome: quorum.Held, Free: true,
			Time: year}},
		{[]any{int64(2), int64(math.MaxInt64), int64(0), []any{}, int64(0), b("0"), year},
			scripts.Vote{Outcome: quorum.Held, Left: math.MaxInt64 / time.Millisecond * time.Millisecond, Time: year}},
		{[]any{int64(3), int64(-1), b("9007199254740991"), year},
			scripts.Vote{Outcome: quorum.Stale, Place: -1, Fence: scripts.MaxBallot, Time: year}},
		{[]any{int64(4), int64(1), b("5"), year}, scripts.Vote{Outcome: quorum.Ahead, Place: 1, Fence: 5, Time: year}},
		{[]any{int64(5), int64(-2), b("5"), year}, scripts.Vote{Outcome: quorum.Missing, Place: -1, Fence: 5, Time: year,
			Left: -1}},
		{[]any{int64(5), int64(7), b("5"), year},
			scripts.Vote{Outcome: quorum.Missing, Place: -1, Fence: 5, Time: year, Left: 7 * time.Millisecond}},
		{[]any{int64(6), b(""), year}, scripts.Vote{Outcome: quorum.Abstained, Place: -1, Time: year}},
		{[]any{int64(7), b("v4 x"), year, "more"}, scripts.Vote{Outcome: quorum.Refused, Place: -1, Record: "v4 x",
			Time: year}},
	} {
		if got, err := scripts.DecodeVote(c.reply); err != nil || got != c.want {
			t.Errorf("%v was decoded as %+v, %v; want %+v", c.reply, got, err, c.want)
		}
	}
	for _, hostile := range []any{
		nil, "OK", b("1"), int64(0), int64(2), int64(-1), 1.5, []any{}, []any{nil}, []any{"2"}, []any{int64(1)},
		[]any{int64(0)},
		[]any{int64(8)}, []any{int64(-1)}, []any{int64(257)}, []any{int64(2)}, []any{int64(2), int64(1), int64(0), lock},
		[]any{int64(2), int64(1), int64(0), "lock", int64(0), "7", year}, []any{int64(2), int64(1), int64(0), []any{"x",
			"y"}, int64(0), "7", year},
		[]any{int64(3), int64(0), b("12x"), year}, []any{int64(3), int64(0), b(""), year}, []any{int64(3), int64(0),
			b("-1"), year},
		[]any{int64(3), int64(0), b("1e3"), year}, []any{int64(3), int64(0), b(strings.Repeat("9", 30)), year},
		[]any{int64(3), int64(0), int64(7), year}, []any{int64(6), nil, year}, []any{int64(7), b("v4 x"), b("now")},
		[]any{[]any{int64(1)}},
	} {
		if got, err := scripts.DecodeVote(hostile); err == nil || got != (scripts.Vote{}) {
			t.Errorf("%v was decoded as %+v", hostile, got)
		}
	}
}

func TestDecodeOthers(t *testing.T) {
	lock := []any{"me:1:", "2 33 44"}
	h, err := scripts.DecodeHolding([]any{lock, int64(1500), []byte("77"), int64(5), "", int64(11), []any{"w1",
		[]byte("w2")}, int64(3), []any{"me:2r9:", []byte("2005")}, "readers-writer"})
	if want := (scripts.Holding{ID: "me:1:", Depth: 2, Token: 33, Left: 1500 * time.Millisecond, Fence: 77, Time: 5,
		Waiters: 11,
		First:   []string{"w1", "w2"},
		Shares:  3, Kind: "readers-writer",
		Some: []scripts.Share{{ID: "me:2r9:", Left: 2 * time.Millisecond}}}); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("the reply to an inspection was decoded as %+v, %v", h, err)
	}
	a, err := scripts.DecodeAdmission([]any{int64(5), "r", int64(9), "a/b/7", int64(70)})
	if want := (scripts.Admission{Result: scripts.AdmitTooEarly, Record: "r", Time: 9,
		Identity: "a/b/7", Expires: true}); err != nil || a != want {
		t.Errorf("the reply to an admission was decoded as %+v, %v", a, err)
	}
	for _, hostile := range []any{nil, int64(1), []any{}, []any{lock, int64(1), "7", int64(5), "", int64(0), "w"},
		[]any{int64(0), "m", int64(9), "a"}, []any{int64(7), "m", int64(9), "a"}} {
		if h, err := scripts.DecodeHolding(hostile); err == nil {
			t.Errorf("%v was decoded as %+v", hostile, h)
		}
		if a, err := scripts.DecodeAdmission(hostile); err == nil {
			t.Errorf("%v was decoded as %+v", hostile, a)
		}
	}
}

const stamped = "v4 0123456789abcdef " // version and stamp of a record

func TestRecordRoundTrip(t *testing.T) {
	for _, r := range []scripts.Record{
		{}, {Stamp: "0123456789abcdef", Identity: "a1/b2/-1", Masters: three, MaxTTL: 30 * time.Second,
			Quarantine: time.Minute, Since: 946684800000000},
		{Identity: "a1/b2/7", Masters: three, Next: five, Epoch: 17, Raised: 946684800000000, Final: 16, Admitted: true,
			Since: 1},
		{Identity: "a1/b2/7", DurableName: scripts.Escape("10.0.0.1:6379"), Masters: "a", MaxTTL: time.Millisecond},
		{Identity: "a1/b2/7", DurableName: "h", Shard: scripts.Shard{Number: 2, Of: 3}, Masters: five, Next: three, Epoch: 1},
		{Identity: "a1/b2/7", Shard: scripts.Shard{Number: 1, Of: 1}, Masters: "a"},
		{Identity: "a1/b2/7", DurableName: scripts.Escape("/var/run/my redis% n=1 .sock"), Epoch: 1},
	} {
		if got, err := scripts.ParseRecord(r.String()); err != nil || got != r {
			t.Errorf("the record %q was parsed as %+v, %v", r, got, err)
		}
	}
	const rest = " maxttl=1 quarantine=1 state=admitted since=1"
	for _, s := range []string{
		"", "v4", "v4 ", stamped, stamped + "id=a masters=b epoch=0" + rest + " ", stamped + "id=a masters=b" + rest,
		"v4 id=a masters=b epoch=0" + rest, "v4 0123456789abcde id=a masters=b epoch=0" + rest,
		"v4 0123456789abcdeF id=a masters=b epoch=0" + rest, stamped + "masters=b id=a epoch=0" + rest,
		stamped + " id=a masters=b epoch=0" + rest, stamped + "id=a masters= epoch=0" + rest,
		stamped + "id=a masters=b epoch=0 maxttl=9223372036854775807 quarantine=1 state=admitted since=1",
		stamped + "id=a masters=b epoch=0" + rest + "\n", stamped + "id=a masters=b epoch=01" + rest,
		stamped + "id=a durable= masters=b epoch=0" + rest, stamped + "id=a masters=b durable=h epoch=0" + rest,
		stamped + "id=a h masters=b epoch=0" + rest, stamped + "id=a durable=h durable=h masters=b epoch=0" + rest,
		stamped + "id=a masters=b epoch=1" + rest, stamped + "id=a masters=b epoch=0 raised=1 final=0" + rest,
		stamped + "id=a masters=b next= epoch=0" + rest, stamped + "id=a masters=b epoch=1 final=0 raised=1" + rest,
		stamped + "id=a masters=b epoch=0 maxttl=1 quarantine=1 state=pending since=1",
		stamped + "id=a shard=0/0 masters=b epoch=0" + rest, stamped + "id=a shard=02/3 masters=b epoch=0" + rest,
		stamped + "id=a shard=2 masters=b epoch=0" + rest, stamped + "id=a shard=a/b masters=b epoch=0" + rest,
		stamped + "id=a masters=b shard=2/3 epoch=0" + rest, stamped + "id=a shard= masters=b epoch=0" + rest,
	} {
		if r, err := scripts.ParseRecord(s); err == nil {
			t.Errorf("%q was parsed as %+v", s, r)
		}
	}
}

// H98: a list of masters depends only on their names. No name can be taken for two names, or for another part of a
// record.
func TestListsOfMasters(t *testing.T) {
	list := scripts.List([]string{"b:1", "/run/a b,c epoch=7", "mymaster@s1:26379,s2:26379"})
	if list != scripts.List([]string{"mymaster@s1:26379,s2:26379", "b:1", "/run/a b,c epoch=7"}) {
		t.Errorf("the list depends on the order of the names: %q", list)
	}
	if strings.Count(list, ",") != 2 || strings.Contains(list, " ") {
		t.Errorf("the list is %q", list)
	}
	if got := scripts.ShowList(list); got != "[/run/a b,c epoch=7 b:1 mymaster@s1:26379,s2:26379]" {
		t.Errorf("the list is shown as %q", got)
	}
	r := scripts.Record{Identity: "a", Masters: list}
	if got, err := scripts.ParseRecord(r.String()); err != nil || got != r {
		t.Errorf("the record was parsed as %+v, %v", got, err)
	}
}

// A record of another version is refused with an error that names both versions.
func TestAnotherVersionIsRefusedByName(t *testing.T) {
	for _, text := range []string{"v1 id=a/b guard=30000 epoch=0 state=admitted", "v2 id=a"} {
		_, err := scripts.ParseRecord(text)
		if err == nil || !strings.Contains(err.Error(), `"`+text[:2]+`"`) || !strings.Contains(err.Error(), "version v4") {
			t.Errorf("the error about %q is %v", text, err)
		}
	}
}
