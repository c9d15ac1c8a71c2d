package scripts

import (
	"fmt"
	"time"
)

// Agree is how far the clock of a master may be off the median before that is a risk: NTP keeps clocks closer.
const Agree = time.Second

// ClockOff reports whether a clock that is this far off the median costs a master its vote.
func ClockOff(off time.Duration) bool { return max(off, -off) > Window }

// ClockRisk reports whether a clock that is this far off the median needs correction.
func ClockRisk(off time.Duration) bool { return max(off, -off) > Agree }

// ClockText describes how far a clock is off the median.
func ClockText(off time.Duration) string {
	unit, word := time.Second, "ahead of"
	if off < 0 {
		off, word = -off, "behind"
	}
	if off < Window {
		unit = 100 * time.Millisecond
	}
	return fmt.Sprintf("its clock is %v %s the median of the masters", off.Round(unit), word)
}
