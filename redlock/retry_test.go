package redlock

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlock-go/redlock/internal/property"
)

const ms = time.Millisecond

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
