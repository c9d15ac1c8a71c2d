package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/history"
)

// artifactsEnv names an environment variable with the directory for files of failed scenarios. The default is the
// system's temporary directory.
const artifactsEnv = "REDLOCK_TEST_ARTIFACTS"

// keep copies the histories and the log of faults of a failed scenario to a directory that is not removed.
func (x *deployment) keep() {
	x.Helper()
	if !x.Failed() {
		return
	}
	base := os.Getenv(artifactsEnv)
	if base == "" {
		base = os.TempDir()
	}
	dir, err := os.MkdirTemp(base, "redlock-failed-*")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "history"), os.DirFS(x.history.Dir))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "faults.log"), []byte(strings.Join(x.faults, "\n")+"\n"), 0o600)
	}
	if err != nil {
		x.Errorf("cannot keep the history: %v", err)
		return
	}
	x.Logf("the history and the log of faults are in %s", dir)
}

// note writes a line to the log of faults. The time in the line is from the same clock as the history.
func (x *deployment) note(format string, args ...any) {
	x.faults = append(x.faults, fmt.Sprintf("%d %s %s", history.Stamp(), time.Now().Format("15:04:05.000"),
		fmt.Sprintf(format, args...)))
}
