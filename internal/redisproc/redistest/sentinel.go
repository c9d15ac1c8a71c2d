package redistest

import (
	"fmt"
	"net"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// Sentinel starts a sentinel that monitors the server at addr under the name "master", until the test ends. quorum is
// the number of sentinels that must agree that the master is down. lines are further lines of its configuration file,
// such as "requirepass secret".
func Sentinel(t testing.TB, cfg redisproc.Config, addr string, quorum int, lines ...string) *redisproc.Server {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Sentinel = true
	cfg.File = append([]string{fmt.Sprintf("sentinel monitor master %s %s %d", host, port, quorum)}, lines...)
	return Test(t, 1, cfg)[0]
}
