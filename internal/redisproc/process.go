package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A process is one run of the program. done is closed once it has ended and has been waited for.
type process struct {
	cmd  *exec.Cmd
	pid  int
	done chan struct{}
	err  error // returned by Wait; read after done is closed
}

// launch starts a command with further variables in env, and with its output in the file log, which it overwrites.
// The goroutine that starts the process also waits for it, on a locked thread: the kernel ties the child's death signal
// to the thread that forked, not to the process, and Go may end threads at any time. terminate and kill wait for the
// goroutine.
func launch(command, env []string, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C"}, env)
	cmd.Stdout, cmd.Stderr = out, out
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		defer out.Close()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// running reports whether the process is running. For running, terminate and kill, p may be nil.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// terminate sends SIGTERM, kills the process if it has not ended after bound, and returns when the process has ended.
func (p *process) terminate(bound time.Duration) {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Signal(termSignal)
	_ = p.cmd.Process.Signal(resumeSignal) // a paused process handles SIGTERM only once it is resumed
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}

func (p *process) kill() {
	if p.running() {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ready waits until the server answers on its Unix socket. The socket is in a directory that no other server uses, and
// is opened after the TCP port has been bound, so an answer means that the port belongs to this server.
func ready(ctx context.Context, p *process, socket string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = ping(ctx, socket); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended: %w", errors.Join(p.err, last))
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", errors.Join(ctx.Err(), last))
		case <-tick.C:
		}
	}
}

// ping returns nil if the server has answered. The errors NOAUTH and NOPERM are answers, too. The error that the
// server is still loading its data is not an answer.
func ping(ctx context.Context, socket string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(line, "+PONG"), strings.HasPrefix(line, "-NOAUTH"), strings.HasPrefix(line, "-NOPERM"):
		return nil
	default:
		return fmt.Errorf("unexpected reply to PING: %.100q", line)
	}
}

// tail returns the end of a file, or the text of the error if the file cannot be read.
func tail(path string) string {
	const most = 4 << 10
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
