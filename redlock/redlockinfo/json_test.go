package redlockinfo_test

import (
	"context"
	"encoding/json"
	"errors"
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
