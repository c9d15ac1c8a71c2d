package sim

import (
	"flag"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

var (
	seedCount    = flag.Int("seeds", 0, "how many schedules; 0: 500, 100 with the race detector, 30 without -long")
	firstSeed    = flag.Uint64("first", 0, "the seed of the first schedule")
	oneSeed      = flag.Int64("seed", -1, "the seed of a single schedule, which is printed in words")
	traceFile    = flag.String("trace", "", "with -seed: the file for the events of the schedule, as JSON lines")
	withoutGiven = flag.String("without", "", "the mutant to run, by its name in package mutants")
	kindForce    = flag.String("kind", "", "the kind of every schedule, instead of that of its seed")
	kindGiven    = flag.String("kinds", "", "only schedules of these kinds, separated by commas")
	untilBad     = flag.String("until", "", "stop after the first violation that has this in its words")
)

// childEnv is set in a process that runs schedules for another process, and reports on its standard output.
const childEnv = "REDLOCK_SIM_CHILD"

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // faults are expected here
	flag.Parse()
	if isChild() || *oneSeed >= 0 {
		// For reproducible runs, only one goroutine may run at a time, and the garbage collector only between runs.
		runtime.GOMAXPROCS(1)
		debug.SetGCPercent(-1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if steadyDir != "" {
			_ = os.RemoveAll(steadyDir)
		}
		os.Exit(code)
	}))
}
