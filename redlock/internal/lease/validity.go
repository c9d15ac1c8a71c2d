package lease

import (
	"time"

	"github.com/redlock-go/redlock/clock"
)

// A validity is the time for which a quorum has granted a lease. It owns all arithmetic about that:
//
//	left = TTL - (now - start) - drift(TTL)
//
// start is taken before the first byte of the round is queued, so no master can have begun to count earlier. now -
// start is the larger of what two clocks say; so the validity left is computed at each look and never stored as an
// instant.
type validity struct {
	start clock.Instant
	ttl   time.Duration
	drift time.Duration
}

// left returns the validity at now; not positive when it has ended.
func (v validity) left(now clock.Instant) time.Duration { return v.ttl - now.Sub(v.start) - v.drift }

// extendIn returns the time until the next extension of a healthy lease by ttl: it is due when two thirds of the new
// validity are left. The validity itself may be of a longer TTL, because of a minimum hold, and so have a larger drift.
func (v validity) extendIn(ttl time.Duration, d Drift, now clock.Instant) time.Duration {
	return v.left(now) - (ttl - ttl/3 - d.Of(ttl))
}

// retryIn returns the pause between an extension and the next try, for as long as it is not confirmed: it leaves time
// for further tries, but is at least a millisecond.
func (v validity) retryIn(now clock.Instant) time.Duration {
	return max(min(v.ttl/10, v.left(now)/3), time.Millisecond)
}
