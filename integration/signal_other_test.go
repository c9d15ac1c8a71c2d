//go:build !unix

package integration

import "syscall"

// Processes cannot be stopped on this system, so the scenarios run without that.
const (
	stopSignal     = syscall.Signal(0)
	continueSignal = syscall.Signal(0)
)
