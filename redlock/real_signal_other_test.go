//go:build !unix

package redlock_test

import (
	"os"
	"testing"

	"github.com/redlock-go/redlock/internal/worker"
)

// Processes cannot be stopped here; the tests that need this run only on Unix, with a server.
var stopSignal, continueSignal os.Signal = os.Kill, os.Kill

func stop(t testing.TB, _ *worker.Process) { t.Skip("needs Unix to stop a process") }
