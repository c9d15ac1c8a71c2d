//go:build unix

package redisproc_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/redlock-go/redlock/internal/must"
	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFailedStartLeavesNothing(t *testing.T) {
	redistest.Need(t)
	t.Setenv("TMPDIR", t.TempDir())
	left := func() int {
		list := must.Get(os.ReadDir(os.TempDir()))(t)
		return len(list)
	}
	_, err := redisproc.StartN(t.Context(), 2, redisproc.Config{Args: []string{"--no-such-option", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("the error does not contain the server's output: %v", err)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, err = redisproc.Start(t.Context(), redisproc.Config{Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("the error about a used port is %v, want one that contains \"in use\"", err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d directories are left after failed starts, want none", n)
	}
}

func TestFindSaysHowToGetOne(t *testing.T) {
	t.Setenv(redisproc.Env, "")
	t.Setenv("PATH", t.TempDir())
	if _, err := redisproc.Find(); err == nil || !strings.Contains(err.Error(), redisproc.Env) {
		t.Errorf("with an empty PATH the error is %v, want one that names the environment variable", err)
	}
	old := []byte("#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 malloc=libc bits=64 build=0'\n")
	must.Do(t, os.WriteFile(filepath.Join(os.Getenv("PATH"), "redis-server"), old, 0o700))
	if _, err := redisproc.Find(); err == nil || !strings.Contains(err.Error(), "6.0.16: install Redis 6.2") {
		t.Errorf("with an old server in PATH the error is %v, want one that names the version that is needed", err)
	}
	t.Setenv(redisproc.Env, "/no/such/program")
	if _, err := redisproc.Find(); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("with a wrong %s the error is %v, want one that contains its value", redisproc.Env, err)
	}
}
