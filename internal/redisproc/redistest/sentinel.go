package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/redisproc"
)

// Sentinel starts a sentinel that monitors s under the name "master" and requires the password. It returns the
// address of the sentinel once the sentinel answers.
func Sentinel(t testing.TB, s *redisproc.Server, password string) (addr string) {
	t.Helper()
	path, err := redisproc.Find()
	if err != nil {
		t.Skip(err)
	}
	port, err := redisproc.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	host, at, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nrequirepass %s\nsentinel monitor master %s %s 1\n"+
		"sentinel down-after-milliseconds master 60000\n", port, dir, password, host, at)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := redis.Dial("tcp", addr, redis.DialPassword(password))
		if err == nil {
			_ = c.Close()
			return addr
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
