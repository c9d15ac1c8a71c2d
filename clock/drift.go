package clock

import (
	"fmt"
	"math"
	"time"
)

// A Drift bounds by how much the clocks of a client and of the masters may differ in rate over one TTL.
//
// The form, a share of the TTL plus a constant, is that of the Redis documentation on distributed locks: the share
// covers the difference in rate, and the constant the precision of the masters' expiry (1 ms) and its rounding.
type Drift struct {
	Factor   float64       // the share of the TTL, from 0 to below 1
	Constant time.Duration // is added to it; not negative
}

// DefaultDrift is one percent of the TTL plus two milliseconds.
var DefaultDrift = Drift{Factor: 0.01, Constant: 2 * time.Millisecond}

// Of returns the drift over ttl, rounded up to the nanosecond. ttl is not negative and d passes [Drift.Check]; a drift
// that no Duration can hold is the largest there is, since one that wrapped around would lengthen a validity.
func (d Drift) Of(ttl time.Duration) time.Duration {
	share := time.Duration(math.Ceil(float64(ttl) * d.Factor))
	if d.Constant > math.MaxInt64-share {
		return math.MaxInt64
	}
	return share + d.Constant
}

// Check reports what is wrong with d, or nil.
func (d Drift) Check() error {
	if math.IsNaN(d.Factor) || d.Factor < 0 || d.Factor >= 1 {
		return fmt.Errorf("clock: drift factor %v is not in [0, 1)", d.Factor)
	}
	if d.Constant < 0 {
		return fmt.Errorf("clock: drift constant %v is negative", d.Constant)
	}
	return nil
}
