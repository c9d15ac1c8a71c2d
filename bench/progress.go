package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A progress shows the running task, the round, and an estimate of the remaining time. It overwrites one line of the
// terminal.
type progress struct {
	w           io.Writer
	began       time.Time
	done, total float64 // weights of the tasks
	running     float64 // weight of the running task
}

// newProgress returns a progress that writes to f, or writes nothing if f is not a terminal.
func newProgress(f *os.File) *progress {
	info, err := f.Stat()
	null, nerr := os.Stat(os.DevNull)
	if errors.Join(err, nerr) != nil || info.Mode()&os.ModeCharDevice == 0 || os.SameFile(info, null) {
		return &progress{w: io.Discard}
	}
	return &progress{w: f}
}

// start begins the measurement. total is the weight of all tasks together.
func (p *progress) start(total float64) { p.began, p.total = time.Now(), total }

// say reports that the previous task has ended, and that a task of this weight begins.
func (p *progress) say(weight float64, format string, args ...any) {
	p.done += p.running
	p.running = weight
	text := fmt.Sprintf(format, args...) + "; " + timeLeft(time.Since(p.began), p.done, p.total)
	fmt.Fprintf(p.w, "\r\x1b[K%.79s", text)
}

// timeLeft returns an estimate of the remaining time, based on the tasks that have ended.
func timeLeft(used time.Duration, done, total float64) string {
	if done == 0 {
		return "time left unknown"
	}
	return time.Duration(float64(used)*(total-done)/done).Round(time.Second).String() + " left"
}

func (p *progress) clear() { fmt.Fprint(p.w, "\r\x1b[K") }
