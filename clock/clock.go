package clock

import "time"

// An Instant is a point in time on this machine. It has no meaning on another machine or after a reboot. The zero
// Instant is not a valid time.
type Instant struct {
	boot int64 // nanoseconds on a clock that cannot be set
	wall int64 // nanoseconds since 1970 on the clock that people and NTP set
}

// At returns an Instant from two readings in nanoseconds: one of a clock that is never set and has any origin, and
// one of the wall clock. It is for clocks made by [New], in tests and simulations.
func At(boot, wall int64) Instant { return Instant{boot: boot, wall: wall} }

// Sub returns the time that has passed from u to t: the larger of the differences of the two clocks. The result is
// negative only if both differences are negative.
func (t Instant) Sub(u Instant) time.Duration {
	//mutant:both-clocks = time.Duration(t.boot - u.boot)
	return time.Duration(max(t.boot-u.boot, t.wall-u.wall))
}

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	return Instant{boot: t.boot + int64(d), wall: t.wall + int64(d)}
}

// Steady returns the reading of the clock that cannot be set, in nanoseconds from an arbitrary origin. It is used to
// order the entries of a schedule; decisions about validity must use [Instant.Sub].
func (t Instant) Steady() int64 { return t.boot }

// Skew returns how far the wall clock is ahead of the steady clock, in nanoseconds from an arbitrary origin. If the
// skew has grown, the wall clock was set forward, or the machine was frozen, so every entry of a schedule ordered by
// [Instant.Steady] must be checked.
func (t Instant) Skew() int64 { return t.wall - t.boot }

// A Clock returns the time. The nil *Clock is the system clock.
type Clock struct {
	now func() Instant
}

// New returns a Clock that calls now for its readings. The function must be safe for concurrent use and must not block.
func New(now func() Instant) *Clock { return &Clock{now: now} }

// Runtime returns a Clock that uses only [time.Now], and not the system's own clocks. So inside a testing/synctest
// bubble it returns the bubble's time.
func Runtime() *Clock {
	read := goTime()
	return New(func() Instant { return At(read()) })
}

// Now returns the current instant. It never blocks.
func (c *Clock) Now() Instant {
	if c == nil {
		return machine.now()
	}
	return c.now()
}
