package skew

import (
	"fmt"
	"time"
)

const (
	// Window is the largest difference that is allowed between a ballot and a master's time. A master whose clock differs
	// more from the median has no vote.
	Window = 15 * time.Second
	// Agree is the largest difference from the median that is no risk. Clocks that NTP corrects differ less.
	Agree = time.Second
)

// Excludes reports whether a master has no vote if its clock differs from the median by off.
func Excludes(off time.Duration) bool { return off.Abs() > Window }

// Risky reports whether a clock that differs from the median by off needs correction.
func Risky(off time.Duration) bool { return off.Abs() > Agree }

// Text describes the difference off of a clock from the median.
func Text(off time.Duration) string {
	unit, word := time.Second, "ahead of"
	if off < 0 {
		off, word = off.Abs(), "behind" // -off overflows for the shortest duration
	}
	if off < Window {
		unit = 100 * time.Millisecond
	}
	return fmt.Sprintf("its clock is %v %s the median of the masters", off.Round(unit), word)
}
