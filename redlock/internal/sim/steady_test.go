package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/internal/race"
)

// A seed decides everything but what the Go runtime draws by itself. Tried without a change of the runtime, over 300
// seeds: one processor, no collector, and no preemption by signals leave 1 run in 20 that is another; that a slice of
// time never ends changes nothing. What is left is all of this: which branch of a select is taken when several are
// ready, which of two timers of one instant runs first, where the walk through a map begins, and that a goroutine that
// calls Gosched comes back after every 61st switch, counted since the process began. So these runs have a runtime in
// which none of that is drawn. An edit that no longer applies, since the runtime is of another version, fails the tests
// that need it.
var steadyEdits = []struct{ file, text, replacement string }{
	{"rand.go", "func cheaprand() uint32 {\n", "func cheaprand() uint32 {\n\tif true {\n\t\treturn 0\n\t}\n"},
	{"rand.go", "func maps_rand() uint64 {\n\treturn rand()\n", "func maps_rand() uint64 {\n\treturn 1 << 40\n"},
	{"proc.go", "func gosched_m(gp *g) {\n\tgoschedImpl(gp, false)\n", "func gosched_m(gp *g) {\n\tgoyield_m(gp)\n"},
	{"proc.go", "const forcePreemptNS = 10 * 1000 * 1000", "const forcePreemptNS = 1000 * 1000 * 1000 * 1000"},
}

var steadyDir string // where the binary is; removed by TestMain

// steady is the test binary of this package with a runtime that draws nothing. It is built once.
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

// An editError is an edit of the runtime that does not apply.
type editError struct{ file, text string }

func (e *editError) Error() string { return "runtime/" + e.file + " does not have once: " + e.text }

// A buildError is what the compiler said.
type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.out }

// needSteady returns the steady binary, and skips the test where it cannot be.
func needSteady(t *testing.T) string {
	t.Helper()
	switch _, err := exec.LookPath("go"); {
	case race.Enabled:
		t.Skip("needs a run without -race: the race detector shuffles what is ready to run")
	case testing.Short():
		t.Skip("needs a run without -short: it builds the standard library with another runtime")
	case err != nil:
		t.Skip("needs the go command in PATH")
	}
	binary, err := steady()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
