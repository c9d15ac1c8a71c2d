//go:build unix

package main

import (
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/redlock-go/redlock/clock"
)

// passedOn lists the signals that are passed on to the command. SIGTSTP is not caught, because suspend stops this
// process with SIGTSTP, which cannot stop a Go program that has caught SIGTSTP before.
var passedOn = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// interrupts lists the signals that end "redlock who --watch" and "redlock web".
var interrupts = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// ends reports whether a signal ends the wait for a lock.
func ends(s os.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

// catchBrokenPipes makes a write to a pipe without a reader return an error. By default, such a write ends the process,
// so that a lock would be lost only because its log is no longer read.
func catchBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// endAtBrokenPipes undoes catchBrokenPipes.
func endAtBrokenPipes() { signal.Reset(syscall.SIGPIPE) }

// A job is the command and its descendants. The command starts in the process group of the supervisor (see
// supervisor_unix.go). Only the method end reaps the supervisor, so the process group ID is not reused earlier.
type job struct {
	supervisor *os.Process
	group      int         // process group ID, which is the process ID of the supervisor
	orders     chan order  // one order that is not written yet
	pipe       *os.File    // for orders; when it is closed, the supervisor kills the command
	written    chan bool   // closed when the goroutine that writes to pipe has ended
	reports    chan report // closed when the supervisor has ended
	terminal   *terminal
	command    int           // process ID, once the command is started
	done       chan int      // receives the exit status of the command
	notice     func(error)   // prints an error
	validity   clock.Instant // the last end of the validity that the supervisor gets
	endOnce    sync.Once
	left       []string // what end returns
}

// newJob starts the supervisor, and waits until it is ready. notice reports later events to the user.
func newJob(notice func(error)) (*job, error) {
	becomeSubreaper() // so that the descendants of the supervisor can be found if it is killed
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	reports, reported, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	p, err := startSupervisor(out, reported)
	reported.Close()
	if err != nil {
		in.Close()
		reports.Close()
		return nil, err
	}
	j := &job{
		supervisor: p, group: p.Pid, orders: make(chan order, 1), pipe: in, written: make(chan bool),
		reports: make(chan report), terminal: openTerminal(), done: make(chan int, 1), notice: notice,
	}
	go j.reap()
	go j.write()
	go j.read(reports)
	if _, ready := <-j.reports; !ready {
		j.end()
		return nil, errors.New("the supervising process did not start")
	}
	return j, nil
}

// write writes the orders to the pipe. It waits as long as the supervisor does not read: a time limit could lose an
// order, or the rest of one.
func (j *job) write() {
	defer close(j.written)
	e := gob.NewEncoder(j.pipe)
	for o := range j.orders {
		if e.Encode(o) != nil {
			return // the supervisor has ended
		}
	}
}

// send sends an order to the supervisor, in place of one that is not written yet. It does not block.
func (j *job) send(o order) {
	select {
	case <-j.orders:
	default:
	}
	j.orders <- o
}

// read sends the reports of the supervisor to j.reports.
func (j *job) read(reports *os.File) {
	defer reports.Close()
	defer close(j.reports)
	for d := gob.NewDecoder(reports); ; {
		var r report
		if d.Decode(&r) != nil {
			return // the supervisor has ended
		}
		j.reports <- r
	}
}

// startSupervisor starts the supervisor with two more open files. The files keep their descriptors, so that they do not
// replace other files that the command inherits. When this process dies, the kernel continues a stopped supervisor, so
// that the supervisor can kill the command.
func startSupervisor(orders, reports *os.File) (*os.Process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{"redlock", superviseCommand}
	for _, f := range []*os.File{orders, reports} {
		fd := f.Fd()
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return nil, err
		}
		argv = append(argv, strconv.Itoa(int(fd)))
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithThread(attr, syscall.SIGCONT)
	return os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr})
}

// reap reaps the orphans that this process inherits.
func (j *job) reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for range ended {
		reapOrphans(j.supervisor.Pid)
	}
}

