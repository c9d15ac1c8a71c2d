package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inTerminal starts a command as the leader of a session with a terminal of its own. What is written to stdin of the
// process is typed.
func (f *votingFleet) inTerminal(cmd *exec.Cmd) *process {
	f.t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		f.t.Skipf("needs a pseudo-terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer screen.Close()
	p := &process{t: f.t, cmd: cmd, stdin: keyboard, wrote: make(chan struct{}, 1)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := keyboard.Read(b)
			if n > 0 {
				_, _ = p.Write([]byte(strings.ReplaceAll(string(b[:n]), "\r\n", "\n")))
			}
			if err != nil { // the last one that had the terminal has ended
				return
			}
		}
	}()
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); <-read; keyboard.Close() })
	return p
}

func (p *process) types(text string) {
	p.t.Helper()
	if _, err := p.stdin.Write([]byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

const ctrlC, ctrlZ = "\x03", "\x1a"

// In a terminal Ctrl-C reaches the command once. What the command returns is returned.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	f := newVotingFleet(t)
	const script = `n=0; trap 'n=$((n+1)); echo interrupted $n' INT; trap 'echo ends after $n; exit 9' USR1
		echo ready; while :; do sleep 0.05; done`
	p := f.inTerminal(f.ask("run", "a", "--", "sh", "-c", script))
	p.hear("ready")
	p.types(ctrlC)
	p.hear("interrupted 1")
	p.signal(syscall.SIGUSR1)
	p.ends(9, "")
	p.hear("ends after 1")

	// Without the terminal as its output it leaves the foreground to others, and passes the interrupt on.
	p = f.inTerminal(exec.Command("sh", "-c", `trap : INT; "$0" "$@" | (trap '' INT; exec cat)`,
		f.program, "run", "--config", f.config, "a", "--", "sh", "-c",
		`trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep 0.05; done`))
	p.hear("ready")
	p.types(ctrlC)
	p.hear("^C")
	p.hear("interrupted")
}

// A command that reads the terminal can be stopped and goes on, with its lock, and the shell gets the terminal back.
func TestCtrlZStopsRunAndTheCommand(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("needs a shell with job control: %v", err)
	}
	f := newVotingFleet(t)
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Env = append(os.Environ(), "PS1=$ ", "HISTFILE=", "TERM=dumb", "P="+f.program, "F="+f.config)
	p := f.inTerminal(shell)
	p.types("$P run --config $F --ttl 20s a -- sh -c 'echo re''ady; read x; echo got $x; exit 6'\n")
	p.hear("ready")
	p.types(ctrlZ)
	p.hear("Stopped")
	p.types("echo shell $((40+2))\n")
	p.hear("shell 42")
	p.types("fg\n")
	p.types("words\n")
	p.hear("got words")
	p.types("echo status $?.\n")
	p.hear("status 6.")
	p.types("exit 0\n")
	p.ends(0, "")
}

// A command that is stopped for longer than its lock is valid is dead when the shell lets it go on.
func TestAStoppedCommandDoesNotOutliveItsLock(t *testing.T) {
	f := newVotingFleet(t)
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Env = append(os.Environ(), "PS1=$ ", "HISTFILE=", "TERM=dumb", "P="+f.program, "F="+f.config)
	p := f.inTerminal(shell)
	end := newTomb(t)
	p.types("$P run --config $F --ttl 1s a -- sh -c 'exec 3>" + end.path + "; echo re''ady; read x; echo got $x'\n")
	p.hear("ready")
	p.types(ctrlZ)
	p.hear("Stopped")
	end.closes()
	p.types("fg\n")
	p.hear("had not the lock to its end")
	p.types("echo status $?.\n")
	p.hear("status 76.")
	p.types("exit 0\n")
	p.ends(0, "")
}

// On Linux the command itself ends even if both processes of redlock are killed.
func TestKillingBothProcessesKillsTheCommand(t *testing.T) {
	f := newVotingFleet(t)
	end := newTomb(t)
	p := f.start("run", "a", "--", "sh", "-c", `exec 3>"$0"; echo ready; exec sleep 1000`, end.path)
	p.hear("ready")
	stopped := false
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(p.cmd.Process.Pid) &&
			strings.Contains(string(line), superviseCommand) {
			// Stopped first, so that it cannot do what it is for.
			stopped = syscall.Kill(pid, syscall.SIGSTOP) == nil
		}
	}
	if !stopped {
		t.Fatal("the supervisor was not found")
	}
	p.signal(syscall.SIGKILL)
	end.closes()
}

// Release asks in a terminal, and only yes is yes.
func TestReleaseAsksInATerminal(t *testing.T) {
	f := newVotingFleet(t)
	holder := f.start("run", "--owner", "the holder", "--ttl", "3s", "a", "--", "sh", "-c", "echo have it; read x")
	holder.hear("have it")
	for _, answer := range []string{"n\n", "\n", "\x04"} {
		p := f.inTerminal(f.ask("release", "--force", "a"))
		p.hear(`held by "the holder"`)
		p.hear("[y/N] ")
		p.types(answer)
		p.ends(exitDanger, "")
		p.hear("nothing was released")
	}
	p := f.inTerminal(f.ask("release", "-force", "a"))
	p.hear("[y/N] ")
	p.types("y\n")
	p.ends(exitDone, "")
	p.hear("released on 3 of 3 masters")
	f.start("who", "a").ends(0, "nobody holds it")
	holder.ends(exitRunLost, "the lock was lost")
}
