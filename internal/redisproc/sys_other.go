//go:build !unix

package redisproc

import "os"

// No Redis server exists for these systems. The package compiles so that packages that import it compile, too.
var (
	termSignal   = os.Kill
	pauseSignal  = os.Interrupt
	resumeSignal = os.Interrupt
)
