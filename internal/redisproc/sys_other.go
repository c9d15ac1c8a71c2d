//go:build !unix

package redisproc

import "os"

// No Redis server exists for these systems; the package compiles so that its importers do.
var (
	termSignal   = os.Kill
	pauseSignal  = os.Interrupt
	resumeSignal = os.Interrupt
)
