package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/internal/must"
)

const (
	collectEvery = 20     // number of runs between garbage collections
	tellEvery    = 10_000 // number of runs between progress reports
)

// A line is one report of a child process. One of its fields is set: the seed of a run that starts, the violations of a
// seed, the final summary, or a difference.
type line struct {
	Begin *uint64  `json:",omitempty"`
	Bad   *badSeed `json:",omitempty"`
	Sum   *summary `json:",omitempty"`
	// Other is a run that differs from the first run of its seed.
	Other *difference `json:",omitempty"`
}

type badSeed struct {
	Seed       uint64
	Problems   []string
	Transcript string
}

type summary struct {
	Runs int
	Counts
	// Reached is the number of runs that reached each situation.
	Reached [situationCount]int
}

func (s *summary) count(r *Result) {
	s.add(summary{Runs: 1, Counts: r.Counts})
	for i, yes := range r.reached {
		if yes {
			s.Reached[i]++
		}
	}
}

func (s *summary) add(o summary) {
	s.Runs += o.Runs
	s.Locks += o.Locks
	s.Imports += o.Imports
	s.Repairs += o.Repairs
	s.Writes += o.Writes
	s.Connections += o.Connections
	s.Scripts += o.Scripts
	for i, n := range o.Reached {
		s.Reached[i] += n
	}
}

// one runs one seed in its own bubble.
func one(t *testing.T, seed uint64) (r *Result) {
	t.Helper()
	setup := Setup{Seed: seed, Kind: *kindForce}
	if *traceFile != "" {
		file := must.Get(os.Create(*traceFile))(t)
		defer file.Close()
		setup.Trace = file
	}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Run(setup); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// TestChild runs schedules on behalf of a test in another process.
func TestChild(t *testing.T) {
	if !isChild() {
		return
	}
	out := json.NewEncoder(os.Stdout)
	if *reruns > 0 {
		again(t, out, *reruns)
		return
	}
	report := func(l line) {
		must.Do(t, out.Encode(l))
	}
	kinds := strings.Split(*kindGiven, ",")
	sum := summary{}
	for seed := *firstSeed; sum.Runs < *seedCount; seed++ {
		if *kindGiven != "" && !slices.Contains(kinds, kindNames[kindOf(&Setup{Seed: seed, Kind: *kindForce})]) {
			continue
		}
		report(line{Begin: &seed})
		if sum.Runs%collectEvery == 0 {
			runtime.GC()
		}
		r := one(t, seed)
		sum.count(r)
		if len(r.Problems) == 0 {
			continue
		}
		report(line{Bad: &badSeed{Seed: seed, Problems: r.Problems, Transcript: r.Transcript()}})
		if *untilBad != "" && slices.ContainsFunc(r.Problems, func(p string) bool { return strings.Contains(p, *untilBad) }) {
			break
		}
	}
	report(line{Sum: &sum})
}

// A child describes the schedules that a child process runs.
type child struct {
	first uint64
	seeds int
	kinds string // kinds of the seeds to run, separated by commas; "" for all kinds
	kind  string // the kind of all schedules; "" for the kind that each seed selects
	until string // stop after a violation whose description contains this
	again int    // number of runs per schedule; 0 is one run without comparison

	binary string // the test binary; "" for this one
	other  func(difference)
}

// runAgain runs the child process for seeds that are run repeatedly.
func (c child) runAgain(t *testing.T, other func(difference)) summary {
	t.Helper()
	c.other = other
	return c.run(t, func() {}, func(badSeed) {})
}

// run runs the child process and returns its summary. It calls begun when a seed starts, and bad for each seed with
// violations.
func (c child) run(t *testing.T, begun func(), bad func(badSeed)) summary {
	t.Helper()
	binary := c.binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestChild$", "-test.timeout=0",
		fmt.Sprintf("-first=%d", c.first), fmt.Sprintf("-seeds=%d", c.seeds), fmt.Sprintf("-reruns=%d", c.again),
		"-kinds="+c.kinds, "-kind="+c.kind, "-until="+c.until)
	cmd.Env = append(os.Environ(), childEnv+"=1", "GODEBUG=asyncpreemptoff=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var sum summary
	var rest strings.Builder
	last := c.first
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l line
		switch err := json.Unmarshal(lines.Bytes(), &l); {
		case err != nil:
			rest.WriteString(lines.Text() + "\n")
		case l.Begin != nil:
			last = *l.Begin
			begun()
		case l.Other != nil:
			c.other(*l.Other)
		case l.Bad != nil:
			bad(*l.Bad)
		case l.Sum != nil:
			sum = *l.Sum
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the child process failed in seed %d: %v\n%.4000s\n%.8000s", last, err, rest.String(), stderr.String())
	}
	return sum
}

// inParallel distributes n schedules over child processes, one for each processor, and returns the sum of their
// summaries. It calls bad for each seed with violations.
func inParallel(t *testing.T, n int, bad func(badSeed)) (sum summary) {
	t.Helper()
	processes, binary := max(1, min(runtime.NumCPU(), n/10)), without(t, *withoutGiven)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all atomic.Int64
	began := time.Now()
	begun := func() {
		if k := all.Add(1); k%tellEvery == 0 {
			t.Logf("%d of %d schedules have started after %v", k, n, time.Since(began).Round(time.Second))
		}
	}
	for i := range processes {
		c := child{first: *firstSeed + uint64(i*n/processes), seeds: (i+1)*n/processes - i*n/processes,
			kinds: *kindGiven, kind: *kindForce, binary: binary}
		wg.Go(func() {
			s := c.run(t, begun, func(b badSeed) {
				mu.Lock()
				defer mu.Unlock()
				bad(b)
			})
			mu.Lock()
			defer mu.Unlock()
			sum.add(s)
		})
	}
	wg.Wait()
	return sum
}
