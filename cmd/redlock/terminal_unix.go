//go:build unix

package main

import (
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A terminal is the controlling terminal of this process, or none. One process group is in the foreground of a
// terminal. This group may read the terminal, and gets Ctrl-C and Ctrl-Z.
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

// lend gives the foreground to a group if this process has it, and reports whether the group then has the foreground.
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

// takeBack gives the foreground to this process if the group has it, and reports whether the group had it.
func (t *terminal) takeBack(group int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.foreground() == group && t.set(unix.Getpgrp()) == nil
}

// foreground returns the group that has the foreground; -1 if there is no terminal.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// set gives the foreground to a group. A process in the background may do so only while it ignores SIGTTOU.
func (t *terminal) set(group int) error {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

func stdinIsTerminal() bool { return isTerminal(0) }

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil
}
