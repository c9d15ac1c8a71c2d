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

// inTerminal starts a command as the leader of a session with its own terminal. Text written to stdin of the process
// is typed on the terminal.
func (f *votingDeployment) inTerminal(cmd *exec.Cmd) *process {
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
			if err != nil { // the last process in the terminal has ended
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

// In a terminal, Ctrl-C reaches the command once, and redlock returns the status of the command.
func TestCtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	const script = `n=0; trap 'n=$((n+1)); echo interrupted $n' INT; trap 'echo ends after $n; exit 9' USR1
		echo ready; while :; do sleep 0.05; done`
	p := f.inTerminal(f.ask("run", "a", "--", "sh", "-c", script))
	p.hear("ready")
	p.types(ctrlC)
	p.hear("interrupted 1")
	p.signal(syscall.SIGUSR1)
	p.ends(9, "")
	p.hear("ends after 1")

	// If the output of redlock is not the terminal, redlock does not use the foreground, and passes the interrupt on.
	p = f.inTerminal(exec.Command("sh", "-c", `trap : INT; "$0" "$@" | (trap '' INT; exec cat)`,
		f.program, "run", "--config", f.config, "a", "--", "sh", "-c",
		`trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep 0.05; done`))
	p.hear("ready")
	p.types(ctrlC)
	p.hear("^C")
	p.hear("interrupted")
}

// A command that reads the terminal can be stopped and continued while its lock is held. Afterwards the shell can use
// the terminal again.
func TestCtrlZStopsRunAndTheCommand(t *testing.T) {
	t.Parallel()
	p := newVotingDeployment(t).shell()
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

// shell starts bash with job control in a terminal.
func (f *votingDeployment) shell() *process {
	f.t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		f.t.Skipf("needs a shell with job control: %v", err)
	}
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "PS1=$ ", "HISTFILE=", "TERM=dumb", "P="+f.program, "F="+f.config)
	return f.inTerminal(cmd)
}

// H109: if the job of redlock is in the foreground, a command may read the terminal, or write to the terminal in spite
// of "stty tostop". In a background job, redlock reports why the command is stopped, and stops, too.
func TestCommandsThatUseTheTerminal(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	for _, c := range []struct {
		name, line    string
		types, prints []string // the test types types[i] when the terminal shows prints[i]
	}{
		{"reads it behind a pipe", `$P run --config $F a -- sh -c 'echo re""ady >&2; read x; echo got $x; exit 6' | cat`,
			[]string{"words\n", ""}, []string{"ready", "got words"}},
		{"reads /dev/tty, with its output in a file",
			`$P run --config $F a -- sh -c 'echo re""ady >/dev/tty; read x </dev/tty; echo got $x >/dev/tty' >/dev/null`,
			[]string{"words\n", ""}, []string{"ready", "got words"}},
		{"a process of it reads the terminal", `$P run --config $F a -- sh -c 'echo re""ady >&2; head -n1; echo over' | cat`,
			[]string{"words\n", ""}, []string{"ready", "over"}},
		{"writes to it under tostop", `stty tostop; $P run --config $F a -- sh -c 'echo wri""tten >&2' | cat; stty -tostop`,
			[]string{""}, []string{"written"}},
		{"reads it in the background", `$P run --config $F a -- sh -c 'read x; echo got $x; exit 6' &`,
			[]string{"until jobs | grep -q Stopped; do sleep 0.1; done; fg\nwords\n", ""},
			[]string{"it uses the terminal, and is in the background", "got words"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := (&votingDeployment{&deployment{t, f.servers, f.urls}, f.program, f.config}).shell()
			p.types(c.line + "\n")
			for i, text := range c.prints {
				p.hear(text)
				p.types(c.types[i])
			}
			p.types("exit 0\n")
			p.ends(0, "")
		})
	}
}

// A command that is stopped for longer than the validity of its lock is killed before the shell continues redlock.
func TestStoppedCommandDoesNotOutliveItsLock(t *testing.T) {
	t.Parallel()
	p := newVotingDeployment(t).shell()
	end := newTomb(t)
	p.types("$P run --config $F --ttl 1s a -- sh -c 'exec 3>" + end.path + "; echo re''ady; read x; echo got $x'\n")
	p.hear("ready")
	p.types(ctrlZ)
	p.hear("Stopped")
	end.closes()
	p.types("fg\n")
	p.hear("after its lock was lost")
	p.types("echo status $?.\n")
	p.hear("status 76.")
	p.types("exit 0\n")
	p.ends(0, "")
}

// On Linux the command ends even if both processes of redlock are killed.
func TestKillingBothProcessesKillsTheCommand(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	end := newTomb(t)
	p := f.start("run", "a", "--", "sh", "-c", `exec 3>"$0"; echo ready; exec sleep 1000`, end.path)
	p.hear("ready")
	for _, supervisor := range childrenOf(p.cmd.Process.Pid) { // stopped first, so that it cannot kill the command
		if err := syscall.Kill(supervisor, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	p.signal(syscall.SIGKILL)
	end.closes()
}

// In a terminal, release asks for confirmation, and accepts only yes.
func TestReleaseAsksInATerminal(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	holder := f.start("run", "--label", "the holder", "--ttl", "3s", "a", "--", "sh", "-c", "echo have it; read x")
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
	f.start("who", "a").ends(0, "no client holds it")
	holder.ends(exitRunLost, "the lock was lost")
}

// On a terminal, commands show what they wait for and for how long, and erase it again. Elsewhere they do not.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.do(0, "EVAL", "for k = 1, 20000 do redis.call('SET', 'redlock:other:' .. k, 'x') end", 0)
	scan := f.inTerminal(f.ask("ls", "--timeout", "5m"))
	scan.hear("waiting for the scan of 3 masters, about ")
	scan.hear(wrapLines + eraseLine)
	scan.ends(exitDone, "")
	f.freeze(1)
	looks := f.inTerminal(f.ask("status"))
	looks.hear("waiting for " + f.servers[1].Addr() + " (connecting): ")
	looks.hear(wrapLines + eraseLine + f.servers[0].Addr())
	looks.ends(exitDone, "")
	p := f.start("status")
	p.ends(exitDone, "2 of 3 masters vote")
	if strings.Contains(p.said(), "waiting") {
		t.Errorf("a command without a terminal shows its progress: %q", p.said())
	}
}
