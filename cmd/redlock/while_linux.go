package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// watchProcess closes h.ended when the process pid ends. It returns an error if there is no such process. A pidfd
// reports the end even if the parent does not reap the process, and never refers to a later process with the same ID.
func (h *holder) watchProcess(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a seccomp filter
		return h.pollProcess(pid)
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("--while %d: no such process", pid)
	case err != nil:
		return fmt.Errorf("--while %d: %w", pid, err)
	}
	go func() {
		defer close(h.ended)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return nil
}
