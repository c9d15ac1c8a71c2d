package transport

import (
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// patience is the maximum time of every wait of a test. Only a failing test waits that long.
const patience = 20 * time.Second

// needsServers skips a test that starts servers unless -long is set and a server program is installed.
func needsServers(t testing.TB) {
	t.Helper()
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	redistest.Need(t)
}

// startServer runs a server that allows DEBUG commands, and stops it at the end of the test. It needs -long.
func startServer(t testing.TB, args ...string) *redistest.Server {
	t.Helper()
	needsServers(t)
	return newServer(t, append([]string{"--enable-debug-command", "yes"}, args...)...)
}

// newServer runs a server on a free port of 127.0.0.1, and stops it at the end of the test. It does not need -long.
func newServer(t testing.TB, args ...string) *redistest.Server {
	t.Helper()
	return redistest.Start(t, redisproc.Config{Args: args})
}
