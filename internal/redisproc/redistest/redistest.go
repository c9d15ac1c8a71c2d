package redistest

import (
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// Need skips the test if no server program is installed. The message says how to install one.
func Need(t testing.TB) {
	t.Helper()
	if _, err := redisproc.Find(); err != nil {
		t.Skipf("needs a server program: %v", err)
	}
}

// Test starts n servers and stops them when the test and its subtests have ended. Without a server program it skips the
// test.
func Test(t testing.TB, n int, cfg redisproc.Config) []*redisproc.Server {
	t.Helper()
	Need(t)
	servers, err := redisproc.StartN(t.Context(), n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range servers {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	return servers
}
