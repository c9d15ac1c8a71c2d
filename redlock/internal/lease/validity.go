package lease

import (
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A validity is the time for which a quorum has granted a lease. All arithmetic about it is in its methods:
//
//	left = TTL - (now - start) - drift(TTL)
//
// start is read before the first byte of the round is queued, so on no master can the TTL have begun earlier. now -
// start is the larger of the differences on two clocks, so left is computed at each check, and its end is never
// stored.
type validity struct {
	start clock.Instant
	ttl   time.Duration
	drift time.Duration
}

// left returns the validity at now; not positive when it has ended.
func (v validity) left(now clock.Instant) time.Duration { return v.ttl - now.Sub(v.start) - v.drift }

// extendIn returns the time until the next extension if the last one was confirmed. It is due when two thirds of the
// validity that an extension by ttl gives are left. v itself may have a longer TTL, because of a minimum hold, and so
// a larger drift.
func (v validity) extendIn(ttl time.Duration, d Drift, now clock.Instant) time.Duration {
	return v.left(now) - (ttl - ttl/3 - d.Of(ttl))
}

// retryIn returns the pause after which an extension that is not confirmed is repeated. The pause leaves time for
// further tries, but is at least a millisecond.
func (v validity) retryIn(now clock.Instant) time.Duration {
	return max(min(v.ttl/10, v.left(now)/3), time.Millisecond)
}
