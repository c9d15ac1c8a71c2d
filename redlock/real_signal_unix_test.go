//go:build unix

package redlock_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/redlock-go/redlock/internal/worker"
)

// Signals that stop a worker as a suspended machine does, and let it run on.
var (
	stopSignal     os.Signal = syscall.SIGSTOP
	continueSignal os.Signal = syscall.SIGCONT
)

// stop stops the process, and returns when it has stopped: a signal alone may come after its next command.
func stop(t testing.TB, w *worker.Process) {
	t.Helper()
	w.Signal(stopSignal)
	var status syscall.WaitStatus
	pid := w.Cmd.Process.Pid
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the worker has not stopped: %v, %v", err, status)
	}
}
