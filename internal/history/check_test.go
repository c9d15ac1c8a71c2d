package history

import (
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/must"
)

// at returns the events of one hold. Its Lock call lasts from from-1 to from, and its Unlock call from until to
// confirmed.
func at(name, id string, token, from, until, confirmed int64) []Event {
	return []Event{
		{Op: Lock, Name: name, Hold: id, Call: from - 1, Ret: from, Token: token, Until: until + 5},
		{Op: Leave, Name: name, Hold: id, Call: until},
		{Op: Unlock, Name: name, Hold: id, Call: until, Ret: confirmed},
	}
}

// lost returns the events of a hold that is not unlocked.
func lost(name, id string, token, from, until int64) []Event {
	return at(name, id, token, from, until, 0)[:1:1]
}

func during(op, name, id string, token, call, ret int64) []Event {
	return []Event{{Op: op, Name: name, Hold: id, Token: token, Call: call, Ret: ret}}
}

// kept returns the event that records a minimum hold.
func kept(name, id string, call, until int64) []Event {
	return []Event{{Op: Kept, Name: name, Hold: id, Call: call, Ret: call, Until: until}}
}

// Check accepts valid histories, and finds each violation.
func TestCheckFindsViolations(t *testing.T) {
	join := slices.Concat[[]Event]
	for name, h := range map[string][]Event{
		"one after the other": join(at("n", "a", 1, 10, 20, 22), at("n", "b", 2, 21, 30, 32)),
		"two names":           join(at("n", "a", 9, 10, 20, 22), at("m", "b", 1, 12, 30, 32)),
		"a long wait": join(at("n", "a", 1, 10, 20, 22),
			[]Event{{Op: Lock, Name: "n", Hold: "b", Call: 1, Ret: 21, Token: 2, Until: 40}}),
		"lost, then another": join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 26, 30, 32)),
		"re-entered, extended": join(at("n", "a", 1, 10, 20, 22), during(Reenter, "n", "a", 1, 11, 12),
			during(Inner, "n", "a", 0, 13, 14), during(Extend, "n", "a", 1, 15, 16)),
		"extended beside the release": join(at("n", "a", 1, 10, 20, 22), during(Extend, "n", "a", 1, 21, 24)),
		"extended beside the next lock": join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 26, 30, 32),
			during(Extend, "n", "a", 1, 25, 29)),
		"failures say nothing":       {{Op: Lock, Name: "n", Hold: "a", Call: 1, Ret: 2, Kind: "held", Err: "held"}},
		"unlock not confirmed":       join(at("n", "a", 1, 10, 20, 22)[:2], at("n", "b", 2, 21, 30, 32)),
		"minimum hold, then another": join(at("n", "a", 1, 10, 20, 22), kept("n", "a", 11, 40), at("n", "b", 2, 41, 50, 52)),
		"granted in an unlock":       join(at("n", "a", 1, 10, 20, 40), at("n", "b", 2, 25, 30, 32)),
	} {
		if err := Check(h); err != nil {
			t.Errorf("%s: the history is valid, but Check returned %v", name, err)
		}
	}
	for name, h := range map[string][]Event{
		"overlap":                join(at("n", "a", 1, 10, 20, 22), at("n", "b", 2, 15, 30, 32)),
		"inclusion":              join(at("n", "a", 1, 10, 40, 42), at("n", "b", 2, 15, 20, 22)),
		"before its end":         join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 24, 30, 32)),
		"during a minimum hold":  join(at("n", "a", 1, 10, 20, 22), kept("n", "a", 11, 40), at("n", "b", 2, 30, 50, 52)),
		"the token falls":        join(at("n", "a", 2, 10, 20, 22), at("n", "b", 1, 25, 30, 32)),
		"the token stays":        join(at("n", "a", 2, 10, 20, 22), at("n", "b", 2, 25, 30, 32)),
		"re-entry, other token":  join(at("n", "a", 1, 10, 20, 22), during(Reenter, "n", "a", 2, 11, 12)),
		"extension, other token": join(at("n", "a", 1, 10, 20, 22), during(Extend, "n", "a", 2, 11, 12)),
		"extended after release": join(at("n", "a", 1, 10, 20, 22), during(Extend, "n", "a", 1, 23, 24)),
		"extended during another hold": join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 26, 30, 32),
			during(Extend, "n", "a", 1, 27, 29)),
		"inner unlock without re-entry": join(at("n", "a", 1, 10, 20, 22), during(Inner, "n", "a", 0, 13, 14)),
		"two inner unlocks of a re-entry": join(at("n", "a", 1, 10, 20, 22), during(Reenter, "n", "a", 1, 11, 12),
			during(Inner, "n", "a", 0, 13, 14), during(Inner, "n", "a", 0, 15, 16)),
	} {
		if Check(h) == nil {
			t.Errorf("%s: Check found no violation", name)
		}
	}
}

// Two recorders write one hold each, and Read returns both.
func TestRecordedHistory(t *testing.T) {
	dir := t.TempDir()
	for process, events := range map[string][]Event{"b": at("n", "b", 2, 25, 30, 32), "a": at("n", "a", 1, 10, 20, 22)} {
		r := must.Get(NewRecorder(dir, process))(t)
		for _, e := range events {
			must.Do(t, r.Put(e))
		}
		must.Do(t, r.Close())
	}
	events := must.Get(Read(dir))(t)
	holds, err := Holds(events)
	if err != nil || len(holds) != 2 || holds[0].ID != "a" || holds[0].Until != 20 || holds[1].Left != 32 {
		t.Fatalf("the holds are %+v, %v", holds, err)
	}
	if gap := Gaps(holds)["n"]; gap != 5*time.Nanosecond {
		t.Errorf("the gap is %v, want 5ns", gap)
	}
}
