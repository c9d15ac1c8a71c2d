//go:build unix

package pool

import (
	"os"
	"syscall"
)

// Signals that stop a server as one that hangs, and let it run on.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)