// start starts the command in the group. env is added to the environment. until must have been called before: start
// waits for the supervisor until the validity ends. If start fails, call end: the supervisor may still be about to act.
func (j *job) start(path string, argv, env []string) error {
	if isTerminal(0) && isTerminal(1) {
		j.terminal.lend(j.group)
	}
	path, argv = ownPID(path, argv)
	o := orderUntil(j.validity)
	o.Start = &startOrder{path, argv, env}
	j.send(o)
	late := time.NewTimer(j.validity.Sub((*clock.Clock)(nil).Now()))
	defer late.Stop()
	var r report
	var answered bool
	select {
	case r, answered = <-j.reports:
	case <-late.C:
		return errors.New("the supervising process did not start the command while the lock was valid")
	}
	switch {
	case !answered:
		return errors.New("the supervising process has ended")
	case r.Errno != 0:
		return &os.PathError{Op: "exec", Path: path, Err: r.Errno}
	}
	j.command = r.PID
	go j.follow()
	return nil
}

// follow stops this process when the command is stopped, and sends the exit status of the command to j.done. If the
// supervisor dies, follow sends the status of a killed command, and the method end then kills the command.
func (j *job) follow() {
	for r := range j.reports {
		switch {
		case r.Done:
			j.done <- r.Status
			return
		case r.Stopped == syscall.SIGTTIN || r.Stopped == syscall.SIGTTOU:
			if j.terminal.lend(j.group) {
				_ = syscall.Kill(-j.group, syscall.SIGCONT) // fails only if the group does not exist
				continue
			}
			j.notice(errors.New("redlock run: the command is stopped: it uses the terminal, and is in the background"))
			j.suspend()
		case r.Stopped == syscall.SIGTSTP:
			j.suspend()
		}
	}
	j.done <- exitSignal + int(syscall.SIGKILL)
}

// suspend stops this process when the command has been stopped, and continues the command when this process is
// continued. The supervisor is not stopped: it kills a command that is stopped for longer than the lock is valid.
func (j *job) suspend() {
	lent := j.terminal.takeBack(j.group)
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTSTP) // the shell waits for this group, and must see that it stops
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond): // SIGTSTP was ignored, since no shell would continue this group
	}
	if lent {
		j.terminal.lend(j.group)
	}
	_ = syscall.Kill(-j.group, syscall.SIGCONT) // fails only if the group does not exist
}

// signal passes a signal on to the group, and to the command if the command has left the group, as timeout and setsid
// do. TERM and CONT are sent to all descendants, as a service manager does.
func (j *job) signal(s os.Signal) {
	n, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	_ = syscall.Kill(-j.group, n) // fails only if the group does not exist
	if n == syscall.SIGTERM || n == syscall.SIGCONT {
		signalDescendants(n, j.group)
	} else if j.command != 0 {
		signalCommand(n, j.command, j.group)
	}
}

// terminate asks the command to end, even if it is stopped.
func (j *job) terminate() {
	j.signal(syscall.SIGTERM)
	j.signal(syscall.SIGCONT)
}

// kill kills the group, including the supervisor, and the descendants that it finds. end kills the others.
func (j *job) kill() {
	_ = syscall.Kill(-j.group, syscall.SIGKILL) // fails only if the group does not exist
	_ = killDescendants(j.supervisor.Pid, 0)
}

// until sends the end of the validity, now+left, to the supervisor, unless this end is at most a millisecond later than
// the last one. Before the command runs, it only keeps the end: the supervisor gets it together with the command.
func (j *job) until(now clock.Instant, left time.Duration) {
	end := now.Add(left)
	if j.validity != (clock.Instant{}) && end.Sub(j.validity) <= time.Millisecond {
		return
	}
	j.validity = end
	if j.command != 0 {
		j.send(orderUntil(end))
	}
}

// killBound limits the time for which the descendants are killed. Many or large processes take seconds to end.
const killBound = 10 * time.Second

// end kills the remaining processes of the command, waits until all have ended, for at most killBound, and takes the
// terminal back. It returns texts that name the processes that have not ended, because they belong to another user, or
// wait for a device, or start others faster than they can be killed.
func (j *job) end() (left []string) {
	j.endOnce.Do(func() {
		j.kill()
		_, _ = j.supervisor.Wait() // its status does not matter
		close(j.orders)
		j.pipe.Close()
		<-j.written
		j.terminal.takeBack(j.group)
		j.left = killDescendants(0, killBound)
	})
	return j.left
}
