//go:build !unix

package pool

import "os"

// There is nothing like it here; servers are tested on Unix.
var stopSignal, continueSignal os.Signal = os.Kill, os.Kill
