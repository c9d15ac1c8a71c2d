package hazard

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fake is a test that takes note of its own failures.
type fake struct {
	testing.TB
	failed   bool
	cleanups []func()
	said     []string
}

func (f *fake) Helper()          {}
func (f *fake) Skipped() bool    { return false }
func (f *fake) Cleanup(g func()) { f.cleanups = append(f.cleanups, g) }
func (f *fake) Error(...any)     { f.failed = true }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = true
	f.said = append(f.said, fmt.Sprintf(format, args...))
}
func (f *fake) Logf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestAListedClaimMustFailAndAnotherMustNot(t *testing.T) {
	known["listed"] = "a sentence"
	defer delete(known, "listed")
	bodies := map[string]struct {
		body   func(t testing.TB)
		passes bool
	}{
		"passes":         {func(testing.TB) {}, true},
		"only logs":      {func(t testing.TB) { t.Log("a"); t.Logf("b") }, true},
		"Errorf":         {func(t testing.TB) { t.Errorf("wrong %d", 1) }, false},
		"Error":          {func(t testing.TB) { t.Error("wrong") }, false},
		"Fatalf":         {func(t testing.TB) { t.Fatalf("wrong"); panic("goes on") }, false},
		"Fatal":          {func(t testing.TB) { t.Fatal("wrong"); panic("goes on") }, false},
		"FailNow":        {func(t testing.TB) { t.FailNow(); panic("goes on") }, false},
		"panics":         {func(testing.TB) { panic("wrong") }, false},
		"in its cleanup": {func(t testing.TB) { t.Cleanup(func() { t.Fatal("wrong") }) }, false},
	}
	for name, b := range bodies {
		var f fake
		Claim(&f, "listed", b.body)
		if f.failed != b.passes || len(f.said) != 1 || !strings.Contains(f.said[0], "a sentence") {
			t.Errorf("%s: the test fails: %v; %q", name, f.failed, f.said)
		}
		if len(f.cleanups) > 0 {
			t.Errorf("%s: a cleanup is left to the test", name)
		}
	}
	var f fake
	Claim(&f, "not listed", func(t testing.TB) { t.Errorf("wrong") })
	if !f.failed {
		t.Error("a claim that is not listed may fail")
	}
}

func TestAFailedSetupIsNoKnownFault(t *testing.T) {
	known["listed"] = "a sentence"
	defer delete(known, "listed")
	var f fake
	Claim(&f, "listed", func(t testing.TB) { Setup(t).Fatalf("no server"); panic("goes on") })
	if !f.failed || f.said[0] != "in the set-up: no server" {
		t.Errorf("the test fails: %v; %q", f.failed, f.said)
	}
}

// Each listed id is that of some test, and each has its sentence.
func TestEachKnownFaultHasATest(t *testing.T) {
	var texts strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || !strings.Contains(path, "hazard") {
			return err
		}
		text, err := os.ReadFile(path)
		texts.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, sentence := range known {
		if !strings.Contains(texts.String(), `"`+id+`"`) {
			t.Errorf("%q is listed, and no test claims it", id)
		}
		if sentence == "" {
			t.Errorf("%q has no sentence", id)
		}
	}
}
