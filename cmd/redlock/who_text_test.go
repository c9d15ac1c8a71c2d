package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// H115: who prints the state of a name, and omits unknown values, such as the start of a hold. It does not print them
// as zero.
func TestWhoText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 10, 20, 30, 0, time.UTC)
	with := func(change func(w *redlockinfo.Inspection)) redlockinfo.Inspection {
		w := redlockinfo.Inspection{
			Client: redlockinfo.Client{ID: "u:7:host/3", Label: "host/3", Since: at, On: 5},
			Left:   7 * time.Second, Token: 1_777_630_830_000_000, N: 5,
		}
		change(&w)
		return w
	}
	for _, c := range []struct {
		name       string
		who        redlockinfo.Inspection
		text, json string
	}{
		{"nobody", redlockinfo.Inspection{Answered: 4, N: 5, Free: true},
			`"n": no client holds it, according to 4 of 5 masters` + "\n",
			`{"name":"n","held":false,"kept":false,"free":true,"on":0,"masters":5,"waiters":0,"queue":[],"readers":0}` + "\n"},
		{"unknown", redlockinfo.Inspection{
			Answered: 4, N: 5, Quarantined: 2, Partial: []redlockinfo.Lease{
				{Client: redlockinfo.Client{ID: "u:7:pay", Label: "pay", On: 2}, Left: 27 * time.Second},
			},
		}, // H163
			`"n": it is unknown whether a client holds it: 2 of 5 masters have it (pay, 27s left); 2 do not vote and ` +
				"may have forgotten it; 1 did not answer\n",
			`{"name":"n","held":false,"kept":false,"free":false,"on":0,"masters":5,"waiters":0,"queue":[],"readers":0,` +
				`"partial":[{"lease":"u:7:pay","label":"pay","left_ms":27000,"on":2}],"quarantined":2}` + "\n"},
		{"held", with(func(*redlockinfo.Inspection) {}),
			`"n": held by "host/3" since 2026-05-01 10:20:30 UTC, 7s left, token 1777630830000000, on 5 of 5 masters` + "\n",
			`{"name":"n","held":true,"kept":false,"free":false,"lease":"u:7:host/3","label":"host/3",` +
				`"since":"2026-05-01T10:20:30Z","left_ms":7000,"token":1777630830000000,"on":5,` +
				`"masters":5,"waiters":0,"queue":[],"readers":0}` + "\n"},
		{"held, with a value", with(func(w *redlockinfo.Inspection) { w.Value = "10.0.0.7:8080\n<v2>" }),
			`"n": held by "host/3" since 2026-05-01 10:20:30 UTC, 7s left, token 1777630830000000, ` +
				`value "10.0.0.7:8080\n<v2>", on 5 of 5 masters` + "\n",
			`{"name":"n","held":true,"kept":false,"free":false,"lease":"u:7:host/3","label":"host/3",` +
				`"since":"2026-05-01T10:20:30Z","left_ms":7000,"token":1777630830000000,"value":"10.0.0.7:8080\n<v2>","on":5,` +
				`"masters":5,"waiters":0,"queue":[],"readers":0}` + "\n"},
		{"held by a writer, by an id without a time", with(func(w *redlockinfo.Inspection) {
			w.Token, w.Since = 0,
				time.Time{}
		}),
			`"n": held by the writer "host/3", 7s left, on 5 of 5 masters` + "\n",
			`{"name":"n","held":true,"kept":false,"free":false,"lease":"u:7:host/3","label":"host/3","left_ms":7000,"on":5,` +
				`"masters":5,"waiters":0,"queue":[],"readers":0}` + "\n"},
		{"kept", with(func(w *redlockinfo.Inspection) { w.Kept = true }),
			`"n": unlocked by "host/3", which had held it since 2026-05-01 10:20:30 UTC; unavailable for another 7s ` +
				"(minimum hold), token 1777630830000000, on 5 of 5 masters\n",
			`{"name":"n","held":true,"kept":true,"free":false,"lease":"u:7:host/3","label":"host/3",` +
				`"since":"2026-05-01T10:20:30Z","left_ms":7000,"token":1777630830000000,"on":5,` +
				`"masters":5,"waiters":0,"queue":[],"readers":0}` + "\n"},
		{"read", redlockinfo.Inspection{Answered: 5, ReaderCount: 2, Readers: []redlockinfo.Client{
			{ID: "r1", Label: "a", Since: at, On: 5}, {ID: "r2", Label: "b", On: 3},
		}, N: 5},
			`"n": held by 2 readers` + "\n" + `   - "a" reads since 2026-05-01 10:20:30 UTC, on 5 of 5 masters` + "\n" +
				`   - "b" reads, on 3 of 5 masters` + "\n",
			`{"name":"n","held":true,"kept":false,"free":false,"on":0,"masters":5,"waiters":0,"queue":[],"readers":2,` +
				`"read_by":[` +
				`{"lease":"r1","label":"a","since":"2026-05-01T10:20:30Z","on":5},{"lease":"r2","label":"b","on":3}]}` + "\n"},
		{"awaited", redlockinfo.Inspection{
			Answered: 5, WaiterCount: 12, N: 5, Free: true,
			Waiters: []redlockinfo.Client{{Label: "w"}},
		},
			`"n": no client holds it, according to 5 of 5 masters` + "\n" + `   1. "w" waits for 3s` + "\n  and 11 more\n",
			`{"name":"n","held":false,"kept":false,"free":true,"on":0,"masters":5,"waiters":12,` +
				`"queue":[{"place":1,"label":"w","for_ms":3000}],"readers":0}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // no time passes in the bubble
				for i := range c.who.Waiters {
					c.who.Waiters[i].Since = time.Now().Add(-3 * time.Second)
				}
				for _, json := range []bool{false, true} {
					var out bytes.Buffer
					want := c.text
					if json {
						want = c.json
					}
					(&console{json: json, stdout: &out}).result(newJSONWho("n", c.who), whoText("n", c.who))
					if got := out.String(); got != want {
						t.Errorf("who printed\n%swant\n%s", got, want)
					}
				}
			})
		})
	}
}
