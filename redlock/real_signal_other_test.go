//go:build !unix

package redlock_test

import (
	"os"
)

// Processes cannot be stopped on this platform. The tests that stop processes run only on Unix, with a server.
var stopSignal, continueSignal os.Signal = os.Kill, os.Kill
