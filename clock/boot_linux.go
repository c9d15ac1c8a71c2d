package clock

import (
	"syscall"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of <linux/time.h>, a monotonic clock that includes the time of suspensions.
const clockBoottime = 7

// readBoot reads the boot clock. ok is false on a kernel before 2.6.39, or in a sandbox that forbids the system call.
func readBoot() (now int64, ok bool) {
	var ts syscall.Timespec
	// RawSyscall does not notify the scheduler, which is not needed because reading a clock never blocks.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano(), errno == 0
}
