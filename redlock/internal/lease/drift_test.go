package lease

import (
	"math"
	"strings"
	"testing"
	"time"
)

// H11: the drift includes the constant, and the part that depends on the TTL is rounded up.
func TestDriftOf(t *testing.T) {
	for _, c := range []struct {
		drift Drift
		ttl   time.Duration
		want  time.Duration
	}{
		{DefaultDrift, 10 * time.Second, 102 * time.Millisecond},
		{DefaultDrift, 10 * time.Millisecond, 2100 * time.Microsecond},
		{DefaultDrift, 0, 2 * time.Millisecond},
		{DefaultDrift, 1, 2*time.Millisecond + 1},
		{DefaultDrift, 101, 2*time.Millisecond + 2},
		{Drift{}, time.Hour, 0},
		{Drift{Factor: 0.5}, 3, 2},
		{Drift{Factor: 1e-18}, time.Nanosecond, 1},
		{Drift{Constant: time.Second}, time.Minute, time.Second},
		{Drift{Factor: 0.5, Constant: math.MaxInt64}, time.Minute, math.MaxInt64},
		{Drift{Constant: math.MaxInt64}, 0, math.MaxInt64},
	} {
		if got := c.drift.Of(c.ttl); got != c.want {
			t.Errorf("the drift %+v of %d ns is %d ns, want %d", c.drift, c.ttl, got, c.want)
		}
	}
}

func TestDriftCheckRefusesInvalidDrift(t *testing.T) {
	for _, c := range []struct {
		drift Drift
		want  string // in the error text, "" for no error
	}{
		{DefaultDrift, ""},
		{Drift{}, ""},
		{Drift{Factor: math.Nextafter(1, 0)}, ""},
		{Drift{Factor: 1}, "drift factor 1 "},
		{Drift{Factor: -0.001}, "-0.001"},
		{Drift{Factor: 17.5}, "17.5"},
		{Drift{Factor: math.NaN()}, "NaN"},
		{Drift{Factor: math.Inf(1)}, "+Inf"},
		{Drift{Factor: math.Inf(-1)}, "-Inf"},
		{Drift{Constant: -3 * time.Millisecond}, "-3ms"},
	} {
		err := c.drift.Check()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v was refused: %v", c.drift, err)
		case c.want != "" && err == nil:
			t.Errorf("%+v was accepted", c.drift)
		case c.want != "" && (!strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %q does not contain %q", c.drift, err, c.want)
		}
	}
}
