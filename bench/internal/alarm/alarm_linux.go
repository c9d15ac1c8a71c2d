package alarm

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An Alarm is a kernel timer for one goroutine at a time. A sleeping goroutine does not block a thread, because it
// reads the timer through Go's network poller.
type Alarm struct {
	fd   int
	file *os.File
}

// New returns an Alarm. The caller must close it.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("alarm: %w", err)
	}
	return &Alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer")}, nil
}

// Sleep returns after d, or immediately if d is not positive.
func (a *Alarm) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	err := unix.TimerfdSettime(a.fd, 0, &at, nil)
	if err == nil {
		_, err = a.file.Read(make([]byte, 8)) // number of expirations
	}
	if err != nil {
		return fmt.Errorf("alarm: %w", err)
	}
	return nil
}

// Close frees the kernel's timer.
func (a *Alarm) Close() error { return a.file.Close() }
