//go:build !unix

package main

import (
	"errors"
	"os"
	"time"

	"github.com/redlock-go/redlock/clock"
)

const (
	superviseCommand = "__supervise"
	execCommand      = "__exec"
)

// supervise and become do nothing: systems without process groups do not use them.
func supervise([]string) {}

func become([]string) {}

func catchBrokenPipes() {}

func endAtBrokenPipes() {}

// passedOn lists the signals for the command. A console sends an interrupt to the command as well as to this process,
// so this process catches the interrupt only to survive it.
var passedOn = []os.Signal{os.Interrupt}

// interrupts lists the signals that end "redlock who --watch" and "redlock web".
var interrupts = passedOn

func ends(s os.Signal) bool { return s == os.Interrupt }

func signalNumber(os.Signal) int { return 2 }

// A job is the command. The children of the command cannot be found, and the command continues if this process is
// killed.
type job struct {
	process *os.Process
	done    chan int
}

func newJob(func(error)) (*job, error) { return &job{done: make(chan int, 1)}, nil }

func (j *job) start(path string, argv, env []string) (err error) {
	j.process, err = os.StartProcess(path, argv, &os.ProcAttr{
		Env: append(os.Environ(), env...), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return err
	}
	go func() {
		state, err := j.process.Wait()
		var exited *os.SyscallError
		switch {
		case errors.As(err, &exited), state == nil:
			j.done <- exitCannotRun
		default:
			j.done <- state.ExitCode()
		}
	}()
	return nil
}

func (j *job) signal(os.Signal) {}

// terminate does nothing: this system has no signal that asks a process to end.
func (j *job) terminate() {}

func (j *job) kill() {
	if j.process != nil {
		_ = j.process.Kill() // fails if the command has ended
	}
}

func (j *job) until(clock.Instant, time.Duration) {}

func (j *job) end() []string { return nil }

func stdinIsTerminal() bool { return fileIsTerminal(os.Stdin) }

func fileIsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
