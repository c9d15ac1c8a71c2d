//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/redlock-go/redlock/clock"
)

// watchmanCommand is the hidden command by which this program starts itself as the watchman of a job.
//
// The watchman leads the process group of the command that runs under a lock. It reads from the process that keeps the
// lock until when the lock is valid, and kills its own group when that time has come, or when it can read no more
// because that process has ended. It ignores all signals that can be ignored: those to the group are for the command.
const watchmanCommand = "__watchman"

// A clockEnd is an instant as it is told from one process to another.
type clockEnd struct{ end clock.Instant }

// later reports whether end is so much later than what was told that it must be told.
func (e *clockEnd) later(end clock.Instant) bool {
	return e.end.IsZero() || end.Sub(e.end) > time.Millisecond
}

// set takes note of end, and returns the line that tells it.
func (e *clockEnd) set(end clock.Instant) string {
	e.end = end
	return fmt.Sprintf("%d %d\n", end.Steady(), end.Steady()+end.Skew())
}

// parseEnd reads a line. On Linux all processes share a clock that nobody sets; elsewhere each has its own, so the wall
// clock alone tells.
func parseEnd(line string, now clock.Instant) (left time.Duration, ok bool) {
	var boot, wall int64
	if n, err := fmt.Sscanf(line, "%d %d", &boot, &wall); n != 2 || err != nil {
		return 0, false
	}
	left = time.Duration(wall - (now.Steady() + now.Skew()))
	if runtime.GOOS == "linux" {
		left = min(left, time.Duration(boot-now.Steady()))
	}
	return left, true
}

// watchman never returns.
func watchman() {
	signal.Ignore()
	_, _ = os.Stdout.Write([]byte{1}) // it watches
	_ = os.Stdout.Close()
	told := make(chan string)
	go func() {
		defer close(told)
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			told <- lines.Text()
		}
	}()
	var real *clock.Clock
	var end clock.Instant // zero: the command has not begun
	timer := time.NewTimer(time.Hour)
	for {
		select {
		case line, open := <-told:
			left, ok := parseEnd(line, real.Now())
			if !open || !ok {
				killOwnGroup()
			}
			end = real.Now().Add(left)
		case <-timer.C:
		}
		if end.IsZero() {
			continue
		}
		left := end.Sub(real.Now())
		if left <= 0 {
			killOwnGroup()
		}
		timer.Reset(min(left, look))
	}
}

func killOwnGroup() {
	_ = syscall.Kill(0, syscall.SIGKILL) // it does not return
	os.Exit(exitRunLost)
}
