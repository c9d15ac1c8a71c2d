//go:build unix

package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// superviseCommand is the hidden first argument of the supervisor of a job. Two file descriptors follow: the supervisor
// reads orders from the first, and writes reports to the second.
//
// The supervisor is the parent of the command that runs under a lock, and leads the process group of the command. It
// kills all of its descendants, and the group, when the validity of the lock ends, or when the orders end because
// "redlock run" has died. It drops all signals that can be caught, because signals to the group are for the command.
const superviseCommand = "__supervise"

// An order is sent to the supervisor. Each order has an end of the validity, so the command never runs without an end.
// Only the first order has Start.
type order struct {
	Start      *startOrder
	Boot, Wall int64 // end of the validity on the boot clock and on the wall clock
}

type startOrder struct {
	Path      string
	Argv, Env []string // Env is added to the environment
}

// A report is sent by the supervisor. The zero report means that the supervisor is ready.
type report struct {
	PID     int            // process ID of the command, if it was started
	Errno   syscall.Errno  // why the command was not started
	Stopped syscall.Signal // the signal that has stopped the command, or 0
	Done    bool           // the command has ended with Status
	Status  int            // as in shells
}

// orderUntil returns the order for a validity that ends at end.
func orderUntil(end clock.Instant) order {
	return order{Boot: end.Steady(), Wall: end.Steady() + end.Skew()}
}

// left returns the remaining validity of the lock at now. On Linux, all processes share the boot clock, which cannot be
// set. On other systems, each process has its own steady clock, so only the wall clocks are compared.
func (o order) left(now clock.Instant) time.Duration {
	left := time.Duration(o.Wall - (now.Steady() + now.Skew()))
	if runtime.GOOS == "linux" {
		left = min(left, time.Duration(o.Boot-now.Steady()))
	}
	return left
}

// A supervisor is the state of the second process of "redlock run".
type supervisor struct {
	orders  *gob.Decoder
	reports *gob.Encoder // used only by the goroutine of command, after its start
}

// supervise runs the supervisor. It never returns.
func supervise(args []string) {
	dropSignals()
	becomeSubreaper()
	var files [2]*os.File
	for i, arg := range args {
		fd, err := strconv.Atoi(arg)
		if err != nil {
			os.Exit(exitCannotRun)
		}
		syscall.CloseOnExec(fd)
		files[i] = os.NewFile(uintptr(fd), arg)
	}
	s := &supervisor{orders: gob.NewDecoder(files[0]), reports: gob.NewEncoder(files[1])}
	_ = s.reports.Encode(report{}) // if the other process has died, serve notices it
	s.serve()
}

// dropSignals catches all signals that this process did not ignore from its start. It must not ignore them instead,
// because the command would inherit the ignored signals.
func dropSignals() {
	dropped := make(chan os.Signal, 1)
	for n := syscall.Signal(1); n < 32; n++ {
		if !signal.Ignored(n) {
			signal.Notify(dropped, n)
		}
	}
}

func (s *supervisor) serve() {
	received := make(chan order)
	go func() {
		defer close(received)
		for {
			var o order
			if s.orders.Decode(&o) != nil {
				return
			}
			received <- o
		}
	}()
	var now *clock.Clock
	var end clock.Instant // zero before the first order
	timer := time.NewTimer(time.Hour)
	for {
		select {
		case o, open := <-received:
			if !open {
				killAll()
			}
			end = now.Now().Add(o.left(now.Now()))
			if o.Start != nil && end.Sub(now.Now()) > 0 {
				go s.command(o.Start)
			}
		case <-timer.C:
		}
		if end == (clock.Instant{}) {
			continue
		}
		left := end.Sub(now.Now())
		if left <= 0 {
			killAll()
		}
		timer.Reset(min(left, look))
	}
}

// command starts the command, reports when the command stops or ends, and reaps orphans. It stays on its thread,
// because the kernel sends the signal of dieWithThread when the thread that started the command ends.
func (s *supervisor) command(o *startOrder) {
	runtime.LockOSThread()
	attr := &syscall.SysProcAttr{Setpgid: true, Pgid: syscall.Getpid()}
	dieWithThread(attr, syscall.SIGKILL)
	p, err := os.StartProcess(o.Path, o.Argv, &os.ProcAttr{
		Env: append(os.Environ(), o.Env...), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	var r report
	if err == nil {
		r.PID = p.Pid
	} else if !errors.As(err, &r.Errno) {
		r.Errno = syscall.EINVAL
	}
	_ = s.reports.Encode(r)
	for err == nil || errors.Is(err, syscall.EINTR) {
		var ws syscall.WaitStatus
		var pid int
		pid, err = syscall.Wait4(-1, &ws, syscall.WUNTRACED, nil)
		if err != nil || pid != p.Pid {
			continue
		}
		switch {
		case ws.Stopped():
			r = report{Stopped: ws.StopSignal()}
		case ws.Signaled():
			r = report{Done: true, Status: exitSignal + int(ws.Signal())}
		default:
			r = report{Done: true, Status: ws.ExitStatus()}
		}
		_ = s.reports.Encode(r)
	}
}

// killAll kills all descendants, and then the group, which includes this process.
func killAll() {
	_ = killDescendants(0, killBound)    // those that are left can only be named by "redlock run", see job.end
	_ = syscall.Kill(0, syscall.SIGKILL) // does not return
	os.Exit(exitRunLost)
}

// execCommand is the hidden first argument of a process that becomes the command. The process ID of "redlock run"
// follows, then the path and the arguments of the command.
const execCommand = "__exec"

// pidVariables lists the variables with which systemd tells a process that sockets or a watchdog are meant for it.
var pidVariables = []string{"LISTEN_PID", "WATCHDOG_PID"}

// ownPID returns the path and the arguments with which the command is started. If a variable of pidVariables has the
// process ID of this process, the command must get its own in the variable, which is only known when it has started.
func ownPID(path string, argv []string) (string, []string) {
	pid := strconv.Itoa(os.Getpid())
	self, err := os.Executable()
	if err != nil || !slices.ContainsFunc(pidVariables, func(name string) bool { return os.Getenv(name) == pid }) {
		return path, argv
	}
	return self, append([]string{"redlock", execCommand, pid, path}, argv...)
}

// become replaces this process by the command. args are those after execCommand.
func become(args []string) {
	for _, name := range pidVariables {
		if os.Getenv(name) == args[0] {
			_ = os.Setenv(name, strconv.Itoa(os.Getpid())) // cannot fail: the name is valid
		}
	}
	_ = os.Unsetenv("LISTEN_PIDFDID") // as above; identifies the process that LISTEN_PID named
	err := &os.PathError{Op: "exec", Path: args[1], Err: syscall.Exec(args[1], args[2:], os.Environ())}
	fmt.Fprintf(os.Stderr, "redlock run: %v\n", err)
	os.Exit(cannotRun(err))
}
