package lease

import (
	"fmt"
	"math"
	"time"
)

// A Drift bounds how far the clocks of a client and of the masters may drift apart over one TTL.
//
// The form, a share of the TTL plus a constant, is that of the Redis documentation on distributed locks: the share
// covers the difference in rate, and the constant the precision of the masters' expiry (1 ms) and its rounding.
type Drift struct {
	Factor   float64       // the share of the TTL, from 0 to below 1
	Constant time.Duration // added to the share; not negative
}

// DefaultDrift is one percent of the TTL plus two milliseconds.
//
//mutant:drift = Drift{Constant: time.Nanosecond}
var DefaultDrift = Drift{Factor: 0.01, Constant: 2 * time.Millisecond}

// Of returns the drift over ttl, rounded up to the nanosecond. ttl must not be negative, and d must pass
// [Drift.Check]. If the drift overflows, Of returns the maximum Duration, since a drift that wrapped around would
// lengthen a validity.
func (d Drift) Of(ttl time.Duration) time.Duration {
	share := time.Duration(math.Ceil(float64(ttl) * d.Factor))
	if d.Constant > math.MaxInt64-share {
		return math.MaxInt64
	}
	return share + d.Constant
}

// Check returns an error if d is invalid.
func (d Drift) Check() error {
	if math.IsNaN(d.Factor) || d.Factor < 0 || d.Factor >= 1 {
		return fmt.Errorf("drift factor %v is not in [0, 1)", d.Factor)
	}
	if d.Constant < 0 {
		return fmt.Errorf("drift constant %v is negative", d.Constant)
	}
	return nil
}
