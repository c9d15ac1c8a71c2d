package redlock

import (
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A lease is the time for which a quorum has promised a hold, and owns all arithmetic about it:
//
//	validity = TTL - (now - start) - drift(TTL)
//
// after the Redis documentation on distributed locks. start is taken before the first byte of the round is queued, so
// no master can have begun to count earlier.
type lease struct {
	start clock.Instant
	ttl   time.Duration
	drift clock.Drift
}

// left is the validity at now; not positive when it is over.
func (l lease) left(now clock.Instant) time.Duration {
	return l.ttl - now.Sub(l.start) - l.drift.Of(l.ttl)
}

// end is the instant at which the validity is over.
func (l lease) end() clock.Instant {
	return l.start.Add(l.ttl - l.drift.Of(l.ttl))
}

// extendAt is when the next extension of a healthy hold, by ttl, is due: when two thirds of what such an extension gives
// are left. That is a third of the TTL after the last extension, or later where that one gave more.
func (l lease) extendAt(ttl time.Duration) clock.Instant {
	return l.end().Add(ttl/3 - (ttl - l.drift.Of(ttl)))
}

// retryAfter is the pause before extension attempt n (from 1) after a failed one: short, doubling, and not so long
// that the rest of the validity allows no further try, but at least a millisecond.
func (l lease) retryAfter(n int, now clock.Instant) time.Duration {
	pause := l.ttl / 100 << min(n-1, 4)
	return max(min(pause, l.left(now)/3), time.Millisecond)
}
