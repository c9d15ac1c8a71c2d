package lease

import (
	"math"
	"testing"
	"time"
)

// H11: the drift includes the constant, and the part that depends on the TTL is rounded up.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		ttl, want time.Duration
	}{
		{10 * time.Second, 102 * time.Millisecond},
		{10 * time.Millisecond, 2100 * time.Microsecond},
		{0, 2 * time.Millisecond},
		{1, 2*time.Millisecond + 1},
		{100, 2*time.Millisecond + 1},
		{101, 2*time.Millisecond + 2},
		{math.MaxInt64, 92233720368547759 + 2*time.Millisecond},
	} {
		if got := Drift(c.ttl); got != c.want {
			t.Errorf("drift of %d ns: %d ns, want %d", c.ttl, got, c.want)
		}
	}
}
