//go:build unix

package redlock_test

import (
	"os"
	"syscall"
)

// Signals that stop a worker, as the suspension of its machine would, and continue it.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)
