package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// summaryReport returns the figures of the default run in two rounds.
func summaryReport() *report {
	r := &report{
		Format: reportFormat, Masters: mastersInfo{Kind: kindProcess, N: 5, Version: "redis 7.0.15"},
		Machine: machineInfo{CPUs: 2}, Parameters: parametersInfo{Rounds: 2, Duration: 500 * time.Millisecond},
	}
	for _, f := range []struct {
		line int
		who  string
		a, b float64
	}{
		{0, nameLibrary, 194, 196}, {0, nameRedsync, 322, 330}, {0, nameFloor, 172, 180},
		{1, nameLibrary, 180, 182}, {1, nameRedsync, 312, 300}, {1, nameFloor, 170, 190},
		{2, nameLibrary, 22556, 23000}, {2, nameRedsync, 8600, 8700}, {2, nameFloor, 33000, 34000},
		{3, nameLibrary, 438, 440}, {3, nameRedsync, 91437, 90000}, {3, nameIdeal, 3.21, 4},
		{4, nameLibrary, 104, 104}, {4, nameRedsync, 0, 0}, {4, nameFloor, 0, 0},
		{5, nameLibrary, 59.99, 59.98}, {5, nameRedsync, 0, 0}, {5, nameFloor, 0, 0},
	} {
		l := summaryLines[f.line]
		r.Figures.add(l.scenario, l.kase, f.who, l.m, f.a)
		r.Figures.add(l.scenario, l.kase, f.who, l.m, f.b)
	}
	r.Targets = targetsOf(r.Figures)
	return r
}

func summaryOf(t *testing.T, r *report) string {
	t.Helper()
	var out bytes.Buffer
	if err := writeSummary(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSummary(t *testing.T) {
	const want = `
The machine was busy (load 8.4 on 2 processors): the figures are unreliable.
Lock and unlock take 195 us, 0.60 times that of redsync.
64 callers complete 22778 locks per second, 2.63 times as many as with redsync.
5 masters (redis 7.0.15), 2 processors, 2 rounds of 500ms
                                    library   redsync   ratio     floor    ratio
lock and unlock, us                     195       326    0.60       176     1.11
  with one dead master, us              181       306    0.59       180    ~1.01
locks per second, 64 callers          22778      8650    2.63     33500     0.68
hand-off between processes, us *        439     90718    0.00      3.60      123
bytes per name left on a master         104         0       -         0        -
  kept for at most, s                  60.0         0       -         0        -
ratio: library / other; ~: not significant; *: compared with a local mutex
`
	r := summaryReport()
	r.Busy = "The machine was busy (load 8.4 on 2 processors): the figures are unreliable."
	if got := summaryOf(t, r); got != want {
		t.Errorf("the summary is:\n%s\nwant:\n%s", got, want)
	}
}

// The summary has at most 15 lines of 80 columns, regardless of how much was measured.
func TestSummaryStaysShort(t *testing.T) {
	r := summaryReport()
	r.Busy = "The machine was busy."
	for i := range 20 {
		r.note("%d: %s", i, strings.Repeat("a long story – ", 20))
	}
	lines := strings.Split(strings.Trim(summaryOf(t, r), "\n"), "\n")
	if len(lines) > 15 {
		t.Errorf("the summary has %d lines", len(lines))
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("a line has %d columns: %s", n, l)
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "18 more notes") {
		t.Errorf("the last line is %q", last)
	}
}

// Tables and targets are shown on request, and the summary always comes last.
func TestVerbosity(t *testing.T) {
	r, path := summaryReport(), filepath.Join(t.TempDir(), "run.json")
	r.Figures.add(scenarioPairs, rateCase(64), nameLibrary, mConnections, 2) // so one target is missed
	r.Targets = targetsOf(r.Figures)
	if err := writeFile(path, r.writeJSON); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags           string
		tables, targets bool
	}{{"", false, false}, {"-v", true, false}, {"-check", false, true}, {"-v -check", true, true},
		{"-scenario pairs", true, false}} {
		code, out, stderr := runCommand(t, append(strings.Fields(c.flags), "-from", path)...)
		if wantCode := map[bool]int{true: exitMissed, false: exitOK}[c.targets]; code != wantCode {
			t.Errorf("with %s the exit code is %d: %s", c.flags, code, stderr)
		}
		if strings.Contains(out, "pairs: rate, 64 goroutines") != c.tables || strings.Contains(out, "NOT MET") != c.targets {
			t.Errorf("with %s the wrong parts are shown:\n%s", c.flags, out)
		}
		if !strings.HasSuffix(out, "compared with a local mutex\n") {
			t.Errorf("%s: the summary does not come last:\n%s", c.flags, out)
		}
	}
}

// The progress line shows the running task, the round, and the estimated remaining time. It fits on one line of a
// terminal.
func TestProgressShowsTimeLeft(t *testing.T) {
	for _, c := range []struct {
		used        time.Duration
		done, total float64
		want        string
	}{{0, 0, 10, "time left unknown"}, {10 * time.Second, 2, 10, "40s left"}, {90 * time.Second, 9, 10, "10s left"}} {
		if got := timeLeft(c.used, c.done, c.total); got != c.want {
			t.Errorf("with %v of %v done in %v, the estimate is %q, want %q", c.done, c.total, c.used, got, c.want)
		}
	}
	var out bytes.Buffer
	p := &progress{w: &out}
	p.start(4)
	p.say(1, "pairs, %s; round %d of %d", strings.Repeat("x", 100), 1, 3)
	p.say(3, "pairs; round %d of %d", 2, 3)
	p.clear()
	lines := strings.Split(out.String(), "\r\x1b[K")
	if len(lines) != 4 || len(lines[1]) != 79 || !strings.HasPrefix(lines[2], "pairs; round 2 of 3; ") || p.done != 1 {
		t.Errorf("weight done: %v; lines %q", p.done, lines)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	quiet := newProgress(file)
	quiet.say(1, "nothing")
	if info, err := file.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%d bytes were written to a file, which is not a terminal: %v", info.Size(), err)
	}
}
