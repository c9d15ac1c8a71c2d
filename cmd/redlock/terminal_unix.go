//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal of this process, or none. Only the process group in the foreground of a
// terminal may read the terminal, and gets Ctrl-C and Ctrl-Z.
type terminal struct {
	fd int // -1 if there is none
	mu sync.Mutex
}

func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return &terminal{fd: fd}
}

// lend puts group into the foreground if the group of this process is there, and reports whether group is in the
// foreground now.
func (t *terminal) lend(group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.foreground() {
	case group:
		return true
	case unix.Getpgrp():
		return t.set(group) == nil
	}
	return false
}

// takeBack puts the group of this process into the foreground if group is there, and reports whether it did so.
func (t *terminal) takeBack(group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.foreground() == group && t.set(unix.Getpgrp()) == nil
}

// foreground returns the group in the foreground, or -1 if there is no terminal.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// set puts group into the foreground. A process in the background can do so only while it ignores SIGTTOU.
func (t *terminal) set(group int) error {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

func stdinIsTerminal() bool { return isTerminal(0) }

func fileIsTerminal(f *os.File) bool { return isTerminal(int(f.Fd())) }

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}
