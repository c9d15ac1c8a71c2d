//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock/clock"
)

// passedOn are the signals that the command gets when this process gets them. SIGTSTP is none of them: a Go program
// that has once received it cannot be stopped by it any more, and suspend needs that.
var passedOn = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// interrupts are the signals that end what runs until it is interrupted.
var interrupts = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// ends reports whether a signal ends the wait for a lock.
func ends(s os.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

// A job is the command and what belongs to it: one process group, whose leader is the watchman (see watchman_unix.go).
// The watchman is not reaped before end, so the number of the group is nobody else's while it is used.
type job struct {
	group    int
	watchman *os.Process
	pipe     *os.File  // what the watchman reads; it kills the group when this is closed
	terminal bool      // the command gets the terminal's foreground
	done     chan int  // gets the exit status of the command
	told     clockEnd  // what the watchman was told last
	endOnce  sync.Once // end
}

// newJob starts the watchman, and waits until it watches.
func newJob() (*job, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // to the watchman
	if err != nil {
		return nil, err
	}
	defer out.Close()
	ready, started, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer ready.Close()
	p, err := os.StartProcess(path, []string{"redlock", watchmanCommand}, &os.ProcAttr{
		Files: []*os.File{out, started}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	started.Close()
	if err != nil {
		in.Close()
		return nil, err
	}
	j := &job{group: p.Pid, watchman: p, pipe: in, done: make(chan int, 1)}
	_ = ready.SetReadDeadline(time.Now().Add(tryBound)) // pipes have deadlines
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		j.end()
		return nil, fmt.Errorf("the process that watches this one did not start: %w", err)
	}
	j.terminal = isTerminal(0) && isTerminal(1) && foreground() == ownGroup()
	return j, nil
}

// start starts the command in the group.
func (j *job) start(path string, argv, env []string) error {
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: j.group, Foreground: j.terminal}
	dieWithThread(attr)
	began := make(chan error)
	go func() {
		// The kernel sends the signal of dieWithThread when the thread ends that has started the command.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := os.StartProcess(path, argv, &os.ProcAttr{
			Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
		})
		began <- err
		if err == nil {
			j.done <- j.wait(p)
		}
	}()
	return <-began
}

// wait waits for the end of the command and returns its status. If the command is stopped from the terminal, so is
// this process.
func (j *job) wait(p *os.Process) (status int) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.Pid, &ws, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitCannotRun
		case ws.Exited():
			return ws.ExitStatus()
		case ws.Signaled():
			return exitSignal + int(ws.Signal())
		case ws.Stopped() && jobControl(ws.StopSignal()):
			j.suspend()
		}
	}
}

// jobControl reports whether a signal stops what runs in a terminal.
func jobControl(s syscall.Signal) bool {
	return s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
}

// suspend stops this process, as the command has been stopped, and lets the command go on when it goes on itself. The
// watchman is not stopped: it kills a command that is stopped for longer than the lock is valid.
func (j *job) suspend() {
	j.takeTerminal()
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	_ = syscall.Kill(0, syscall.SIGTSTP) // the shell that waits for this group must see it stopped
	select {
	case <-goesOn:
	case <-time.After(200 * time.Millisecond): // no shell would let it go on, so the system has not stopped it
	}
	if j.terminal && foreground() == ownGroup() {
		setForeground(j.group)
	}
	_ = syscall.Kill(-j.group, syscall.SIGCONT) // it fails only for a group that is not there
}

// takeTerminal takes the terminal's foreground back.
func (j *job) takeTerminal() {
	if j.terminal && foreground() == j.group {
		setForeground(ownGroup())
	}
}

func (j *job) signal(s os.Signal) {
	if n, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-j.group, n) // it fails only for a group that is not there
	}
}

// terminate tells the command to end. One that is stopped hears it.
func (j *job) terminate() {
	j.signal(syscall.SIGTERM)
	j.signal(syscall.SIGCONT)
}

// kill kills all that is in the group, the watchman too.
func (j *job) kill() { j.signal(syscall.SIGKILL) }

// until tells the watchman that the lock is valid for left from now on.
func (j *job) until(now clock.Instant, left time.Duration) {
	if end := now.Add(left); j.told.later(end) {
		_ = j.pipe.SetWriteDeadline(time.Now().Add(look)) // a watchman that does not hear it goes by the end it knows
		_, _ = io.WriteString(j.pipe, j.told.set(end))
	}
}

// end kills what is left of the group, and gives the terminal back.
func (j *job) end() {
	j.endOnce.Do(func() {
		j.kill()
		_, _ = j.watchman.Wait() // its status tells nothing
		j.pipe.Close()
		j.takeTerminal()
	})
}

func stdinIsTerminal() bool { return isTerminal(0) }

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}

func ownGroup() int {
	group, _ := unix.Getpgid(0) // it cannot fail for this process
	return group
}

// foreground is the process group that has the terminal; -1 where there is none.
func foreground() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// setForeground gives the terminal to a group. A process in the background may only do so while it ignores SIGTTOU.
func setForeground(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) // it fails where the terminal has gone
}
