//go:build unix

package redisproc_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		parent()
		return
	}
	goleak.VerifyTestMain(m)
}

// ask sends one command to a server over TCP and returns the first line of the reply.
func ask(t *testing.T, addr, command string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return askOn(conn, command)
}

func askOn(conn net.Conn, command string) (string, error) {
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func mustAsk(t *testing.T, addr, command, want string) {
	t.Helper()
	if got, err := ask(t, addr, command); err != nil || got != want {
		t.Fatalf("%s: got %q, %v; want %q", command, got, err, want)
	}
}

func TestServersAnswerAndLeaveNothing(t *testing.T) {
	servers := redistest.Test(t, 3, redisproc.Config{Name: "life"})
	seen := map[string]bool{}
	for _, s := range servers {
		mustAsk(t, s.Addr(), "PING", "+PONG")
		if seen[s.Addr()] || s.PID() == 0 || !strings.Contains(s.Version(), ".") || s.URL() != "redis://"+s.Addr() {
			t.Errorf("%s: address %s, process %d, version %q", s.Name(), s.Addr(), s.PID(), s.Version())
		}
		seen[s.Addr()] = true
		conn, err := net.Dial("unix", s.Unix())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := askOn(conn, "PING"); got != "+PONG" {
			t.Errorf("on the Unix socket: %q, %v", got, err)
		}
		_ = conn.Close()
	}
	for _, s := range servers {
		pid := s.PID()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			t.Errorf("second Stop: %v", err)
		}
		if _, err := os.Stat(filepath.Dir(s.Unix())); !os.IsNotExist(err) {
			t.Errorf("the directory still exists: %v", err)
		}
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d still exists", pid)
		}
		if err := s.Restart(t.Context()); err == nil || s.PID() != 0 {
			t.Errorf("Restart succeeded after Stop")
		}
	}
}

func TestRestartKeepsThePortAndForgets(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{})[0]
	addr := s.Addr()
	mustAsk(t, addr, "SET a 1", "+OK")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, addr, "PING"); err == nil {
		t.Error("a killed server replied")
	}
	if s.PID() != 0 || s.Pause() == nil || s.Resume() == nil {
		t.Error("Pause or Resume succeeded on a killed server")
	}
	if _, err := s.CPUTime(); err == nil {
		t.Error("CPUTime succeeded on a killed server")
	}
	for range 3 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Addr() != addr {
			t.Fatalf("the address changed from %s to %s", addr, s.Addr())
		}
		mustAsk(t, addr, "EXISTS a", ":0")
		mustAsk(t, addr, "SET a 1", "+OK")
	}
}

func TestRestartRemembersWithPersistence(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})[0]
	mustAsk(t, s.Addr(), "SET a 1", "+OK")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAsk(t, s.Addr(), "EXISTS a", ":1")
}

func TestPausedServerKeepsConnectionsAndStops(t *testing.T) {
	s := redistest.Test(t, 1, redisproc.Config{})[0]
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if got, err := askOn(conn, "PING"); err == nil {
		t.Fatalf("a paused server replied %q", got)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "+PONG\r\n" {
		t.Fatalf("after Resume: %q, %v", line, err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil { // Stop must work on a paused server
		t.Fatal(err)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	redistest.Need(t)
	t.Setenv("TMPDIR", t.TempDir())
	left := func() int {
		list, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	_, err := redisproc.StartN(t.Context(), 2, redisproc.Config{Args: []string{"--no-such-option", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("the error does not contain the server's output: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = redisproc.Start(t.Context(), redisproc.Config{Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("port in use: %v", err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d directories left", n)
	}
}

func TestFindSaysHowToGetOne(t *testing.T) {
	t.Setenv(redisproc.Env, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := redisproc.Find(); err == nil || !strings.Contains(err.Error(), redisproc.Env) {
		t.Errorf("with an empty PATH: %v", err)
	}
	t.Setenv(redisproc.Env, "/no/such/program")
	if _, err := redisproc.Find(); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("with a wrong %s: %v", redisproc.Env, err)
	}
}

func TestCPUTimeGrows(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux, which reports the processor time of a process")
	}
	s := redistest.Test(t, 1, redisproc.Config{Args: []string{"--enable-debug-command", "yes"}})[0]
	before, err := s.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for i := 0; ; i++ {
		mustAsk(t, s.Addr(), fmt.Sprintf("DEBUG POPULATE 100000 p%d", i), "+OK")
		after, err := s.CPUTime()
		if err != nil {
			t.Fatal(err)
		}
		if after > before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the processor time does not grow: %v", after)
		}
	}
}

// A killed parent leaves no server behind. The test starts its own binary as the parent.
func TestServersDieWithTheirParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux, where servers die with their parent")
	}
	redistest.Need(t)
	pid := orphan(t)
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("server %d outlived its parent", pid)
		}
	}
}

// alive reports whether the process runs. A zombie that has not been waited for does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
