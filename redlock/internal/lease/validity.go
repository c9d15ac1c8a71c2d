package lease

import (
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A validity is the time for which a quorum has granted a lease. All arithmetic about it is in its methods:
//
//	left = TTL - (now - start) - Drift(TTL)
//
// start is read before the first byte of the round is queued, so on no master can the TTL have begun earlier. now -
// start is the larger of the differences on two clocks, so left is computed at each check, and its end is never
// stored.
type validity struct {
	start clock.Instant
	ttl   time.Duration
}

// Drift bounds how far the clocks of a client and of the masters may drift apart over one TTL: one percent of the TTL,
// rounded up to the nanosecond, plus two milliseconds.
//
// The form is that of the Redis documentation on distributed locks: the share covers the difference in rate, and the
// constant the precision of the masters' expiry (1 ms) and its rounding.
func Drift(ttl time.Duration) time.Duration {
	//mutant:drift = time.Nanosecond
	return (ttl+99)/100 + 2*time.Millisecond
}

// left returns the validity at now; not positive when it has ended.
func (v validity) left(now clock.Instant) time.Duration {
	return v.ttl - now.Sub(v.start) - Drift(v.ttl)
}

// extendIn returns the time until the next extension if the last one was confirmed. It is due when two thirds of the
// validity that an extension by ttl gives are left. v itself may have a longer TTL, because of a minimum hold, and so
// a larger drift.
func (v validity) extendIn(ttl time.Duration, now clock.Instant) time.Duration {
	return v.left(now) - (ttl - ttl/3 - Drift(ttl))
}

// retryIn returns the pause after which an extension that is not confirmed is repeated. The pause leaves time for
// further tries, but is at least a millisecond.
func (v validity) retryIn(now clock.Instant) time.Duration {
	return max(min(v.ttl/10, v.left(now)/3), time.Millisecond)
}
