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
	seedCount    = flag.Int("seeds", 0, "number of schedules; 0: 30, 500 with -long, 100 with -long and -race")
	firstSeed    = flag.Uint64("first", 0, "seed of the first schedule")
	oneSeed      = flag.Int64("seed", -1, "seed of a single schedule, whose transcript is printed; -1 for none")
	traceFile    = flag.String("trace", "", "with -seed: output file for the events of the schedule, as JSON lines")
	withoutGiven = flag.String("without", "", "name of the mutant in package mutants to run the schedules with")
	kindForce    = flag.String("kind", "", "kind of all schedules, instead of the kind that each seed selects")
	kindGiven    = flag.String("kinds", "", "kinds of the seeds to run, separated by commas")
	untilBad     = flag.String("until", "", "stop after the first violation whose description contains this text")
)

// childEnv is an environment variable. If it is set, this process runs schedules for another process, and reports the
// results on its standard output.
const childEnv = "REDLOCK_SIM_CHILD"

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the log would report the injected faults
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
