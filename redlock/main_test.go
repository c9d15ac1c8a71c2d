package redlock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or, in a process that a test has started, one worker: a program of its own with locks.
func TestMain(m *testing.M) {
	if role := os.Getenv(workerEnv); role != "" {
		os.Exit(workerMain(role))
	}
	goleak.VerifyTestMain(m)
}
