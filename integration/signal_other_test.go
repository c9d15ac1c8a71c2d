//go:build !unix

package integration

import "syscall"

// No process can be stopped here: the scenarios that do so run without.
const (
	stopSignal     = syscall.Signal(0)
	continueSignal = syscall.Signal(0)
)
