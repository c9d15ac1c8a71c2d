//go:build unix

package redlock_test

import (
	"os"
	"syscall"
)

// Signals that stop a worker as a suspended machine does, and let it run on.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)
