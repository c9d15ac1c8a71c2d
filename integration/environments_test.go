package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// H74: the tests pass with and without a Docker engine, an image, a way to pull an image, and a redis-server. A
// skipped test names what it needs. This test runs two other tests in each environment that can be simulated here.
func TestTestsPassInEachEnvironment(t *testing.T) {
	exe := must.Get(os.Executable())(t)
	nowhere := t.TempDir()
	noEngine := []string{"DOCKER_HOST=unix://" + filepath.Join(nowhere, "none.sock")}
	noImage := []string{"REDLOCK_TEST_IMAGE=127.0.0.1:1/none:1"} // no registry listens on this port
	noServer := []string{"PATH=" + nowhere, "REDLOCK_REDIS_SERVER="}
	for _, one := range []struct {
		name           string
		env            []string
		engine, server bool     // simulating the environment needs an engine, or a server
		says           []string // substrings of the expected output
	}{
		{"no engine, a server", noEngine, false, true,
			[]string{"processes of", "SKIP", "needs containers: no Docker engine"}},
		{"no engine, no server", append(noEngine, noServer...), false, false,
			[]string{"SKIP", "needs a server program or containers: no Docker engine"}},
		{"an engine that cannot pull, a server", noImage, true, true,
			[]string{"processes of", "SKIP", "needs containers: no image"}},
		{"an engine that cannot pull, no server", append(noImage, noServer...), true, false,
			[]string{"SKIP", "needs a server program or containers: no image"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			if one.engine {
				needContainers(t)
			}
			if one.server {
				redistest.Need(t)
			}
			cmd := exec.Command(exe, "-test.v", "-test.run",
				"^(TestDatabasesOtherThanZero|TestComposeGivesFiveMasters)$")
			cmd.Env = append(os.Environ(), "REDLOCK_TEST_MASTERS=")
			cmd.Env = append(cmd.Env, one.env...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("the tests failed: %v\n%s", err, out)
			}
			for _, text := range one.says {
				if !strings.Contains(string(out), text) {
					t.Errorf("the output does not contain %q:\n%s", text, out)
				}
			}
		})
	}
}
