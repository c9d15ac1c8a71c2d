package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// H74: the tests pass with and without a Docker engine, an image, a way to pull one, and a redis-server; what is left out
// says so. This test runs one scenario again in each of these environments that can be made here.
func TestTheTestsPassInEachEnvironment(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nowhere := t.TempDir()
	noEngine := []string{"DOCKER_HOST=unix://" + filepath.Join(nowhere, "none.sock")}
	noImage := []string{"REDLOCK_TEST_IMAGE=127.0.0.1:1/none:1"} // nothing listens there
	noServer := []string{"PATH=" + nowhere, "REDLOCK_REDIS_SERVER="}
	_, serverErr := processBackend()
	for _, one := range []struct {
		name           string
		env            []string
		engine, server bool     // it needs one
		says           []string // in its output
	}{
		{"no engine, a server", noEngine, false, true, []string{"processes of", "no Docker engine"}},
		{"no engine, no server", append(noEngine, noServer...), false, false, []string{"SKIP", "needs a Docker engine or an installed"}},
		{"an engine that cannot pull, a server", noImage, true, true, []string{"processes of", "cannot be pulled"}},
		{"an engine that cannot pull, no server", append(noImage, noServer...), true, false, []string{"SKIP", "cannot be pulled"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			if _, err := chooseBackend(); one.engine && (err != nil || engine == nil) {
				t.Skip("this test needs a Docker engine, and REDLOCK_TEST_MASTERS not to be process")
			}
			if one.server && serverErr != nil {
				t.Skipf("this test needs an installed redis-server: %v", serverErr)
			}
			cmd := exec.Command(exe, "-test.v", "-test.run", "^TestMastersAnswerHangDieAndComeBackEmpty$")
			cmd.Env = append(os.Environ(), "REDLOCK_TEST_MASTERS=")
			cmd.Env = append(cmd.Env, one.env...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, text := range one.says {
				if !strings.Contains(string(out), text) {
					t.Errorf("it does not say %q:\n%s", text, out)
				}
			}
		})
	}
}
