//go:build !unix

package integration

import "syscall"

// Processes cannot be stopped on this system, so the scenarios do not stop any.
const (
	stopSignal     = syscall.Signal(0)
	continueSignal = syscall.Signal(0)
)
