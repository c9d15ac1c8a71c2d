package clock_test

import (
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/clock"
)

// monotonic reads CLOCK_MONOTONIC, which stops while the machine is suspended.
func monotonic(t *testing.T) int64 {
	t.Helper()
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		t.Fatalf("cannot read CLOCK_MONOTONIC: %v", errno)
	}
	return ts.Nano()
}

// H14: the steady reading advances at least as much as Go's monotonic clock, and also during a suspension. The test
// compares elapsed times and not readings, since a container may shift the origin of either clock.
func TestBootClockIsNotSlower(t *testing.T) {
	var c *clock.Clock
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 20 {
		outer := c.Now()
		from := monotonic(t)
		<-tick.C
		elapsed := time.Duration(monotonic(t) - from)
		if got := time.Duration(c.Now().Steady() - outer.Steady()); got < elapsed {
			t.Fatalf("the steady clock advanced by only %v, while the monotonic clock advanced by %v", got, elapsed)
		}
	}
}
