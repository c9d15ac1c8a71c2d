//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/redisproc"
	"github.com/redlock-go/redlock/internal/redisproc/redistest"
)

// run ends with the documented exit statuses.
func TestRunExitStatus(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	plain := filepath.Join(t.TempDir(), "plain")
	writeFile(t, plain, "")
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{0, "hello\n", []string{"a", "--", "echo", "hello"}},
		{7, "", []string{"a", "--", "sh", "-c", "exit 7"}},
		{128 + 9, "", []string{"a", "--", "sh", "-c", "kill -9 $$"}},
		{exitNotFound, "not found", []string{"a", "--", "no-such-command"}},
		{exitNotFound, "no such file", []string{"a", "--", plain + "-none"}},
		{exitCannotRun, "permission denied", []string{"a", "--", plain}},
		{exitRunUsage, "then --, then the command", []string{"a", "echo", "hello"}},
		{exitRunUsage, "then --, then the command", []string{"--", "echo", "hello"}},
		{exitRunUsage, "a third of the TTL", []string{"--ttl", "3s", "--grace", "2s", "a", "--", "true"}},
		{exitRunUsage, "none of the others", []string{"--shared", "--exclusive", "a", "--", "true"}},
		{exitRunUsage, "above the max TTL", []string{"--ttl", "1h", "a", "--", "true"}},
		{exitRunUsage, "unknown flag", []string{"--tyr", "a", "--", "true"}},
	} {
		f.start("run", c.args...).ends(c.status, c.want)
	}
	for i := range f.urls {
		if n := f.leases(i, "a"); n != 0 {
			t.Errorf("master %d still has the lock", i)
		}
	}
}

// If two runs lock the same name, the second waits, and gets a larger token. A third run, with --try, reports the
// holder.
func TestRunWaitsForAnother(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	first := f.start("run", "--label", "the first", "a", "--", "sh", "-c", "echo $REDLOCK_TOKEN have it; read x; exit 3")
	first.hear("have it")
	second := f.start("run", "a", "--", "sh", "-c", "echo $REDLOCK_TOKEN have it")
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, `held by "the first" since`)
	f.start("run", "--wait", "300ms", "a", "--", "true").ends(exitRunHeld, `held by "the first" since`)
	f.start("run", "--wait", "300ms", "--json", "a", "--", "true").ends(exitRunHeld, `{"error":"redlock: lock`)
	f.waiting("a")
	if text := second.said(); text != "" {
		t.Fatalf("the second run printed %q while the first held the lock", text)
	}
	first.stdin.Close()
	first.ends(3, "")
	second.ends(0, "have it")
	token := regexp.MustCompile(`(\d+) have it`)
	if a, b := token.FindString(first.said()), token.FindString(second.said()); len(a) != len(b) || a >= b {
		t.Errorf("the first token is %q, and the second is %q, want a larger one", a, b)
	}
}

// After its command has ended, run leaves the name locked for the minimum hold (H126).
func TestRunKeepsTheNameForAMinimumHold(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.start("run", "--min-hold", "-1s", "a", "--", "true").ends(exitRunUsage, "minimum hold -1s is negative")
	f.start("run", "--min-hold", "1h", "a", "--", "true").ends(exitRunUsage, "the max TTL")
	f.start("run", "--label", "the first", "--min-hold", "20s", "a", "--", "true").ends(0, "")
	f.start("who", "a").ends(0, `unlocked by "the first", which had held it since`)
	f.start("who", "--json", "a").ends(0, `"held":true,"kept":true,`)
	f.start("run", "--try", "a", "--", "true").ends(exitRunHeld, `"the first"`)
}

// With --try and --wait, run waits for masters that cannot be reached yet, but not for another holder. Beside it is a
// sidecar of a mesh that starts late: it accepts connections, and closes them until it can reach the masters.
func TestRunTriesWhenMastersAreReady(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	var ready atomic.Bool
	var urls []string
	for _, s := range f.servers {
		sidecar := redistest.Answer(t, "127.0.0.1", func(raw net.Conn) {
			if ready.Load() {
				redistest.Relay(raw, s.Addr(), nil)
			}
		})
		urls = append(urls, "redis://"+sidecar+"?name="+s.Addr())
	}
	f.config = setText(t, urls)
	f.start("run", "--try", "--wait", "300ms", "a", "--", "true").ends(exitRunNoQuorum, "down")
	p := f.start("run", "--try", "--wait", "10m", "a", "--", "sh", "-c", "echo ready; read x; exit 0")
	p.hear("no lock can be acquired")
	ready.Store(true)
	p.hear("ready")
	f.start("run", "--try", "--wait", "10m", "a", "--", "true").ends(exitRunHeld, "held by")
	p.stdin.Close()
	p.ends(0, "")
}

