package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of <linux/time.h>: monotonic, and counting suspended time.
const clockBoottime = 7

func realNow() Instant {
	var ts syscall.Timespec
	// RawSyscall suffices: reading a clock never blocks, so the scheduler need not be notified.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 { // a kernel before 2.6.39, or a sandbox that forbids it
		return runtime.now()
	}
	return Instant{boot: ts.Nano(), wall: time.Now().UnixNano()}
}
