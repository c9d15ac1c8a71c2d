package transport

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/long"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// patience bounds every wait of a test. Only a failing test waits that long.
const patience = 20 * time.Second

// A server is one redis-server process that the test has started.
type server struct {
	t    testing.TB
	dir  string
	addr string
	port string
	env  []string
	args []string

	cmd    *exec.Cmd
	exited chan struct{}
	output *logBuffer
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func redisServer(t testing.TB) string {
	t.Helper()
	if !long.Enabled() {
		t.Skip("needs -long: it starts servers")
	}
	path, err := redisproc.Find()
	if err != nil {
		redistest.Need(t)
	}
	return path
}

// startServer runs redis-server on a free port of 127.0.0.1, and stops it at the end of the test.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	return startServerIn(t, nil, args...)
}

// startServerIn starts a server with additional environment variables.
func startServerIn(t testing.TB, env []string, args ...string) *server {
	t.Helper()
	path := redisServer(t)
	dir, err := os.MkdirTemp("", "pool") // paths from t.TempDir are too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, env: env, args: args}
	t.Cleanup(func() {
		s.kill()
		_ = os.RemoveAll(dir)
	})
	for range 10 {
		s.port = freePort(t)
		s.addr = "127.0.0.1:" + s.port
		if s.launch(path) {
			return s
		}
	}
	t.Fatalf("redis-server did not start:\n%s", s.output)
	return nil
}

func freePort(t testing.TB) string {
	t.Helper()
	port, err := redisproc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// launch starts the server and reports whether it runs; another process may have taken the port.
func (s *server) launch(path string) bool {
	s.t.Helper()
	args := []string{"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--unixsocket", s.socket(), "--enable-debug-command", "yes"}
	s.output = &logBuffer{}
	s.cmd = exec.Command(path, append(args, s.args...)...)
	s.cmd.Env = append(os.Environ(), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	cmd := s.cmd
	go func() {
		_ = cmd.Wait() // killed servers return an error
		close(exited)
	}()
	return poll(func() bool {
		select {
		case <-exited:
			return true
		default:
		}
		return strings.Contains(s.output.String(), "eady to accept connections")
	}) && s.running()
}

func (s *server) running() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func (s *server) socket() string { return filepath.Join(s.dir, "s") }
func (s *server) url() string    { return "redis://" + s.addr }

func (s *server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// kill kills the server and waits for it.
func (s *server) kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may already have ended
	<-s.exited
}

// do runs one command on a separate connection.
func (s *server) do(args ...any) any {
	s.t.Helper()
	c, err := redis.Dial("unix", s.socket())
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Do(fmt.Sprint(args[0]), args[1:]...)
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

func (s *server) text(args ...any) string {
	s.t.Helper()
	text, err := redis.String(s.do(args...), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// poll calls ok until it returns true, or until patience has passed.
func poll(ok func() bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !poll(ok) {
		t.Fatalf("timed out waiting for: %s", what)
	}
}
