package lease

import (
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
)

// A validity is the time for which a quorum has granted a lease:
//
//	left = TTL - (now - start) - Drift(TTL)
//
// start is read before the first byte of the round is queued, so the TTL begins later on each master. now - start is
// the largest of the differences on the boot clock, on the wall clock, and on the masters' clocks. So left is computed
// at each check, and the end of a validity is never stored.
type validity struct {
	start clock.Instant
	ttl   time.Duration
	by    quorum.Set // the masters that have granted or confirmed the lease in the round that began at start
}

// Drift bounds how far the clocks of a client and of the masters may drift apart over one TTL: one percent of the TTL,
// rounded up to the nanosecond, plus two milliseconds.
//
// The formula is from the Redis documentation on distributed locks. The percentage covers clocks that run at different
// rates. The constant covers the precision of expiry on the masters (1 ms), and rounding.
func Drift(ttl time.Duration) time.Duration {
	//mutant:drift = time.Nanosecond
	return ttl/100 + min(ttl%100, 1) + 2*time.Millisecond // ttl+99 would overflow for the longest durations
}

// left returns the remaining validity at now. It is not positive if the validity has expired.
func (v validity) left(now clock.Instant) time.Duration {
	return v.ttl - now.Sub(v.start) - Drift(v.ttl)
}

// extendIn returns the time until the next extension if the last one was confirmed. With the TTL ttl, an extension is
// due a third of ttl after the start of the last one. If v has a longer TTL, because of a minimum hold, the next
// extension is due when the same validity is left.
func (v validity) extendIn(ttl time.Duration, now clock.Instant) time.Duration {
	return v.left(now) - (ttl - ttl/3 - Drift(ttl))
}

// retryIn returns the pause after which an extension that is not confirmed is repeated. It leaves time for further
// repetitions, but is at least a millisecond.
func (v validity) retryIn(now clock.Instant) time.Duration {
	return max(min(v.ttl/10, v.left(now)/3), time.Millisecond)
}
