package transport

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// patience is the maximum time of every wait of a test. Only a failing test waits that long.
const patience = 20 * time.Second

// A server is one server process of a test.
type server struct {
	*redisproc.Server
	t               testing.TB
	dir, addr, port string
}

// needsServers skips a test that starts servers unless -long is set and a server program is installed.
func needsServers(t testing.TB) {
	t.Helper()
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	redistest.Need(t)
}

// startServer runs a server that allows DEBUG commands, and stops it at the end of the test. It needs -long.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	needsServers(t)
	return newServer(t, append([]string{"--enable-debug-command", "yes"}, args...)...)
}

// newServer runs a server on a free port of 127.0.0.1, and stops it at the end of the test. It does not need -long.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := redistest.Test(t, 1, redisproc.Config{Args: args})[0]
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return &server{Server: s, t: t, dir: s.Dir(), addr: s.Addr(), port: port}
}

func (s *server) socket() string { return s.Unix() }
func (s *server) url() string    { return s.URL() }

func (s *server) kill() { s.must(s.Kill()) }

func (s *server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// do sends one command on a separate connection and returns the reply.
func (s *server) do(args ...any) any {
	s.t.Helper()
	c, err := redis.Dial("unix", s.socket())
	s.must(err)
	defer c.Close()
	v, err := c.Do(fmt.Sprint(args[0]), args[1:]...)
	if err != nil {
		s.t.Fatalf("the command %v failed: %v", args, err)
	}
	return v
}

func (s *server) text(args ...any) string {
	s.t.Helper()
	text, err := redis.String(s.do(args...), nil)
	s.must(err)
	return text
}

// poll calls ok until ok returns true or patience has passed, and reports whether ok returned true.
func poll(ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("timed out while waiting for: %s", what)
	}
}
