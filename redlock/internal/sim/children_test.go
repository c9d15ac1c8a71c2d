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

	"github.com/redlock-go/redlock/redlock"
)

const (
	collectEvery = 20     // runs after which the garbage is collected
	tellEvery    = 10_000 // runs after which it is told how far they are
)

// A line is what a child process reports: a seed that it begins, what was wrong with one, or at its end the sum.
type line struct {
	Begin *uint64  `json:",omitempty"`
	Bad   *badSeed `json:",omitempty"`
	Sum   *summary `json:",omitempty"`
}

type badSeed struct {
	Seed     uint64
	Problems []string
	Story    string
	// Intact is whether the same seed shows nothing when the protection is in.
	Intact bool
}

type summary struct {
	Runs, Locks, Imports, Healings, Writes, Connections, Scripts, Grants int
}

func (s *summary) add(o summary) {
	s.Runs += o.Runs
	s.Locks += o.Locks
	s.Imports += o.Imports
	s.Healings += o.Healings
	s.Writes += o.Writes
	s.Connections += o.Connections
	s.Scripts += o.Scripts
	s.Grants += o.Grants
}

// one runs one seed in a bubble of its own, with the protection of this name taken out, if any.
func one(t *testing.T, seed uint64, missing string) *Result {
	t.Helper()
	opts, restore := takeOut(t, missing)
	defer restore()
	return bubble(t, seed, opts)
}

func bubble(t *testing.T, seed uint64, opts []redlock.Option) (r *Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		if r, err = Run(seed, opts...); err != nil {
			t.Fatal(err)
		}
	})
	return r
}

// TestChild runs schedules for a test in another process.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		return
	}
	out := json.NewEncoder(os.Stdout)
	report := func(l line) {
		if err := out.Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	kinds := strings.Split(*kindGiven, ",")
	sum := summary{}
	for seed := *firstSeed; sum.Runs < *seedCount; seed++ {
		if *kindGiven != "" && !slices.Contains(kinds, kindNames[kindOf(seed)]) {
			continue
		}
		report(line{Begin: &seed})
		if sum.Runs%collectEvery == 0 {
			runtime.GC()
		}
		r := one(t, seed, *without)
		sum.add(summary{1, r.Locks, r.Imports, r.Healings, r.Writes, r.Connections, r.Scripts, r.Grants})
		if len(r.Problems) == 0 {
			continue
		}
		bad := badSeed{Seed: seed, Problems: r.Problems, Story: r.Story()}
		if *without != "" {
			bad.Intact = len(one(t, seed, "").Problems) == 0
		}
		report(line{Bad: &bad})
		if *untilBad != "" && slices.ContainsFunc(r.Problems, func(p string) bool { return strings.Contains(p, *untilBad) }) {
			break
		}
	}
	report(line{Sum: &sum})
}

// A child is what a process is to run.
type child struct {
	first   uint64
	seeds   int
	without string
	kinds   []kind
	until   string
}

// run starts the process, waits for it, and hands on each seed that is begun and what was wrong.
func (c child) run(t *testing.T, begun func(), bad func(badSeed)) summary {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(c.kinds))
	for i, k := range c.kinds {
		names[i] = kindNames[k]
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestChild$", "-test.timeout=0", fmt.Sprintf("-first=%d", c.first),
		fmt.Sprintf("-seeds=%d", c.seeds), "-without="+c.without, "-kinds="+strings.Join(names, ","), "-until="+c.until)
	cmd.Env = append(os.Environ(), childEnv+"=1", "GODEBUG=asyncpreemptoff=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
		case l.Bad != nil:
			bad(*l.Bad)
		case l.Sum != nil:
			sum = *l.Sum
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process that ran seed %d: %v\n%.4000s\n%.8000s", last, err, rest.String(), stderr.String())
	}
	return sum
}

// inParallel divides n schedules among processes, one a processor.
func inParallel(t *testing.T, n int, bad func(badSeed)) (sum summary) {
	t.Helper()
	processes := max(1, min(runtime.NumCPU(), n/10))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all atomic.Int64
	began := time.Now()
	begun := func() {
		if k := all.Add(1); k%tellEvery == 0 {
			t.Logf("%d of %d after %v", k, n, time.Since(began).Round(time.Second))
		}
	}
	for i := range processes {
		c := child{first: *firstSeed + uint64(i*n/processes), seeds: (i+1)*n/processes - i*n/processes, without: *without}
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
