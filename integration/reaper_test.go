package integration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/ory/dockertest/v3"
)

// reaperEnv is set only in a reaper, to the session whose containers and networks the reaper removes.
const reaperEnv = "REDLOCK_TEST_REAPER"

// A reaper is a process of this test binary that outlives the tests, even if they end by an interrupt, a panic or a
// kill. The end of the tests ends the reaper's standard input. Then the reaper removes the containers and networks of
// the tests' session, and exits.
type reaper struct {
	cmd *exec.Cmd
	tie io.WriteCloser
}

var theReaper *reaper

func startReaper(session string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	r := &reaper{cmd: exec.Command(exe)}
	r.cmd.Env = append(os.Environ(), reaperEnv+"="+session)
	if r.tie, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	// The reaper does not inherit stdout or stderr: "go test" would wait until the reaper closes them.
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the reaper, which cleans up after an interrupt: %w", err)
	}
	theReaper = r
	return nil
}

// end makes the reaper remove everything now, and waits for it to exit.
func (r *reaper) end() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.tie.Close(), r.cmd.Wait())
}

// reaperMain runs the reaper. It ignores interrupts, because a terminal sends them to all processes.
func reaperMain() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	pool, err := dockertest.NewPool("")
	if err != nil {
		return 1
	}
	e := &dockerEngine{pool: pool, session: os.Getenv(reaperEnv)}
	if err := e.sweep(func(session string) bool { return session == e.session }); err != nil {
		return 1
	}
	return 0
}
