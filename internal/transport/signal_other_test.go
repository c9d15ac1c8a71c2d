//go:build !unix

package transport

import "os"

// Other systems have no such signals; servers are tested on Unix.
var stopSignal, continueSignal os.Signal = os.Kill, os.Kill
