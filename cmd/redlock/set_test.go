package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
	"github.com/redlock-go/redlock/redlock"
)

// A change of the masters by its commands, in the order of the documentation, with a short guard time.
func TestSetTakesAFleetThroughAChange(t *testing.T) {
	servers := redistest.Test(t, 5, redisproc.Config{})
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	path := filepath.Join(t.TempDir(), "masters.json")
	file := func(s redlock.Set) {
		t.Helper()
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	step := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(args, &out, &errs); got != code || !strings.Contains(out.String()+errs.String(), want) {
			t.Fatalf("%q: code %d, want %d with %q\n%s%s", args, got, code, want, out.String(), errs.String())
		}
	}
	step(0, "5 of 5 vote", append([]string{"admit", "-guard", "500ms"}, urls...)...)
	file(redlock.Set{Epoch: 1, Masters: urls[:3], Next: urls})
	step(0, "0 of 3 old masters have it", "set", path)
	step(1, "a majority is needed; see RaiseEpoch", "set", "-finish", path)
	step(0, "3 of 3 old masters have it", "set", "-raise", path)
	step(1, "may live for another", "set", "-finish", "-timeout", "400ms", path)
	step(0, "5 of 5 next masters may act alone\nnext: give the programs the file of epoch 2", "set", "-finish", path)
	step(1, "guard time 500ms, epoch 1: redlock: the masters have changed", append([]string{"status", "-guard", "500ms"}, urls[3:]...)...)
	file(redlock.Set{Epoch: 2, Masters: urls})
	step(0, "5 of 5 masters say that they may act alone, 0 have the epoch\nnext: when", "set", path)
	step(0, "5 have the epoch\n", "set", "-raise", path)
}

func TestSetRefusesWhatIsNoSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "masters.json")
	for text, want := range map[string]string{
		"{":                             "no set of masters",
		`{"epoch":1,"masters":["x"]}`:   "no next ones",
		`{"epoch":0,"masters":["x:1"]}`: "redis://",
		`{"epoch":0,"more":1}`:          "more",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := run([]string{"set", path}, &out, &errs); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: code %d, %q, want %q", text, code, errs.String(), want)
		}
	}
	for _, args := range [][]string{{"set"}, {"set", path, path}, {"set", path + "-none"}, {"status", "-raise", "redis://x"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 {
			t.Errorf("%q: code %d", args, code)
		}
	}
}
