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
	"time"

	"github.com/redlock-go/redlock/internal/redisproc/redistest"
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
					f.all("DEL", "redlock:{"+name+"}")
				}
				if err != nil {
					t.Fatal(err)
				}
				if !redistest.Until(func() bool { return !running(pid) }) {
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
	if !redistest.Until(func() bool {
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
	repaired := func() bool { return f.leases(0, "a") == 1 }
	if !redistest.Until(repaired) { // by an extension over a new connection; the lost one was logged
		t.Error("the lock is not on the master again")
	}
	if !running(cmd.Process.Pid) || !running(pid) {
		t.Fatal("redlock or its command has ended because its output has no reader")
	}
	f.all("DEL", "redlock:{a}")
	if !redistest.Until(func() bool { return !running(pid) }) {
		t.Error("the command is still running after the lock was lost")
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() < 0 {
		t.Errorf("redlock ended with %v, want an exit status other than 0", err)
	}
}

// chains contains shell scripts that start themselves again and again. Each process ends at once, often before a list
// of all processes is complete. A chain ends when $0 no longer exists.
var chains = map[string]string{
	"one session":   `f() { [ -e "$0" ] && f & }; trap "" TERM; f`,
	"many sessions": `[ -e "$0" ] && setsid sh "$0" &`,
}

// A lifeline is a named pipe that the processes of a chain keep open.
type lifeline struct {
	path string
	fd   int
}

func newLifeline(t *testing.T) *lifeline {
	t.Helper()
	l := &lifeline{path: filepath.Join(t.TempDir(), "lifeline")}
	err := syscall.Mkfifo(l.path, 0o600)
	if err == nil {
		l.fd, err = syscall.Open(l.path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(l.fd) })
	return l
}

// held reports whether a process has the pipe open.
func (l *lifeline) held() bool {
	n, err := syscall.Read(l.fd, make([]byte, 1))
	return n > 0 || err != nil
}

// H173: no descendant outlives redlock run, even if descendants start others and end faster than they can be listed,
// whatever ends the command.
func TestNoDescendantOutlivesRun(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for chain, script := range chains {
		for end, run := range map[string]func(p *process, name string){
			"loss": func(p *process, name string) {
				for i := range f.urls {
					redistest.Do(p.t, f.servers[i], "DEL", "redlock:{"+name+"}")
				}
				p.ends(exitRunLost, "ended")
			},
			"end": func(p *process, _ string) {
				p.stdin.Close()
				p.ends(0, "")
			},
			"kill of the supervisor": func(p *process, _ string) {
				for _, pid := range childrenOf(p.cmd.Process.Pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				p.ends(exitSignal+9, "")
			},
			"kill of redlock": func(p *process, _ string) {
				p.signal(syscall.SIGKILL)
				_ = p.cmd.Wait()
			},
		} {
			t.Run(chain+", "+end, func(t *testing.T) {
				t.Parallel()
				l := newLifeline(t)
				path := filepath.Join(t.TempDir(), "chain")
				writeFile(t, path, script)
				name := chain + end
				own := &votingDeployment{&deployment{t, f.servers, f.urls}, f.program, f.config}
				p := own.start("run", "--ttl", "3s", name, "--", "sh", "-c",
					`exec 3>"$1"; setsid sh "$0"; echo ready; read x; exit 0`, path, l.path)
				p.hear("ready")
				run(p, name)
				if end == "kill of redlock" {
					if !redistest.Until(func() bool { return !l.held() }) {
						t.Error("a descendant outlives the supervisor")
					}
				} else if l.held() {
					t.Errorf("a descendant outlives redlock; output:\n%s", p.said())
				}
			})
		}
	}
}

// childrenOf returns the process IDs of the children of a process.
func childrenOf(parent int) (pids []int) {
	for _, p := range processes() {
		if p.parent == parent {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// H173: if a process of the command cannot be killed, redlock run does not release the lock, and names the process.
func TestRunNamesSurvivors(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can start a process that another user cannot kill")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip(err)
	}
	f := newVotingDeployment(t)
	dir, err := os.MkdirTemp("", "redlock-setuid-") // reachable by the other user, unlike that of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// A file that was just written cannot be executed while a process that was forked meanwhile has it open.
	if err := os.Link(f.program, filepath.Join(dir, "redlock")); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"masters.json": f.config, "root": setpriv} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = writeProgram(filepath.Join(dir, name), text, 0o755)
		}
		if err == nil && name == "root" {
			err = os.Chmod(filepath.Join(dir, name), 0o755|os.ModeSetuid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.program, f.config = filepath.Join(dir, "redlock"), filepath.Join(dir, "masters.json")
	cmd := f.ask("run", "--ttl", "29s", "a", "--", "sh", "-c",
		`"$0" --reuid=0 true || exit 9
		"$0" --reuid=0 sleep 600 & echo "pid $!"
		until grep -q sleep "/proc/$!/comm"; do :; done`, filepath.Join(dir, "root"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.WaitDelay = time.Second // the survivor keeps the output open
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 9 {
		t.Skip("the directory for temporary files ignores setuid")
	}
	found := pidLine.FindSubmatch(out)
	if found == nil {
		t.Fatalf("the output is %q, %v, want a process ID", out, err)
	}
	pid, _ := strconv.Atoi(string(found[1]))
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last, want := lines[len(lines)-1], fmt.Sprintf(`cannot be killed: %d "sleep"; the lock of "a" was not released`, pid)
	if cmd.ProcessState.ExitCode() != exitRunLeft || !strings.Contains(last, want) {
		t.Errorf("redlock ended with status %d and %q, want %d and %q", cmd.ProcessState.ExitCode(), last, exitRunLeft, want)
	}
	for i := range f.urls {
		if n := f.leases(i, "a"); n != 1 {
			t.Errorf("master %d does not have the lock of the process that is still running", i)
		}
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
