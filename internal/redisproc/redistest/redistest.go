package redistest

import (
	"fmt"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// Need skips the test if no server program is installed. The message says how to install one.
func Need(t testing.TB) {
	t.Helper()
	if _, err := redisproc.Find(); err != nil {
		t.Skipf("needs a server program: %v", err)
	}
}

// NeedCluster is like Need, for a test that starts nodes of a cluster: it also skips the test with a Redis before 7.0,
// which has no cluster-port.
func NeedCluster(t testing.TB) {
	t.Helper()
	Need(t)
	if path, _ := redisproc.Find(); redisproc.Before7(path) {
		t.Skipf("needs Redis 7 or Valkey: %s has no cluster-port", path)
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

// Dial connects to a server by its Unix socket, as its default user. The connection is closed when the test ends.
func Dial(t testing.TB, s *redisproc.Server) redis.Conn {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Do sends a command to a server, on a connection of its own by the Unix socket, and returns the reply.
func Do(t testing.TB, s *redisproc.Server, words ...any) any {
	t.Helper()
	c, err := redis.Dial("unix", s.Unix())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Do(fmt.Sprint(words[0]), words[1:]...)
	if err != nil {
		t.Fatalf("the command %q failed: %v", words, err)
	}
	return reply
}
