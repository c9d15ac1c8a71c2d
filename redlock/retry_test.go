package redlock

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/property"
)

const ms = time.Millisecond

func TestDelayAsTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		delays Delays
		n      int
		random float64
		want   time.Duration
	}{
		{"first", Delays{Fixed: 10 * ms, Growth: 2}, 1, 0.9, 10 * ms},
		{"second", Delays{Fixed: 10 * ms, Growth: 2}, 2, 0, 20 * ms},
		{"fifth", Delays{Fixed: 10 * ms, Growth: 2}, 5, 0, 160 * ms},
		{"no growth", Delays{Fixed: 10 * ms}, 1000, 0, 10 * ms},
		{"growth of one", Delays{Fixed: 10 * ms, Growth: 1}, 1000, 0, 10 * ms},
		{"capped", Delays{Fixed: 10 * ms, Growth: 2, Cap: 50 * ms}, 4, 0, 50 * ms},
		{"capped at once", Delays{Fixed: 10 * ms, Cap: 5 * ms}, 1, 0, 5 * ms},
		{"capped forever", Delays{Fixed: 10 * ms, Growth: 2, Cap: 50 * ms}, math.MaxInt32, 0, 50 * ms},
		{"random comes on top of the cap", Delays{Fixed: 10 * ms, Random: 8 * ms, Growth: 2, Cap: 50 * ms}, 9, 0.5, 54 * ms},
		{"random does not grow", Delays{Random: 8 * ms, Growth: 2}, 9, 0.25, 2 * ms},
		{"random alone, growth beyond every number", Delays{Random: 8 * ms, Growth: 2}, 5000, 0.25, 2 * ms},
		{"random alone and a cap", Delays{Random: 8 * ms, Growth: 1e300, Cap: ms}, 5000, 0.5, 4 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.delays.Delay(c.n, c.random); got != c.want {
				t.Errorf("%+v, retry %d: %v, want %v", c.delays, c.n, got, c.want)
			}
		})
	}
}

func randomDelays(r *rand.Rand) Delays {
	span := func() time.Duration {
		if r.IntN(4) == 0 {
			return 0
		}
		return time.Duration(math.Exp(r.Float64() * math.Log(float64(time.Hour))))
	}
	d := Delays{Fixed: span(), Random: span(), Cap: span()}
	switch r.IntN(3) {
	case 0:
		d.Growth = 1 + r.Float64()*2
	case 1:
		d.Growth = math.Exp(r.Float64() * 709)
	}
	return d
}

// stepwise computes Delay by repeated multiplication, one retry after the other.
func stepwise(d Delays, n int, random float64) float64 {
	fixed, top := float64(d.Fixed), float64(math.MaxInt64/4)
	if d.Cap > 0 {
		top = float64(d.Cap)
	}
	for ; n > 1 && d.Growth > 0 && fixed < top && fixed > 0; n-- {
		if fixed *= d.Growth; d.Growth == 1 {
			break
		}
	}
	return min(fixed, top) + random*float64(d.Random)
}

func TestDelayIsRepeatedMultiplication(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		d, random := randomDelays(r), r.Float64()
		n := 1 + r.IntN(40)
		if r.IntN(4) == 0 {
			n = 1 + r.IntN(3000)
		}
		got, want := float64(d.Delay(n, random)), stepwise(d, n, random)
		if math.Abs(got-want) > 2+want*1e-9 {
			t.Errorf("%+v, retry %d: %v, want %v", d, n, time.Duration(got), time.Duration(want))
		}
		if got < 0 || d.Cap > 0 && got > float64(d.Cap+d.Random) {
			t.Errorf("%+v, retry %d: %v is out of bounds", d, n, time.Duration(got))
		}
		if more := float64(d.Delay(n+1, random)); more < got {
			t.Errorf("%+v: retry %d after %v, %d after %v", d, n, time.Duration(got), n+1, time.Duration(more))
		}
	})
}

// H41: pauses are random, so that calls that were refused together do not retry together.
func TestRandomPartSpreads(t *testing.T) {
	seen := make(map[time.Duration]bool)
	cfg := defaultConfig()
	for range 100 {
		seen[cfg.lock.pause(1)] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 calls paused for %d different times", len(seen))
	}
}

// A waiting call without a subscription uses its own delays, not those of its Locker, and continues when its policy
// would give up.
func TestPausesAreThoseOfTheCall(t *testing.T) {
	c := defaultConfig()
	cfg, err := c.lock.with([]LockOption{WithDelays(Delays{Fixed: 7 * ms, Growth: 2, Cap: 20 * ms})}, &c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // each call begins again
		next := cfg.Pauses()
		for _, want := range []time.Duration{7 * ms, 14 * ms, 20 * ms, 20 * ms} {
			if got := next(); got != want {
				t.Errorf("a pause of %v, want %v", got, want)
			}
		}
	}
	next := (&lockConfig{delays: Delays{Fixed: ms}, tries: 1}).Pauses()
	for range 3 {
		if got := next(); got != ms {
			t.Errorf("a pause of %v after the last try", got)
		}
	}
}
