package redisproc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Env is the environment variable with the path of the server's program; it overrides the search in PATH.
const Env = "REDLOCK_REDIS_SERVER"

// Find returns the path of the server's program: the value of [Env], or else redis-server or valkey-server in PATH.
// The error says how to install a server, if there is none or only one before 6.2.
func Find() (string, error) {
	if name := os.Getenv(Env); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("redisproc: %s=%q: cannot run this program: %w", Env, name, err)
		}
		return path, checkVersion(path)
	}
	found := "neither redis-server nor valkey-server is in PATH"
	for _, name := range []string{"redis-server", "valkey-server"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err = checkVersion(path); err == nil {
			return path, nil
		}
		found = err.Error()
	}
	return "", fmt.Errorf("redisproc: %s: install Redis 6.2 or Valkey 7.2 or later (Debian, Ubuntu: apt-get install "+
		"redis-server; macOS: brew install redis), or set %s to the path of its program", found, Env)
}

// Before7 reports whether the program at path is a Redis before 7.0.
func Before7(path string) bool {
	v, err := version(context.Background(), path)
	return err == nil && strings.HasPrefix(v, "6.")
}

// checkVersion returns an error if the program at path is too old for the scripts, or has no version.
func checkVersion(path string) error {
	v, err := version(context.Background(), path)
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err != nil || major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("%s has version %s", path, v)
	}
	return nil
}

var versionPattern = regexp.MustCompile(`\bv=(\d+(?:\.\d+)*)`)

// versions caches the result of version for each path, because a test may start hundreds of servers.
var versions sync.Map

// version returns the version of the program at path, such as "7.0.15".
func version(ctx context.Context, path string) (string, error) {
	if v, ok := versions.Load(path); ok {
		return v.(string), nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("redisproc: %s --version: %w", path, err)
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("redisproc: %s --version: the output contains no version: %.100q", path, out)
	}
	v := string(found[1])
	versions.Store(path, v)
	return v, nil
}