// Without a quorum, each command says why, and ends with a status of its own.
func TestCommandsWithoutAQuorum(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	f.hold("b")
	f.kill(0, 1)
	for _, c := range []struct {
		status int
		args   []string
	}{
		{exitRunNoQuorum, []string{"run", "--try", "a", "--", "true"}},
		{exitRunNoQuorum, []string{"run", "--wait", "1s", "a", "--", "true"}},
		{exitNoQuorum, []string{"who", "b"}},
		{exitNoQuorum, []string{"release", "--force", "--yes", "b"}},
	} {
		f.start(c.args[0], c.args[1:]...).ends(c.status, "connection refused")
	}
	f.start("ls").ends(exitNoQuorum, "redlock ls: the list is partial: "+strings.Join(f.addrs()[:2], ", ")+
		": connect: master is down: connection refused\n") // one reason of two masters
}

// Signals are passed on to the command and its children.
func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	const script = `trap 'echo caught; exit 5' USR1
		(trap 'echo child; exit 0' USR1; echo one; while :; do sleep 0.05; done) &
		echo two; while :; do sleep 0.05; done`
	p := f.start("run", "a", "--", "sh", "-c", script)
	p.hear("one")
	p.hear("two")
	p.signal(syscall.SIGUSR1)
	p.ends(5, "caught")

	p = f.start("run", "a", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.hear("ready")
	p.signal(syscall.SIGTERM)
	p.ends(128+15, "")

	p = f.start("run", "a", "--", "sh", "-c", "echo ready; read x")
	p.hear("ready")
	q := f.start("run", "a", "--", "echo", "never")
	f.waiting("a")
	q.signal(syscall.SIGTERM)
	q.ends(128+15, "terminated")
	if strings.Contains(q.said(), "never") {
		t.Error("the command started after the signal")
	}
}

// If a command and its child ignore TERM, they are dead when the validity of the lock ends. A majority of the masters
// hangs, so redlock run learns of that end only from its clock.
func TestRunKillsTheCommandWithinTheValidity(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	end := newTomb(t)
	p := f.start("run", "--ttl", "3s", "--grace", "500ms", "a", "--", "sh", "-c", `exec 3>"$0"; trap 'echo term' TERM
		(trap '' TERM; while :; do sleep 0.05; done) &
		echo ready; while :; do sleep 0.05; done`, end.path)
	p.hear("ready")
	f.freeze(0, 1)
	paused := time.Now()
	end.closes()
	// The last extension that a majority confirmed was sent before the pause. Slow machines get two more seconds.
	if took := time.Since(paused); took > 3*time.Second+2*time.Second {
		t.Errorf("the command lived for %v after the masters had stopped, want at most 5s", took)
	}
	f.thaw(0, 1)
	p.ends(exitRunLost, `redlock run: the lock of "a" cannot be kept, and ends in `)
	if !strings.Contains(p.said(), "term\n") {
		t.Errorf("the command did not get TERM:\n%s", p.said())
	}
}

// If extensions are refused, run, unlock and the log say why in the servers' words.
func TestRefusedExtensionsAreNamed(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	run := f.start("run", "--ttl", "3s", "a", "--", "sh", "-c", "echo ready; exec sleep 1000")
	run.hear("ready")
	handle := f.lock("--ttl", "3s", "--while", strconv.Itoa(os.Getpid()), "b")
	f.do(0, "ACL", "SETUSER", "default", "-evalsha")
	f.do(1, "ACL", "SETUSER", "default", "-evalsha")
	const why = "2 of 3: NOPERM this user has no permissions to run the 'evalsha' command\n"
	run.ends(exitRunLost, "s: "+why)
	if !regexp.MustCompile(`the lock of "a" cannot be kept, and ends in [0-9.a-z]+: `+why).MatchString(run.said()) ||
		!strings.Contains(run.said(), `WARN redlock: master is failing`) {
		t.Errorf("want the reason and a log in\n%s", run.said())
	}
	if !redistest.Until(func() bool { _, err := os.ReadFile(handle); return err == nil }) { // a file, no socket
		t.Fatal("the lock has not ended")
	}
	f.start("unlock", handle).ends(exitRunLost, "no majority extended it in time: "+why)
}

