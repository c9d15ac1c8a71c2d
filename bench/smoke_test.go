package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) == "1" { // the benchmark starts its own executable as a worker: here the test binary
		os.Exit(workerMain())
	}
	goleak.VerifyTestMain(m)
}

// runCommand runs the program and returns its exit code, standard output and standard error.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	errFile, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	var out bytes.Buffer
	code = command(args, &out, errFile)
	text, err := os.ReadFile(errFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), string(text)
}

func mustMeasure(t *testing.T, args ...string) *report {
	t.Helper()
	code, stdout, stderr := runCommand(t, append(args, "-json")...)
	if code != exitOK {
		t.Fatalf("the benchmark exited with code %d: %s", code, stderr)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, []byte(stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if stderr != "" {
		t.Errorf("output on standard error, which is not a terminal: %q", stderr)
	}
	return r
}

// want returns a figure, and fails the test unless the figure exists and is positive.
func want(t *testing.T, r *report, scenario, kase, who string, m metric) *figure {
	t.Helper()
	f := r.Figures.find(scenario, kase, who, m)
	if f == nil {
		t.Fatalf("%s, %s: the figure %s of %s is missing", scenario, kase, m.name, who)
	}
	if f.Median <= 0 {
		t.Errorf("%s, %s: %s of %s is %v", scenario, kase, m.name, who, f.Median)
	}
	return f
}

func checkPairs(t *testing.T, r *report, goroutines ...int) {
	t.Helper()
	for _, n := range goroutines {
		for _, who := range []string{nameLibrary, nameFloor} {
			for _, op := range []string{opLock, opUnlock, opPair} {
				p50, p99 := want(t, r, scenarioPairs, latencyCase(op, n), who, mP50),
					want(t, r, scenarioPairs, latencyCase(op, n), who, mP99)
				if p99.Median < p50.Median {
					t.Errorf("%s with %d goroutines: the p99 %v is below the p50 %v", who, n, p99.Median, p50.Median)
				}
			}
			want(t, r, scenarioPairs, rateCase(n), who, mRate)
			if r.Masters.Kind == kindProcess {
				want(t, r, scenarioPairs, rateCase(n), who, mServerCPU)
			}
			if left := r.Figures.find(scenarioPairs, rateCase(n), who, mLeft); left == nil || left.Max != 0 {
				t.Errorf("%s left lock keys behind: %+v", who, left)
			}
		}
	}
}

func TestMeasuresPairsAndFaultsOnProcesses(t *testing.T) {
	redistest.Need(t)
	r := mustMeasure(t, "-scenario", "pairs,faults", "-rounds", "1", "-duration", "50ms", "-goroutines", "1,8")
	checkPairs(t, r, 1, 8)
	for _, n := range []int{1, 8} {
		// H73: a master keeps only the admission record and one key for each name, and no key outlives the fences.
		if f := want(t, r, scenarioPairs, rateCase(n), nameLinger, mKeysLeft); f.Median > float64(n*namesPerWorker+1) {
			t.Errorf("%d goroutines: %v keys are left on a master, more than the record and a key for each name", n, f.Median)
		}
		if f := want(t, r, scenarioPairs, rateCase(n), nameLibrary, mKept); f.Median > 86 {
			t.Errorf("%d goroutines: a key is kept for %v s, more than the TTL plus 76 s", n, f.Median)
		}
		want(t, r, scenarioPairs, rateCase(n), nameLibrary, mBytes)
		if f := want(t, r, scenarioPairs, rateCase(n), nameLibrary, mConnections); f.Median != 1 {
			t.Errorf("%d goroutines: the library has %v connections per master, want 1", n, f.Median)
		}
		// A single caller continues when three of five masters have replied. Only the other two masters can receive several
		// of its calls in one command. So the average is at least 3/5 of two commands.
		if f := want(t, r, scenarioPairs, rateCase(n), nameLibrary, mPairCmds); f.Median > 2.1 ||
			n == 1 && f.Median < 1.2-0.1 {
			t.Errorf("%d goroutines: %v commands per pair and master, want at most 2.1, and with one goroutine at least 1.1",
				n, f.Median)
		}
	}
	for _, f := range everyFault() {
		for _, who := range []string{nameLibrary, nameFloor, nameRedsync} {
			if who == nameRedsync && f.kind == hung {
				continue
			}
			want(t, r, scenarioFaults, f.String(), who, mP50)
			want(t, r, scenarioFaults, f.String(), who, mOfHealthy)
		}
		if away := f.away; want(t, r, scenarioFaults, f.String(), nameLibrary, mP50).Median < 2*micros(away) {
			t.Errorf("%s: a pair takes less than two round trips of %v", f, away)
		}
	}
	if f := r.Figures.find(scenarioFaults, leftCase, nameLibrary, mLeft); f == nil || f.Max != 0 {
		t.Errorf("the library leaves lock keys on masters after a fault: %+v", f)
	}
}

// Every contender locks and unlocks, and its commands are counted.
func TestMeasuresEveryContender(t *testing.T) {
	redistest.Need(t)
	r := mustMeasure(t, "-scenario", "pairs", "-rounds", "1", "-duration", "50ms", "-goroutines", "4", "-impl", "all")
	for _, e := range entrants {
		want(t, r, scenarioPairs, rateCase(4), e.name, mRate)
		if f := want(t, r, scenarioPairs, rateCase(4), e.name, mPairCmds); f.Median > 3 ||
			f.Median < 1 && e.name != nameLibrary && e.name != nameLinger {
			t.Errorf("%s sends %v commands per pair and master", e.name, f.Median)
		}
	}
}

// Peers also wait for held names, in separate processes.
func TestPeersContend(t *testing.T) {
	redistest.Need(t)
	b := &bench{cfg: &config{duration: 100 * time.Millisecond, rounds: 1}, report: &report{}, prefix: "peers"}
	var err error
	if b.masters, err = startMasters(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.masters.close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{nameRedsync, "redsync/rueidis" + failFast} {
		e, err := entrantNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := contend(t.Context(), b, e, shape{processes: 2, goroutines: 2, hold: time.Millisecond}, 0)
		if err != nil {
			t.Errorf("contention with %s failed: %v", name, err)
		} else if len(c.turnList) == 0 || c.overlaps() != 0 || len(c.alone) != aloneLocks || c.commands < 1 {
			t.Errorf("%s: %d holds, %d violations, %d uncontended locks, %v commands per hold and master", name,
				len(c.turnList), c.overlaps(), len(c.alone), c.commands)
		}
	}
}

// Real processes hold the lock in each shape, and no two holds overlap.
func TestMeasuresContention(t *testing.T) {
	redistest.Need(t)
	r := mustMeasure(t, "-scenario", "contention", "-short", "-rounds", "1")
	for _, s := range []shape{oneProcess, eightPaused, eightGreedy, twoInTurns} {
		kase := s.String()
		want(t, r, scenarioContention, kase, nameIdeal, mHolds)
		for _, m := range []metric{mHolds, mOfIdeal, mWait99, mHandOff, mAlone} {
			want(t, r, scenarioContention, kase, nameLibrary, m)
		}
		// At least 3/5 of two commands, as for the pairs of a single caller.
		if f := want(t, r, scenarioContention, kase, nameLibrary, mCommands); s.processes > 1 && f.Median < 1.2-0.1 {
			t.Errorf("%s: %v commands per hold and master, want at least 1.1", kase, f.Median)
		}
		if f := r.Figures.find(scenarioContention, kase, nameLibrary, mViolations); f == nil || f.Max != 0 {
			t.Errorf("%s: holds overlap: %+v", kase, f)
		}
	}
}

func TestMeasuresSplitVotes(t *testing.T) {
	redistest.Need(t)
	r := mustMeasure(t, "-scenario", "split", "-short", "-rounds", "1")
	for _, k := range splitSizes {
		want(t, r, scenarioSplit, splitCase(k), nameLibrary, mFirst50)
		want(t, r, scenarioSplit, splitCase(k), nameLibrary, mFirstOver)
		want(t, r, scenarioSplit, splitCase(k), nameLibrary, mFirstOwn)
		want(t, r, scenarioSplit, splitCase(k), nameLibrary, mOwnOver)
		want(t, r, scenarioSplit, splitCase(k), nameLibrary, mRounds99)
	}
}

// The benchmark leaves no keys on given masters.
func TestGivenMastersAreLeftClean(t *testing.T) {
	var list []string
	servers := redistest.Test(t, 3, redisproc.Config{Name: "given"})
	for _, s := range servers {
		list = append(list, s.Addr())
	}
	r := mustMeasure(t, "-masters", strings.Join(list, ","), "-rounds", "1", "-duration", "10ms", "-goroutines", "2",
		"-scenario", "pairs,split,faults", "-short")
	checkPairs(t, r, 2)
	if r.Masters.N != 3 || r.Masters.Kind != kindGiven || r.Masters.Version == "" {
		t.Errorf("the report describes the masters as %+v", r.Masters)
	}
	if r.Figures.find(scenarioFaults, nearFaults(0)[0].String(), nameLibrary, mP50) != nil || len(r.Notes) == 0 {
		t.Errorf("faults were measured on given masters, or no note says that they were not: %q", r.Notes)
	}
	for i, s := range servers {
		c, err := dialMaster(t.Context(), i, s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Do("DBSIZE"); err != nil || n != int64(0) {
			t.Errorf("master %d has %v keys left; error %v", i, n, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	if code, out, _ := runCommand(t, "-h"); code != exitOK || !strings.Contains(out, "usage") {
		t.Errorf("-h exits with code %d and prints %q", code, out)
	}
	if code, _, stderr := runCommand(t, "-rounds", "x"); code != exitUsage || !strings.HasPrefix(stderr, "bench: ") {
		t.Errorf("with an invalid flag the benchmark exits with code %d and prints %q", code, stderr)
	}
	// No server listens on port 1 of the loopback interface.
	if code, _, stderr := runCommand(t, "-masters", "127.0.0.1:1"); code != exitFailed ||
		!strings.Contains(stderr, "master 1") {
		t.Errorf("with an unreachable master the benchmark exits with code %d and prints %q", code, stderr)
	}
}
