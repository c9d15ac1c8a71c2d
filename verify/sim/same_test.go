package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/must"
)

var (
	reruns = flag.Int("reruns", 0, "number of runs per seed in TestSameSeedRepeatsRun; 0 means 10")
	busy   = flag.Int("busy", 2, "number of goroutines that keep the processors busy in TestSameSeedRepeatsRun")
)

// sameSeeds is the number of seeds that are run repeatedly.
const sameSeeds = 20

// A difference describes how a run of a seed differs from its first run.
type difference struct {
	Seed        uint64
	Run         int
	First, Then string
}

// Runs of the same seed are identical, to the last message, even on a busy machine.
func TestSameSeedRepeatsRun(t *testing.T) {
	binary := needSteady(t)
	n := *reruns
	if n == 0 {
		n = 10
	}
	stop := make(chan struct{})
	defer close(stop)
	for range *busy {
		go func() {
			for x := 0; ; x++ {
				if x%1000 == 0 {
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		}()
	}
	c := child{first: *firstSeed, seeds: sameSeeds, kind: *kindForce, again: n, binary: binary}
	different := 0
	sum := c.runAgain(t, func(d difference) {
		different++
		t.Errorf("run %d of seed %d differs from the first run:\n  %s\n  %s", d.Run, d.Seed, d.First, d.Then)
	})
	t.Logf("%d runs of %d seeds, %d differ", sum.Runs, sameSeeds, different)
	if sum.Runs != n*sameSeeds {
		t.Errorf("there were %d runs, want %d", sum.Runs, n*sameSeeds)
	}
}

// again runs each seed several times, and reports transcripts that differ from the first one.
func again(t *testing.T, out *json.Encoder, times int) {
	t.Helper()
	sum := summary{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seedCount); seed++ {
		first := ""
		for n := range times {
			if sum.Runs%collectEvery == 0 {
				runtime.GC()
			}
			sum.Runs++
			transcript := one(t, seed).Transcript()
			if n == 0 {
				first = transcript
			}
			if transcript == first {
				continue
			}
			a, b := firstDifference(first, transcript)
			must.Do(t, out.Encode(line{Other: &difference{seed, n, a, b}}))
		}
	}
	must.Do(t, out.Encode(line{Sum: &sum}))
}

// firstDifference returns the first lines in which the transcripts a and b differ, with a few lines of context.
func firstDifference(a, b string) (inA, inB string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			from := max(0, i-3)
			return strings.Join(x[from:min(i+3, len(x))], "\n    "), strings.Join(y[from:min(i+3, len(y))], "\n    ")
		}
	}
	return fmt.Sprintf("%d lines", len(x)), fmt.Sprintf("%d lines", len(y))
}

// isChild reports whether this process runs schedules for another process.
func isChild() bool { return os.Getenv(childEnv) != "" }
