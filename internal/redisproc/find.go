package redisproc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// Env is the environment variable with the path of the server's program; it overrides the search in PATH.
const Env = "REDLOCK_REDIS_SERVER"

// Find returns the path of the server's program: the value of [Env], or else redis-server or valkey-server in PATH.
// The error says how to install a server.
func Find() (string, error) {
	if name := os.Getenv(Env); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("redisproc: %s=%q: cannot run this program: %w", Env, name, err)
		}
		return path, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("redisproc: neither redis-server nor valkey-server is in PATH: install one (Debian, Ubuntu: "+
		"apt-get install redis-server; macOS: brew install redis), or set %s to the path of its program", Env)
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
