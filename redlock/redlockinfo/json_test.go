package redlockinfo_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// The JSON of the reports has the text of an error, and an Event without its context.
func TestJSONHasTextsOfErrors(t *testing.T) {
	type key struct{}
	err := errors.New(`it is "down"`)
	for _, c := range []struct {
		v     any
		has   string
		lacks string
	}{
		{redlockinfo.Master{Addr: "a:1", Left: time.Second, Err: err},
			`{"Addr":"a:1","Shard":0,"State":"","Left":1000000000,"MaxTTL":0,"Epoch":0,"List":"","Pending":0,` +
				`"Err":"it is \"down\""}`, ""},
		{[]redlockinfo.Master{{Addr: "a:1"}}, `"Addr":"a:1"`, "Err"},
		{redlockinfo.Event{Kind: "call", Context: context.WithValue(t.Context(), key{}, 1), Err: err},
			`"Err":"it is \"down\""`, "Context"},
		{redlockinfo.Event{Kind: "call"}, `"Kind":"call"`, "Err"},
		{redlockinfo.Inspection{Client: redlockinfo.Client{ID: "x", On: 3}, N: 5}, `"On":3`, "Err"},
	} {
		text, err := json.Marshal(c.v)
		if err != nil || !strings.Contains(string(text), c.has) || c.lacks != "" && strings.Contains(string(text), c.lacks) {
			t.Errorf("got %s, %v; want %s and not %q", text, err, c.has, c.lacks)
		}
	}
}

// What was written as JSON can be read again, with the text of an error.
func TestJSONCanBeRead(t *testing.T) {
	err := errors.New("it is down")
	event := redlockinfo.Event{Kind: redlockinfo.KindVote, Op: redlockinfo.OpLock, Vote: redlockinfo.VoteFailed, Err: err}
	event.Time = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	verdict := redlockinfo.Verdict{
		Masters:  []redlockinfo.Master{{Addr: "a:1", State: redlockinfo.StateDown, Left: 1, Err: err}, {Addr: "b:1"}},
		Findings: []redlockinfo.Finding{{Severity: redlockinfo.Failure}, {Severity: redlockinfo.Notice}},
	}
	inspection := redlockinfo.Inspection{Slots: []redlockinfo.Inspection{{Client: redlockinfo.Client{ID: "x", On: 3}}}}
	for _, v := range []any{event, verdict, inspection} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		read := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, read.Interface()); err != nil || !reflect.DeepEqual(read.Elem().Interface(), v) {
			t.Errorf("got %+v, %v from %s", read.Elem(), err, text)
		}
	}
	if text, err := json.Marshal(verdict.Findings[0]); err != nil || !strings.Contains(string(text), `"failure"`) {
		t.Errorf("got %s, %v", text, err)
	}
	if err := new(redlockinfo.Severity).UnmarshalText([]byte("fatal")); err == nil {
		t.Error("an unknown severity was read")
	}
}
