package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm sleeps to within some tens of microseconds, where Go's own timers are kept by a call of the kernel that
// counts in milliseconds. It takes no thread: the kernel's timer is waited for as a connection is. It is for one
// goroutine at a time.
type alarm struct {
	fd   int
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("bench: no timer of the kernel: %w", err)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timer")}, nil
}

func (a *alarm) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &at, nil); err != nil {
		return fmt.Errorf("bench: the timer of the kernel: %w", err)
	}
	var rings [8]byte
	if _, err := a.file.Read(rings[:]); err != nil {
		return fmt.Errorf("bench: the timer of the kernel: %w", err)
	}
	if binary.NativeEndian.Uint64(rings[:]) == 0 {
		return fmt.Errorf("bench: the timer of the kernel rang before its time")
	}
	return nil
}

func (a *alarm) close() error { return a.file.Close() }
