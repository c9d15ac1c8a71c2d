package clock

import (
	"syscall"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of <linux/time.h>, a monotonic clock that includes the time of suspensions.
const clockBoottime = 7

// readBoot reads the boot clock. The second result is false on a kernel before 2.6.39, or in a sandbox that forbids
// the system call.
func readBoot() (int64, bool) {
	var ts syscall.Timespec
	// RawSyscall suffices: reading a clock never blocks, so the scheduler need not be notified.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano(), errno == 0
}