// No process of the command outlives redlock run. If redlock run is killed, the command and its child are killed. If it
// is stopped, it cannot extend the lock, so the supervisor ends the command. Processes that a command leaves running
// are killed before the lock is released.
func TestNoProcessOutlivesRun(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	killed, stopped, left := newTomb(t), newTomb(t), newTomb(t)
	p := f.start("run", "killed", "--", "sh", "-c", `exec 3>"$0"; trap '' TERM INT HUP
		sleep 1000 & echo ready; while :; do sleep 0.05; done`, killed.path)
	p.hear("ready")
	p.signal(syscall.SIGKILL)
	killed.closes()
	p = f.start("run", "--ttl", "3s", "stopped", "--", "sh", "-c",
		`exec 3>"$0"; echo ready; while :; do sleep 0.05; done`, stopped.path)
	p.hear("ready")
	p.signal(syscall.SIGSTOP)
	stopped.closes()
	p.signal(syscall.SIGCONT)
	p.ends(exitRunLost, "")
	f.start("run", "left", "--", "sh", "-c", `exec 3>"$0"; sleep 1000 & echo done`, left.path).ends(0, "done")
	left.closes()
}

// With a single server and no restart guard, a lock is acquired immediately, also after a restart of the server. With
// the guard, the warning about a single master is printed once. It names the option that avoids a pause after a
// restart.
func TestRunOnOneMaster(t *testing.T) {
	t.Parallel()
	f := newDeployment(t, 1, redisproc.Config{})
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(built(t), append([]string{"run", "a", "--wait", "20s"}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%q failed: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("--max-ttl", "0", "--masters", f.urls[0], "--", "true")
	f.kill(0)
	f.restart(0)
	run("--masters", f.urls[0]+"?guard=off", "--", "true")
	f.call(exitDone, "1 of 1 masters vote", "admit")
	if out := run("--masters", f.urls[0], "--", "true"); strings.Count(out, "one master") != 1 ||
		!strings.Contains(out, "WithDurableMasters") {
		t.Errorf("the command printed\n%swant one warning that names WithDurableMasters", out)
	}
}

// A command that systemd starts through redlock run gets its own process ID in LISTEN_PID, and the open sockets.
// Variables that name other processes are left alone.
func TestRunUnderSystemd(t *testing.T) {
	t.Parallel()
	f := newVotingDeployment(t)
	file := filepath.Join(t.TempDir(), "socket")
	writeFile(t, file, "the socket\n")
	const unit = `export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_PIDFDID=1 WATCHDOG_PID=1; exec 3<"$0"; exec "$@"`
	run := func(command ...string) (int, string) {
		cmd := exec.Command("sh", "-c", unit, file, f.program, "run", "--config", f.config, "a", "--")
		cmd.Args = append(cmd.Args, command...)
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	status, out := run("sh", "-c", `[ "$LISTEN_PID" = $$ ] && echo "$WATCHDOG_PID $LISTEN_PIDFDID" && cat <&3; exit 5`)
	if want := "1 \nthe socket\n"; status != 5 || out != want {
		t.Errorf("the command ended with status %d and printed %q, want 5 and %q", status, out, want)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := writeProgram(broken, []byte("#!/nowhere/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if status, out := run(broken); status != exitNotFound || !strings.Contains(out, "no such file") {
		t.Errorf("a command without its interpreter ended with status %d and %q, want %d", status, out, exitNotFound)
	}
}

// The unit in deploy/ is valid, and accepts messages of the command.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/systemd/worker.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nType=notify\n", "\nNotifyAccess=all\n", "\nExecStart=/usr/local/bin/redlock run "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the unit does not contain %q", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	unit := filepath.Join(t.TempDir(), "worker.service")
	valid := strings.ReplaceAll(string(text), "/usr/local/bin/redlock", "/bin/true")
	writeFile(t, unit, valid)
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if strings.Contains(string(out), unit) {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
