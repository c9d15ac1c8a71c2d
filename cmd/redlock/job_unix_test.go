//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// jobVariable names one of the functions of jobs. TestMain then calls only that function, in a process of its own,
// because the end of a job kills all descendants of its process.
const jobVariable = "REDLOCK_TEST_JOB"

var jobs = map[string]func(*job) error{
	"late": func(j *job) error {
		j.until((*clock.Clock)(nil).Now(), hang)
		<-time.After(4 * look) // as on a busy machine
		return j.start("/bin/echo", []string{"echo", "it ran"}, nil)
	},
	"stopped": func(j *job) error {
		if err := j.supervisor.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		for i := range 10_000 { // more than the pipe holds
			j.until((*clock.Clock)(nil).Now(), hang+time.Duration(i)*time.Second)
		}
		time.AfterFunc(4*look, func() { _ = j.supervisor.Signal(syscall.SIGCONT) })
		return j.start("/bin/echo", []string{"echo", "it ran"}, nil)
	},
	"refilled": func(j *job) error {
		j.until((*clock.Clock)(nil).Now(), hang)
		err := j.start("/bin/sh", []string{"sh", "-c", "exec sleep 600"}, nil)
		if err == nil {
			err = j.supervisor.Signal(syscall.SIGSTOP)
		}
		for i := range 10_000 {
			j.until((*clock.Clock)(nil).Now(), hang+time.Duration(i)*time.Second)
		}
		j.validity = clock.Instant{}
		j.until((*clock.Clock)(nil).Now(), 10*look) // the last order counts: the supervisor then kills the command
		return errors.Join(err, j.supervisor.Signal(syscall.SIGCONT))
	},
	"unextended": func(j *job) error {
		j.until((*clock.Clock)(nil).Now(), 10*look)
		return j.start("/bin/sleep", []string{"sleep", "600"}, nil)
	},
	"unread": func(j *job) error {
		j.until((*clock.Clock)(nil).Now(), 4*look)
		err := j.supervisor.Signal(syscall.SIGSTOP)
		return errors.Join(err, j.start("/bin/echo", []string{"echo", "it ran"}, nil))
	},
}

// runJob runs one of the functions of jobs, waits until the command has ended, and prints the status of the command.
func runJob(name string) (status int) {
	j, err := newJob(func(err error) { fmt.Println(err) })
	if err == nil {
		defer j.end()
		err = jobs[name](j)
	}
	if err != nil {
		fmt.Println(err)
		return exitCannotRun
	}
	fmt.Println("status", <-j.done)
	return 0
}

// H166: orders reach the supervisor of a command, however late they are written or read. The supervisor gets the end of
// the validity together with the order to start the command, so a command never runs without an end.
func TestOrdersReachTheSupervisor(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"late":       "it ran\nstatus 0\n",
		"stopped":    "it ran\nstatus 0\n",
		"refilled":   "status 137\n",
		"unextended": "status 137\n",
		"unread":     "did not start the command while the lock was valid\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), jobVariable+"="+name)
			cmd.Stdin = strings.NewReader("")
			cmd.WaitDelay = hang
			stuck := time.AfterFunc(hang, func() { _ = cmd.Process.Kill() })
			defer stuck.Stop()
			if out, err := cmd.CombinedOutput(); !strings.HasSuffix(string(out), want) {
				t.Errorf("the output is %q, want %q at its end; %v", out, want, err)
			}
		})
	}
}
