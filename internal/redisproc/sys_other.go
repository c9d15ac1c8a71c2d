//go:build !unix

package redisproc

import "os"

// There is no Redis server for these systems; the package compiles there so that its importers do.
var (
	termSignal   = os.Kill
	pauseSignal  = os.Interrupt
	resumeSignal = os.Interrupt
)
