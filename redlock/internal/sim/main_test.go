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
	seedCount    = flag.Int("seeds", 0, "how many schedules to run; 0 means 500, 100 with the race detector, 30 with -short")
	firstSeed    = flag.Uint64("first", 0, "the seed of the first schedule")
	oneSeed      = flag.Int64("seed", -1, "the seed of a single schedule, which is told in words")
	withoutGiven = flag.String("without", "", "the protection that is taken out; see protections_test.go")
	kindForce    = flag.String("kind", "", "the kind of every schedule, instead of that of its seed")
	kindGiven    = flag.String("kinds", "", "only schedules of these kinds, separated by commas")
	untilBad     = flag.String("until", "", "stop after the first violation that has this in its words")
)

// childEnv tells a process that it runs schedules for another, and reports to its standard output.
const childEnv = "REDLOCK_SIM_CHILD"

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // faults are the rule here
	flag.Parse()
	if isChild() || *oneSeed >= 0 {
		// What a seed decides is decided by it alone only where one thing runs at a time, and the collector between runs.
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
