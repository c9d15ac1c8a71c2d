package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runOf returns a report with one figure of the library, whose rounds have these values.
func runOf(m metric, values ...float64) *report {
	r := &report{Format: reportFormat, Parameters: parametersInfo{Rounds: len(values)}}
	for _, v := range values {
		r.Figures.add(scenarioPairs, rateCase(64), nameLibrary, m, v)
	}
	r.Targets = targetsOf(r.Figures)
	return r
}

// The comparison lists only significant differences, and judges correctly whether the new run is better or worse.
func TestComparisonReportsSignificantDifferences(t *testing.T) {
	for _, c := range []struct {
		name     string
		m        metric
		old, now []float64
		want     string
	}{
		{"faster", mRate, []float64{10, 11, 10, 12, 11}, []float64{20, 21, 20, 22, 21}, "better"},
		{"slower", mRate, []float64{20, 21, 20, 22, 21}, []float64{10, 11, 10, 12, 11}, "worse"},
		{"more allocations", mAllocs, []float64{20, 21, 20, 22, 21}, []float64{30, 31, 30, 32, 31}, "worse"},
		{"the same", mRate, []float64{10, 12, 11, 13, 12}, []float64{11, 12, 10, 13, 11},
			"1 figures do not differ significantly"},
		{"too few rounds", mRate, []float64{10, 11, 12}, []float64{20, 21, 22}, "fewer than 4 rounds"},
	} {
		var out bytes.Buffer
		if err := writeComparison(&out, runOf(c.m, c.old...), runOf(c.m, c.now...)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: the comparison does not contain %q:\n%s", c.name, c.want, out.String())
		}
		if strings.Contains(out.String(), "better") && c.want != "better" ||
			strings.Contains(out.String(), "worse") && c.want != "worse" {
			t.Errorf("%s: the comparison judges wrongly:\n%s", c.name, out.String())
		}
	}
}

// A saved report can be written in every form without measuring again.
func TestSavedRunIsShownAgain(t *testing.T) {
	dir := t.TempDir()
	kept, again, page := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json"), filepath.Join(dir, "p.html")
	if err := writeFile(kept, fullReport().writeJSON); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runCommand(t, "-from", kept, "-out", again, "-html", page, "-compare", kept)
	if code != exitOK || !strings.Contains(stdout, "do not differ") {
		t.Fatalf("the benchmark exited with code %d and printed %q:\n%s", code, stderr, stdout)
	}
	a, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(again); err != nil || !bytes.Equal(a, b) {
		t.Errorf("saving the report again changes it: %v", err)
	}
	if info, err := os.Stat(page); err != nil || info.Size() < 1000 {
		t.Errorf("the page is missing or short: %v, %v", info, err)
	}
}

// The reports of two runs are merged into one report with the rounds of both.
func TestRunsAreMerged(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	if err := errors.Join(writeFile(a, runOf(mRate, 10, 11).writeJSON),
		writeFile(b, runOf(mRate, 30).writeJSON)); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(a + "," + b)
	if err != nil {
		t.Fatal(err)
	}
	f := r.Figures.find(scenarioPairs, rateCase(64), nameLibrary, mRate)
	if f == nil || f.Median != 11 || f.Max != 30 || len(f.Rounds) != 3 || r.Parameters.Rounds != 3 {
		t.Errorf("the merged report has %d rounds and the figure %+v", r.Parameters.Rounds, f)
	}
}

func TestMissingFilesAreReported(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-from", "does-not-exist.json"}, exitFailed, "does-not-exist.json"},
		{[]string{"-compare", "does-not-exist.json"}, exitFailed, "does-not-exist.json"},
	} {
		if code, _, stderr := runCommand(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("with the arguments %q the exit code is %d, and the output %q", c.args, code, stderr)
		}
	}
}
