package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of <linux/time.h>: monotonic, and counting suspended time.
const clockBoottime = 7

// origin gives the fallback of realNow a starting point; it is read nowhere else.
var origin = time.Now()

func realNow() Instant {
	var ts syscall.Timespec
	// The raw form is enough: reading a clock never blocks, so the scheduler need not hear of it.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	now := time.Now()
	if errno != 0 { // a kernel before 2.6.39, or a sandbox that forbids it
		return Instant{boot: int64(now.Sub(origin)) + 1, wall: now.UnixNano()}
	}
	return Instant{boot: ts.Nano(), wall: now.UnixNano()}
}
