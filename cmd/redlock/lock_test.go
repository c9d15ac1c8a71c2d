//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// lock runs redlock lock and returns its standard output without the final newline.
func (f *votingDeployment) lock(args ...string) string {
	f.t.Helper()
	cmd := f.ask("lock", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("%q failed: %v", cmd.Args, err)
	}
	handle := strings.TrimSpace(string(out))
	f.t.Cleanup(func() { _ = f.ask("unlock", handle).Run() })
	return handle
}

// free waits until no master has the lock of a name.
func (f *votingDeployment) free(name string) {
	f.t.Helper()
	if n := 0; !redistest.Until(func() bool {
		n = 0
		for i := range f.urls {
			n += f.leases(i, name)
		}
		return n == 0
	}) {
		f.t.Fatalf("%q is held on %d masters", name, n)
	}
}

// A lock is held after the command that acquired it has ended, and keeps its token. unlock releases the lock, once.
func TestLockHoldsUntilUnlock(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	handle := f.lock("--ttl", "2s", "--label", "a script", "a")
	f.start("run", "--wait", "3s", "a", "--", "true").ends(exitRunHeld, `held by "a script"`) // waits longer than the TTL
	f.start("lock", "--try", "a").ends(exitRunHeld, `held by "a script"`)
	token := handle[strings.LastIndex(handle, "-")+1:]
	f.start("who", "--json", "a").ends(0, `"token":`+token)
	f.start("unlock", handle).ends(0, "")
	f.free("a")
	f.start("unlock", handle).ends(exitRunLost, "the lock was unlocked at ")
	f.start("unlock", "/etc/passwd").ends(exitRunUsage, "not a handle")
	other := filepath.Join(t.TempDir(), handlePrefix)
	writeFile(t, other, "{}")
	f.start("unlock", other).ends(exitRunUsage, "not a handle")
	if text, err := os.ReadFile(other); string(text) != "{}" {
		t.Errorf("unlock has changed another file: %q, %v", text, err)
	}
}

// With --json, a lock of several names is printed as JSON.
func TestLockOfSeveralNames(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	var r heldReport
	if err := json.Unmarshal([]byte(f.lock("--json", "b", "a")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Locks) != 2 || r.Locks[0].Name != "b" || r.Locks[1].Name != "a" || r.Locks[1].Token == 0 || r.PID == 0 {
		t.Errorf("the report is %+v, want the names b and a, tokens, and a process ID", r)
	}
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, "")
	f.start("unlock", r.Handle).ends(0, "")
	f.free("a")
	f.free("b")
}

// A lock is released when the process of --while ends, even if the process becomes a zombie, and when its maximum
// hold has passed.
func TestLockEndsWithAProcess(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	handle := f.lock("--while", strconv.Itoa(other.Process.Pid), "a")
	f.start("who", "a").ends(0, "held by")
	_ = other.Process.Kill()
	if runtime.GOOS != "linux" {
		_ = other.Wait()
	}
	f.free("a")
	_ = other.Wait()
	f.start("unlock", handle).ends(exitRunLost,
		fmt.Sprintf(": process %d, given by --while, has ended", other.Process.Pid))
	f.start("lock", "--while", strconv.Itoa(other.Process.Pid), "a").ends(exitRunUsage, "no such process")
	handle = f.lock("--max-hold", "1s", "a")
	f.free("a")
	f.start("unlock", handle).ends(exitRunLost, ": --max-hold 1s has passed")
	for want, args := range map[string][]string{
		"without --while":         {"--max-hold", "0", "a"},
		"the name of a lock":      {},
		"must be a process ID":    {"--while", "-1", "a"},
		"minimum hold -1s":        {"--min-hold", "-1s", "a"},
		"with a single name only": {"--shared", "a", "b"},
		"none of the others":      {"--shared", "--semaphore", "2", "a"},
		"semaphore is 101":        {"--semaphore", "101", "a"},
		"must be from 0 to 255":   {"--conflict-exit-code", "256", "a"},
		"--max-hold -1s: must":    {"--max-hold", "-1s", "a"},
		"from -1000 to 1000":      {"--priority", "1001", "a"},
		"unknown flag: --grac":    {"--grace", "1s", "a"},
	} {
		f.start("lock", args...).ends(exitRunUsage, want)
	}
}

