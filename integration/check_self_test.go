package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// at returns the events of one hold. Its Lock call lasts from from-1 to from, and its Unlock call from until to
// confirmed.
func at(name, id string, token, from, until, confirmed int64) []history.Event {
	return []history.Event{
		{Op: history.Lock, Name: name, Hold: id, Call: from - 1, Ret: from, Token: token, Until: until + 5},
		{Op: history.Leave, Name: name, Hold: id, Call: until},
		{Op: history.Unlock, Name: name, Hold: id, Call: until, Ret: confirmed},
	}
}

func join(parts ...[]history.Event) []history.Event {
	var all []history.Event
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// lost returns the events of a hold that is not unlocked.
func lost(name, id string, token, from, until int64) []history.Event {
	return at(name, id, token, from, until, 0)[:1:1]
}

func during(op, name, id string, token, call, ret int64) []history.Event {
	return []history.Event{{Op: op, Name: name, Hold: id, Token: token, Call: call, Ret: ret}}
}

// kept returns the event that records a minimum hold.
func kept(name, id string, call, until int64) []history.Event {
	return []history.Event{{Op: history.Kept, Name: name, Hold: id, Call: call, Ret: call, Until: until}}
}

// checkHistory accepts valid histories. For each violation, by names the checks that find it: history.Check, which
// compares intervals, the model, or both.
func TestHistoryCheckerFindsViolations(t *testing.T) {
	for name, h := range map[string][]history.Event{
		"one after the other": join(at("n", "a", 1, 10, 20, 22), at("n", "b", 2, 21, 30, 32)),
		"two names":           join(at("n", "a", 9, 10, 20, 22), at("m", "b", 1, 12, 30, 32)),
		"a long wait": join(at("n", "a", 1, 10, 20, 22),
			[]history.Event{{Op: history.Lock, Name: "n", Hold: "b", Call: 1, Ret: 21, Token: 2, Until: 40}}),
		"lost, then another": join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 26, 30, 32)),
		"re-entered, extended": join(at("n", "a", 1, 10, 20, 22), during(history.Reenter, "n", "a", 1, 11, 12),
			during(history.Inner, "n", "a", 0, 13, 14), during(history.Extend, "n", "a", 1, 15, 16)),
		"failures say nothing":  {{Op: history.Lock, Name: "n", Hold: "a", Call: 1, Ret: 2, Kind: "held", Err: "held"}},
		"unlock not confirmed":  join(at("n", "a", 1, 10, 20, 22)[:2], at("n", "b", 2, 21, 30, 32)),
		"minimum hold, another": join(at("n", "a", 1, 10, 20, 22), kept("n", "a", 11, 40), at("n", "b", 2, 41, 50, 52)),
		"granted in an unlock":  join(at("n", "a", 1, 10, 20, 40), at("n", "b", 2, 25, 30, 32)),
	} {
		if err := checkHistory(h, time.Minute); err != nil {
			t.Errorf("%s: the history is valid, but the check returned %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		h  []history.Event
		by string // the checks that find the violation
	}{
		"overlap":        {h: join(at("n", "a", 1, 10, 20, 22), at("n", "b", 2, 15, 30, 32)), by: "interval model"},
		"inclusion":      {h: join(at("n", "a", 1, 10, 40, 42), at("n", "b", 2, 15, 20, 22)), by: "interval model"},
		"before its end": {h: join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 24, 30, 32)), by: "interval model"},
		"during a minimum hold": {
			h: join(at("n", "a", 1, 10, 20, 22), kept("n", "a", 11, 40), at("n", "b", 2, 30, 50, 52)), by: "interval model"},
		"the token falls": {h: join(at("n", "a", 2, 10, 20, 22), at("n", "b", 1, 25, 30, 32)), by: "interval model"},
		"the token stays": {h: join(at("n", "a", 2, 10, 20, 22), at("n", "b", 2, 25, 30, 32)), by: "interval model"},
		"re-entry, other token": {
			h: join(at("n", "a", 1, 10, 20, 22), during(history.Reenter, "n", "a", 2, 11, 12)), by: "model"},
		"extended after the release": {
			h: join(at("n", "a", 1, 10, 20, 22), during(history.Extend, "n", "a", 1, 23, 24)), by: "model"},
		"extended during another hold": {
			h:  join(lost("n", "a", 1, 10, 20), at("n", "b", 2, 26, 30, 32), during(history.Extend, "n", "a", 1, 27, 29)),
			by: "model"},
		"inner unlock without re-entry": {
			h: join(at("n", "a", 1, 10, 20, 22), during(history.Inner, "n", "a", 0, 13, 14)), by: "model"},
	} {
		holds, err := history.Holds(c.h)
		if err != nil {
			t.Fatalf("%s: the history cannot be read: %v", name, err)
		}
		if err := history.Check(holds); (err != nil) != strings.Contains(c.by, "interval") {
			t.Errorf("%s: history.Check returned %v", name, err)
		}
		if err := checkModel(c.h, holds, time.Minute); (err != nil) != strings.Contains(c.by, "model") {
			t.Errorf("%s: checkModel returned %v", name, err)
		}
	}
}
