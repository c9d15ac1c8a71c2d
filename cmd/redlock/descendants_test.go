//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// wrappers contains programs that run their arguments as a command, most of them in a separate process group or
// session.
var wrappers = map[string][]string{
	"none":           nil,
	"timeout":        {"timeout", "600"},
	"setsid":         {"setsid", "-w"},
	"shell, timeout": {"sh", "-c", `timeout 600 "$@"; true`, "sh"},
	"job control":    {"bash", "--norc", "-c", `set -m; "$@" & wait`, "bash"},
}

var pidLine = regexp.MustCompile(`pid (\d+)`)

// H107: on TERM, or when the lock is lost, the command ends even if it has left the process group of redlock run.
func TestRunEndsCommandsInOtherGroups(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for wrapper, words := range wrappers {
		for _, end := range []string{"TERM", "loss"} {
			t.Run(wrapper+", "+end, func(t *testing.T) {
				name := fmt.Sprint(wrapper, end)
				args := append([]string{"--ttl", "3s", name, "--"}, words...)
				p := f.start("run", append(args, "sh", "-c", `echo "pid $$"; exec sleep 600`)...)
				p.hear("pid ")
				pid, err := strconv.Atoi(pidLine.FindStringSubmatch(p.said())[1])
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
				if end == "TERM" {
					err = p.cmd.Process.Signal(syscall.SIGTERM)
				} else {
					for i := range f.urls {
						f.do(i, "DEL", "redlock:{"+name+"}")
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				if !eventuallyTrue(func() bool { return !running(pid) }) {
					t.Errorf("the command is still running; output:\n%s", p.said())
				}
			})
		}
	}
}

// H108: if the reader of redlock's output ends, redlock and the command continue. If the lock is lost afterwards, the
// command is ended.
func TestRunWithoutReaderOfItsLog(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(t.TempDir(), "pid")
	cmd := f.ask("run", "--ttl", "3s", "a", "--", "sh", "-c", `echo "pid $$" >"$0"; exec sleep 600`, pids)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_ = w.Close()
	var pid int
	if !eventuallyTrue(func() bool {
		text, _ := os.ReadFile(pids)
		found := pidLine.FindSubmatch(text)
		if found != nil {
			pid, _ = strconv.Atoi(string(found[1]))
		}
		return found != nil
	}) {
		t.Fatal("the command did not start")
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	_ = r.Close()
	f.do(0, "DEL", "redlock:{a}") // the lock is not lost, and this master gets it back
	f.do(0, "CLIENT", "KILL", "TYPE", "normal")
	repaired := func() bool { return fmt.Sprint(f.do(0, "EXISTS", "redlock:{a}")) == "1" }
	if !eventuallyTrue(repaired) { // by an extension over a new connection; the lost one was logged
		t.Error("the lock is not on the master again")
	}
	if !running(cmd.Process.Pid) || !running(pid) {
		t.Fatal("redlock or its command has ended because its output has no reader")
	}
	for i := range f.urls {
		f.do(i, "DEL", "redlock:{a}")
	}
	if !eventuallyTrue(func() bool { return !running(pid) }) {
		t.Error("the command is still running after the lock was lost")
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() < 0 {
		t.Errorf("redlock ended with %v, want an exit status other than 0", err)
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}
