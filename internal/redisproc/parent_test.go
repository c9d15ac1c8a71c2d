//go:build unix

package redisproc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc"
)

const parentEnv = "REDISPROC_TEST_PARENT"

// orphan runs this test binary as a parent that starts a server, kills the parent without warning, and returns the
// server's process id.
func orphan(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	dir, err := os.MkdirTemp("", "orphan-*") // a killed parent removes no files
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cmd.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			pid, _ = strconv.Atoi(text)
			break
		}
	}
	if pid == 0 || !alive(pid) {
		t.Error("the parent did not start a server")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return pid
}

// parent runs the program that TestServersDieWithTheirParent kills. Before it prints the server's process id it ends
// many threads, which must not end the server.
func parent() {
	s, err := redisproc.Start(context.Background(), redisproc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 50 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		}()
		<-done
	}
	fmt.Printf("server %d\n", s.PID())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or until the test has ended
	_ = s.Stop()
}