// unlock reports that the lock was lost, or that the background process was killed. H166: if a majority of the masters
// hangs, it reports the result of the release, although the lock is valid for longer than unlock waits.
func TestUnlockReportsTheLoss(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	handle := f.lock("a")
	f.all("DEL", "redlock:{a}")
	f.start("unlock", handle).ends(exitRunLost, "")

	var r heldReport
	if err := json.Unmarshal([]byte(f.lock("--json", "--ttl", "4s", "a")), &r); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.free("a")
	for range 2 {
		f.start("unlock", r.Handle).ends(exitRunLost, "was killed or has crashed, so the lock was not released")
	}
	if err := os.Remove(r.Handle); err != nil {
		t.Fatal(err)
	}
	f.start("unlock", r.Handle).ends(exitRunNoQuorum, "the lock may still be held")

	if err := json.Unmarshal([]byte(f.lock("--json", "a")), &r); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.free("a")
	f.start("unlock", r.Handle).ends(exitRunLost, `got the signal "terminated"`)
	handle = f.lock("--ttl", "29s", "b") // a master may still have the last lock of a
	f.freeze(0, 1)
	f.start("unlock", handle).ends(exitRunNoQuorum, "no quorum of masters") // master 2 may lack it
}

// If the path of the socket would be too long, no lock is acquired.
func TestLongPathOfHandle(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("a", 100))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := f.ask("lock", "a")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	out, _ := cmd.CombinedOutput()
	status := cmd.ProcessState.ExitCode()
	if status != exitCannotRun || !strings.Contains(string(out), "bytes, and this system") {
		t.Errorf("lock ended with status %d and printed %q, want %d and the length", status, out, exitCannotRun)
	}
	for i := range f.urls {
		if n := f.do(i, "DBSIZE"); n != int64(1) { // the admission record
			t.Errorf("master %d has %v keys, want 1", i, n)
		}
	}
}

// If the caller of redlock lock ends before the handle is printed, no lock is held, and no process waits for the lock.
func TestCallerEndsBeforeHandle(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	handle := f.lock("a")
	waiting := f.start("lock", "a")
	f.waiting("a")
	waiting.signal(syscall.SIGKILL)
	_ = waiting.cmd.Wait()
	if !redistest.Until(func() bool { return f.do(0, "EXISTS", "redlock:{a}:queue") == int64(0) }) {
		t.Fatal("a process waits for the lock although its caller has ended")
	}
	f.start("unlock", handle).ends(0, "")

	cmd := f.ask("lock", "b")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd.Stdout = write
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != exitRunNoOutput {
		t.Errorf("without a reader of the handle, the command ended with %v, want status 74", err)
	}
	write.Close()
	f.free("b")
}

// The background process keeps neither the output nor other files of the script open, and a signal to the process group
// of the script does not reach the background process. H166: a connection without a request does not delay unlock.
func TestLockKeepsNoFilesOfScript(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	lines := filepath.Join(t.TempDir(), "lines")
	script := exec.Command("sh", "-c", `exec 5>"$0"; h=$("$1" lock --config "$2" a); echo "$h"; kill -INT 0`, lines,
		f.program, f.config)
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, _ := script.CombinedOutput() // returns when all writing ends of the pipe are closed
	handle := strings.TrimSpace(string(out))
	if !filepath.IsAbs(handle) {
		t.Fatalf("the output is %q, want a handle", handle)
	}
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, "")
	for range 2 {
		c, err := net.Dial("unix", handle)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	f.start("unlock", "--quiet", handle).ends(0, "")
	f.free("a")
}
