package redlock_test

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/worker"
)

// TestMain runs the tests or, in a process that a test has started, a worker.
func TestMain(m *testing.M) {
	if worker.Role() != "" {
		os.Exit(worker.Main(pairs))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // most tests cause warnings
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given { // the tests on real masters mostly wait for TTLs and quarantines
		parallel := "4"
		if !long.Enabled() {
			parallel = "12"
		}
		if err := flag.Set("test.parallel", parallel); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// rounds returns the number of repetitions of a test, which is small without -long.
func rounds(full, short int) int {
	if !long.Enabled() {
		return short
	}
	return full
}
