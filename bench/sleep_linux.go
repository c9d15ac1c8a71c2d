package main

import (
	"syscall"
	"time"
)

// sleepExactly sleeps to within some tens of microseconds, where Go's own timers are kept by a call of the kernel that
// counts in milliseconds. It holds a thread meanwhile, and for a while a processor of Go's scheduler: only a process
// that has more of those than sleepers should use it.
func sleepExactly(d time.Duration) {
	if d <= 0 {
		return
	}
	left := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}
