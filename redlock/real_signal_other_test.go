//go:build !unix

package redlock_test

import "os"

// There is nothing like it here; the tests that need it run where there is a server, on Unix.
var stopSignal, continueSignal os.Signal = os.Kill, os.Kill

func (w *worker) stop() { w.t.Skip("needs Unix, where a process can be stopped") }
