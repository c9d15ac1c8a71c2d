package redistest

import (
	"net"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// A Server is a server of one test, which its methods fail.
type Server struct {
	*redisproc.Server
	t testing.TB
}

// Start starts a server like Test.
func Start(t testing.TB, cfg redisproc.Config) *Server {
	t.Helper()
	return &Server{Test(t, 1, cfg)[0], t}
}

// Port returns the port of the server.
func (s *Server) Port() string {
	_, port, err := net.SplitHostPort(s.Addr())
	s.must(err)
	return port
}

func (s *Server) Kill()    { s.t.Helper(); s.must(s.Server.Kill()) }
func (s *Server) Restart() { s.t.Helper(); s.must(s.Server.Restart(s.t.Context())) }
func (s *Server) Pause()   { s.t.Helper(); s.must(s.Server.Pause()) }
func (s *Server) Resume()  { s.t.Helper(); s.must(s.Server.Resume()) }

// Do sends a command on a connection of its own, and returns the reply.
func (s *Server) Do(words ...any) any {
	s.t.Helper()
	return Do(s.t, s.Server, words...)
}

// Text is like Do, for a reply that is a text.
func (s *Server) Text(words ...any) string {
	s.t.Helper()
	text, err := redis.String(s.Do(words...), nil)
	s.must(err)
	return text
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// patience is the maximum time of a wait. Only a test that fails waits that long.
const patience = 2 * time.Minute

// Until calls ok until it returns true, for two minutes at most, and reports whether it did.
func Until(ok func() bool) bool {
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Await calls problem until it returns "". It ends the test with the last problem if that takes longer than bound.
func Await(t testing.TB, bound time.Duration, problem func() string) {
	t.Helper()
	for end := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		last := problem()
		if last == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: %s", bound, last)
		}
	}
}

// Eventually ends the test unless ok returns true within two minutes.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Until(ok) {
		t.Fatalf("timed out while waiting for: %s", what)
	}
}
