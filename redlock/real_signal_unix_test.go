//go:build unix

package redlock_test

import (
	"os"
	"syscall"
)

// Signals that stop a worker as a suspended machine does, and let it run on.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)

// stop stops the process, and returns when it has stopped: a signal alone may come after its next command.
func (w *worker) stop() {
	w.t.Helper()
	w.signal(stopSignal)
	var status syscall.WaitStatus
	pid := w.cmd.Process.Pid
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		w.t.Fatalf("the worker has not stopped: %v, %v", err, status)
	}
}
