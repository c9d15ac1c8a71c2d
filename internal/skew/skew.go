package skew

import (
	"fmt"
	"time"
)

const (
	// Window is how far a ballot may be off a master's time. A master that is further off the median has no vote.
	Window = 15 * time.Second
	// Agree is how far a clock may be off before that is a risk: NTP keeps clocks closer.
	Agree = time.Second
)

// Excludes reports whether a clock that is this far off costs a master its vote.
func Excludes(off time.Duration) bool { return max(off, -off) > Window }

// Risky reports whether a clock that is this far off needs correction.
func Risky(off time.Duration) bool { return max(off, -off) > Agree }

// Text describes how far a clock is off.
func Text(off time.Duration) string {
	unit, word := time.Second, "ahead of"
	if off < 0 {
		off, word = -off, "behind"
	}
	if off < Window {
		unit = 100 * time.Millisecond
	}
	return fmt.Sprintf("its clock is %v %s the median of the masters", off.Round(unit), word)
}
