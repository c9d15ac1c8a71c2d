//go:build unix

package transport

import (
	"os"
	"syscall"
)

// Signals that suspend a server, so that it hangs, and resume it.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)
