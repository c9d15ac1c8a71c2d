package clock

import "time"

// An Instant is a point in time on this machine. It has no meaning on another machine or after a reboot. The zero
// Instant is not a valid time.
type Instant struct {
	boot int64 // nanoseconds on a clock that is never set
	wall int64 // nanoseconds since 1970 on the wall clock, which people and NTP set
}

// At returns an Instant with the given readings in nanoseconds. boot is that of a clock that is never set, with any
// origin. wall is that of the wall clock, since 1970. Functions given to [New] use At, in tests and simulations.
func At(boot, wall int64) Instant { return Instant{boot: boot, wall: wall} }

// Sub returns the time that has passed from u to t: the larger of the differences of the two clocks. So the result is
// negative only if both differences are negative.
func (t Instant) Sub(u Instant) time.Duration {
	//mutant:both-clocks = time.Duration(t.boot - u.boot)
	return time.Duration(max(t.boot-u.boot, t.wall-u.wall))
}

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant {
	return Instant{boot: t.boot + int64(d), wall: t.wall + int64(d)}
}

// Steady returns the reading of the clock that cannot be set, in nanoseconds from an arbitrary origin. Use Steady to
// order the entries of a schedule, but [Instant.Sub] to decide whether a lock is valid.
func (t Instant) Steady() int64 { return t.boot }

// Skew returns how far the wall clock is ahead of the steady clock, in nanoseconds from an arbitrary origin. If the
// skew grows, the wall clock was set forward or the machine was frozen, and every entry of a schedule ordered by
// [Instant.Steady] must be checked.
func (t Instant) Skew() int64 { return t.wall - t.boot }

// A Clock returns the time. The nil *Clock is the system clock.
type Clock struct {
	now func() Instant
}

// New returns a Clock that calls now for the current instant. now must be safe for concurrent use and must not block.
func New(now func() Instant) *Clock { return &Clock{now: now} }

// Runtime returns a Clock that uses only [time.Now], and not the clocks of the system. Inside a testing/synctest
// bubble, such a Clock returns the time of the bubble.
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
