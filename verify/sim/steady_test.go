package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/race"
)

// steadyEdits are edits that make the Go runtime deterministic. A seed determines everything except the random choices
// of the runtime. In a test of 300 seeds with an unchanged runtime, one processor, no garbage collection, and no
// preemption by signals, 1 run in 20 still differed. Disabling the end of time slices made no difference. The causes
// are four choices: which ready branch of a select is taken, which of two timers with the same instant runs first,
// which key of a map an iteration visits first, and whether a goroutine that calls Gosched is put first in the queue
// (the runtime does so after every 61st switch since the start of the process). The edits remove these choices. If an
// edit does not apply, because another Go version has another runtime, the tests that need the edit fail.
var steadyEdits = []struct{ file, text, replacement string }{
	{"rand.go", "func cheaprand() uint32 {\n", "func cheaprand() uint32 {\n\tif true {\n\t\treturn 0\n\t}\n"},
	{"rand.go", "func maps_rand() uint64 {\n\treturn rand()\n", "func maps_rand() uint64 {\n\treturn 1 << 40\n"},
	{"proc.go", "func gosched_m(gp *g) {\n\tgoschedImpl(gp, false)\n", "func gosched_m(gp *g) {\n\tgoyield_m(gp)\n"},
	{"proc.go", "const forcePreemptNS = 10 * 1000 * 1000", "const forcePreemptNS = 1000 * 1000 * 1000 * 1000"},
}

var steadyDir string // directory of the binary; removed by TestMain

// steady returns this package's test binary with a deterministic runtime. It builds the binary once.
var steady = sync.OnceValues(func() (binary string, err error) {
	if steadyDir, err = os.MkdirTemp("", "sim"); err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	replace, texts := map[string]string{}, map[string]string{}
	for _, e := range steadyEdits {
		path := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", e.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			texts[path], replace[path] = string(text), filepath.Join(steadyDir, e.file)
		}
		if strings.Count(texts[path], e.text) != 1 {
			return "", &editError{e.file, e.text}
		}
		texts[path] = strings.Replace(texts[path], e.text, e.replacement, 1)
	}
	for path, text := range texts {
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list, binary := filepath.Join(steadyDir, "overlay.json"), filepath.Join(steadyDir, "sim.test")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "test", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", &buildError{string(out), err}
	}
	return binary, nil
})

// An editError reports an edit of the runtime that does not apply.
type editError struct{ file, text string }

func (e *editError) Error() string {
	return "the edit of runtime/" + e.file + " does not apply: want this text exactly once: " + e.text
}

// A buildError contains the output of the compiler.
type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.out }

// needSteady returns the steady binary, and skips the test if it cannot be built.
func needSteady(t *testing.T) string {
	t.Helper()
	switch _, err := exec.LookPath("go"); {
	case race.Enabled:
		t.Skip("needs a run without -race: the race detector shuffles goroutines that are ready to run")
	case !long.Enabled():
		t.Skip("needs -long: the test builds the standard library with an edited runtime")
	case err != nil:
		t.Skip("needs the go command in PATH")
	}
	return must.Get(steady())(t)
}
