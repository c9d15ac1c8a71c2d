package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv)+os.Getenv(programEnv) != "" { // the benchmark starts its own executable as a worker
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestFlags(t *testing.T) {
	c, err := parseFlags([]string{"-short", "-masters", "a:1,[::1]:2,rediss://u:p@b:3/0"}, nil)
	if err != nil || c.rounds != 2 || c.duration != 100*time.Millisecond || !slices.Equal(c.goroutines, []int{64, 512}) ||
		!slices.Equal(names(c.entrants), []string{nameLibrary, nameAsync, nameLinger, nameFloor, nameRedigo}) ||
		!slices.Equal(c.masters, []string{"redis://a:1", "redis://[::1]:2", "rediss://u:p@b:3/0"}) {
		t.Errorf("the settings are %+v; error %v", c, err)
	}
}

// programEnv, if set, makes the test binary the benchmark.
const programEnv = "REDLOCK_BENCH_PROGRAM"

// The rounds are shown, with the time since the start, on a terminal only.
func TestProgressIsForTerminals(t *testing.T) {
	redistest.Need(t)
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("needs script, which starts a command on a terminal")
	}
	t.Setenv(programEnv, "1")
	line := os.Args[0] + " -impl floor -scenario cost -rounds 1 -duration 1ms"
	for shown, args := range map[bool][]string{true: {"script", "-qec", line, "/dev/null"}, false: strings.Fields(line)} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "0s: round 1 of 1: cost") != shown {
			t.Errorf("%q: %v; want that the round is shown: %v\n%s", args, err, shown, out)
		}
	}
}

// Errors do not contain the password of a URL.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"-h", "usage: go run ./bench", exitOK},
		{"-masters 127.0.0.1:1", "master 1", exitFailed}, // no server listens on port 1 of the loopback interface
		{"-masters a:1,", "entry 2 is not host:port", exitUsage},
		{"-masters a:1,b:1,a:1", "entry 3 is a duplicate", exitUsage},
		{"-masters http://:secret@a", "entry 1 is not", exitUsage},
		{"-masters redis://:secret@a:%zz", "entry 1 is not", exitUsage},
		{"-goroutines 1,0", `"0" is not a number from 1`, exitUsage},
		{"-scenario pair", `"pair" is not one of`, exitUsage},
		{"-impl flor", `"flor" is an unknown contender`, exitUsage},
		{"-rounds 0", "must be at least 1", exitUsage},
		{"-duration 1us", "must be at least 1ms", exitUsage},
		{"more", `unexpected argument "more"`, exitUsage},
	} {
		var out bytes.Buffer
		code := command(t.Context(), strings.Fields(c.args), &out, &out)
		if s := out.String(); code != c.code || !strings.Contains(s, c.want) || strings.Contains(s, "secret") {
			t.Errorf("%s: exit code %d, output %q, want %d and %q", c.args, code, s, c.code, c.want)
		}
	}
}

