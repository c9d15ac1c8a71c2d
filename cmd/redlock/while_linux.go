package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// watchProcess closes h.ended when a process ends. It fails if no process has this number. The process file
// descriptor reports the end of the process even if the parent does not wait for it, and never refers to a later
// process with the same number.
func (h *holder) watchProcess(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a filter
		return h.pollProcess(pid)
	case err != nil:
		return fmt.Errorf("--while %d: no such process", pid)
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
