//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the processor time, user and system, that this process has used. It reports false where it is unknown.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
