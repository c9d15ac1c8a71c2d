package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
)

//go:embed clock/clock.c
var clockSource []byte

// A ShiftedServer is a server whose wall clock can be set while it runs.
type ShiftedServer struct {
	*redisproc.Server

	t    testing.TB
	file string
}

// Shift sets the server's wall clock to the time of this machine plus d.
func (s *ShiftedServer) Shift(d time.Duration) {
	s.t.Helper()
	f, err := os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY, 0o600) // not truncated: the server reads it at any time
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d.Microseconds())), 0); err != nil {
		s.t.Fatal(err)
	}
}

// Shifted starts n servers whose wall clocks can be set. Without a C compiler or outside of Linux it skips the test.
func Shifted(t testing.TB, n int, cfg redisproc.Config) (list []*ShiftedServer) {
	t.Helper()
	Need(t)
	gcc, err := exec.LookPath("gcc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("needs Linux and gcc, for a library that shifts the clock of a server: apt-get install gcc libc6-dev")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v: %s", err, out)
	}
	for range n {
		s := &ShiftedServer{t: t, file: filepath.Join(t.TempDir(), "shift")}
		s.Shift(0)
		one := cfg
		one.Env = []string{"LD_PRELOAD=" + library, "CLOCK_SHIFT=" + s.file}
		s.Server = Test(t, 1, one)[0]
		list = append(list, s)
	}
	return list
}