// measured runs the benchmark and returns its report.
func measured(t *testing.T, args ...string) *report {
	t.Helper()
	redistest.Need(t)
	var stdout, stderr bytes.Buffer
	args = append([]string{"-json", "-rounds", "1", "-duration", "20ms", "-goroutines", "4"}, args...)
	if code := command(t.Context(), args, &stdout, &stderr); code != exitOK {
		t.Fatalf("the benchmark exited with code %d: %s", code, stderr.String())
	}
	r := new(report)
	if err := json.Unmarshal(stdout.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// want fails the test unless the median of a figure lies between low and high.
func want(t *testing.T, r *report, scenario, kase, who string, m metric, low, high float64) {
	t.Helper()
	at := place{scenario, kase, who}
	if f := r.find(at, m); f == nil || f.Median < low || f.Median > high {
		t.Errorf("%v: %s is %s, want %v to %v", at, m.Metric, number(f), low, high)
	}
}

const much = 1e12

// Every contender locks and unlocks, alone and with others, and those that can wait contend in processes.
func TestMeasuresEveryContender(t *testing.T) {
	r := measured(t, "-scenario", "cost,load", "-impl", "all")
	for _, e := range entrants {
		for _, c := range [][2]string{{scenarioCost, "1 goroutine"}, {scenarioLoad, "4 goroutines"}} {
			want(t, r, c[0], c[1], e.name, mP50, 0.1, much)
			want(t, r, c[0], c[1], e.name, mRate, 1, much)
			want(t, r, c[0], c[1], e.name, mFailures, 0, 0)
			want(t, r, c[0], c[1], e.name, mAllocs, 1, 1e4)
		}
		for _, s := range shapes {
			if e.waits {
				want(t, r, scenarioLoad, s.String(), e.name, mHolds, 0, much) // 0: all in the warm-up, or after the end
				want(t, r, scenarioLoad, s.String(), e.name, mHeld, 0, 1.1)
				want(t, r, scenarioLoad, s.String(), e.name, mHoldCmds, 0.01, much)
				want(t, r, scenarioLoad, s.String(), e.name, mViolations, 0, 0)
			}
		}
	}
	// A name leaves one key on each master. A pair sends each master two commands, with an error because calls are in
	// progress when the masters are asked.
	want(t, r, scenarioCost, "1 goroutine", nameLibrary, mKeysLeft, 0.9, 1.1)
	want(t, r, scenarioCost, "1 goroutine", nameFloor, mKeysLeft, 0, 0)
	want(t, r, scenarioCost, "1 goroutine", nameLibrary, mCommands, 1, 4)
	want(t, r, scenarioCost, "1 goroutine", nameLibrary, mConns, 1, 2)
}

// Pairs succeed under each fault. redsync waits for all masters.
func TestMeasuresFaults(t *testing.T) {
	r := measured(t, "-scenario", "faults", "-impl", nameLibrary+","+nameFloor+","+nameRedigo)
	for _, f := range faults {
		for _, who := range []string{nameLibrary, nameFloor, nameRedigo} {
			want(t, r, scenarioFaults, f.String(), who, mOfHealthy, 0.001, much)
		}
		want(t, r, scenarioFaults, f.String(), nameLibrary, mFailures, 0, 0)
	}
	want(t, r, scenarioFaults, "one hung", nameRedigo, mP50, micros(peerTimeout), much)
	want(t, r, scenarioFaults, "one slow", nameRedigo, mP50, 2*micros(slowBy), much)
}

// The benchmark leaves no keys on given masters, and does not harm them.
func TestGivenMastersAreLeftClean(t *testing.T) {
	var addrs []string
	servers := redistest.Test(t, 3, redisproc.Config{Name: "given"})
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	r := measured(t, "-masters", strings.Join(addrs, ","), "-impl", nameLibrary+","+nameFloor)
	want(t, r, scenarioCost, "1 goroutine", nameLibrary, mP50, 0.1, much)
	if r.Masters != 3 || r.Version == "" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "faults are not measured") {
		t.Errorf("the report describes %d masters (%s) and has the notes %q", r.Masters, r.Version, r.Notes)
	}
	for _, s := range servers {
		if n := redistest.Do(t, s, "DBSIZE"); n != int64(0) {
			t.Errorf("%s has %d keys left", s.Addr(), n)
		}
	}
}

func TestHandOffs(t *testing.T) {
	holds := []turn{
		{Process: 1, Asked: 3000, Got: 25_000, Releasing: 30_000}, // was waiting; another process
		{Process: 0, Asked: 0, Got: 1000, Releasing: 10_000},
		{Process: 0, Asked: 2000, Got: 11_000, Releasing: 20_000},   // was waiting; same process as the last holder
		{Process: 0, Asked: 31_000, Got: 32_000, Releasing: 33_000}, // no client was waiting
	}
	if list := handOffs(holds, true); !slices.Equal(list, []float64{5}) {
		t.Errorf("the hand-offs between processes are %v us, want 5", list)
	}
	if list := handOffs(holds, false); !slices.Equal(list, []float64{1, 5}) {
		t.Errorf("all hand-offs are %v us, want 1 and 5", list)
	}
}

// Holds that overlap and tokens that do not grow are violations; a turn that failed is only a wait.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		second     turn
		violations float64
	}{
		{turn{Asked: 1, Got: 20, Releasing: 30, Token: 6}, 0},
		{turn{Asked: 1, Got: 19, Releasing: 30, Token: 6}, 1},
		{turn{Asked: 1, Got: 20, Releasing: 30, Token: 5}, 1},
		{turn{Asked: 1, Got: 15, Failed: true}, 0},
	} {
		b := &bench{report: &report{}}
		turns := []turn{{Asked: 1, Got: 10, Releasing: 20, Token: 5}, c.second}
		b.addTurns(eight, nameLibrary, turns, time.Unix(0, 0), time.Unix(0, 100), 10)
		want(t, b.report, scenarioLoad, eight.String(), nameLibrary, mViolations, c.violations, c.violations)
		want(t, b.report, scenarioLoad, eight.String(), nameLibrary, percentiles[4].wait(), float64(c.second.Got-1)/1e3, much)
	}
}
