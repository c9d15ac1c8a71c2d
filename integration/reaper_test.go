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

// reaperEnv is set only for a reaper, to the session that it cleans up.
const reaperEnv = "REDLOCK_TEST_REAPER"

// A reaper is a process of this test binary that outlives the tests, however they end: by an interrupt, a panic, a
// kill. When its standard input ends with the tests, it removes the containers and networks of their session, and
// exits.
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
	// It inherits no output: "go test" would wait until it is closed.
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("cannot start what cleans up after an interrupt: %w", err)
	}
	theReaper = r
	return nil
}

// end makes the reaper clean up now, and waits for it.
func (r *reaper) end() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.tie.Close(), r.cmd.Wait())
}

// reaperMain runs the reaper. It ignores interrupts, which a terminal sends to all processes.
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
