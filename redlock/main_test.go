package redlock_test

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in a process that a test has started, one worker: a program of its own with locks.
func TestMain(m *testing.M) {
	if role := os.Getenv(workerEnv); role != "" {
		os.Exit(workerMain(role))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // most tests bring about what is warned of
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the tests on real masters wait, for TTLs and quarantines, far more than they compute
		parallel := "4"
		if testing.Short() {
			parallel = "12"
		}
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// rounds is how often a test repeats what it does: few times with -short.
func rounds(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}
