package clock_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlock-go/redlock/clock"
)

const second = int64(time.Second)

// H14: Sub returns the larger of the differences of the two clocks, so time that one clock has missed still counts.
func TestSubReturnsLargerDifference(t *testing.T) {
	for _, c := range []struct {
		name       string
		boot, wall int64 // how far each clock advances, in seconds
		want       time.Duration
	}{
		{"both agree", 7, 7, 7 * time.Second},
		{"wall clock set back by an hour", 7, 7 - 3600, 7 * time.Second},
		{"wall clock set back to 1970", 7, -1_700_000_000, 7 * time.Second},
		{"wall clock set forward", 7, 3607, 3607 * time.Second},
		{"virtual machine frozen for a minute", 1, 61, 61 * time.Second},
		{"suspended, counted by the boot clock, wall clock not yet set", 61, 1, 61 * time.Second},
		{"no time", 0, 0, 0},
		{"no time, wall clock set back", 0, -5, 0},
		{"later and earlier exchanged", -7, -7, -7 * time.Second},
		{"both differences negative", -7, -9, -7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := clock.At(1000*second, 1_700_000_000*second)
			to := clock.At((1000+c.boot)*second, (1_700_000_000+c.wall)*second)
			if got := to.Sub(from); got != c.want {
				t.Errorf("Sub returned %v, want %v", got, c.want)
			}
		})
	}
}

func TestAddMovesBothReadings(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		at := clock.At(r.Int64N(1<<50), r.Int64N(1<<60))
		d := time.Duration(r.Int64N(1<<50) - 1<<49)
		later := at.Add(d)
		if later.Sub(at) != d || at.Sub(later) != -d || later.Steady()-at.Steady() != int64(d) || later.Skew() != at.Skew() {
			t.Fatalf("seed %d: %v plus %v gives %v", seed, at, d, later)
		}
	}
}

func TestSkewGrowsIfSteadyClockStops(t *testing.T) {
	at := clock.At(5*second, 9*second)
	if at.Skew() != 4*second {
		t.Fatalf("the skew is %d, want %d", at.Skew(), 4*second)
	}
	frozen := clock.At(6*second, 70*second)
	if gained := frozen.Skew() - at.Skew(); gained != 60*second {
		t.Errorf("after a freeze of 60 s the skew has grown by %v, want 60s", time.Duration(gained))
	}
}

func TestReadingsAreNeverTheZeroInstant(t *testing.T) {
	for _, at := range []clock.Instant{clock.At(1, 0), clock.At(0, 1), (*clock.Clock)(nil).Now(), clock.Runtime().Now()} {
		if at == (clock.Instant{}) {
			t.Errorf("%v is the zero Instant", at)
		}
	}
}

func TestNilClockIsSystemClock(t *testing.T) {
	var c *clock.Clock
	before := time.Now()
	first := c.Now()
	second := c.Now()
	since := c.Now().Sub(first)
	if wall := first.Steady() + first.Skew(); wall < before.UnixNano() {
		t.Errorf("the wall reading %d is before %d", wall, before.UnixNano())
	}
	if second.Steady() < first.Steady() {
		t.Errorf("the steady clock went back from %d to %d", first.Steady(), second.Steady())
	}
	if since < second.Sub(first) {
		t.Errorf("Sub returned %v after an interval of %v", since, second.Sub(first))
	}
}

func TestNewReadsTheGivenFunction(t *testing.T) {
	now := clock.At(3*second, 4*second)
	c := clock.New(func() clock.Instant { return now })
	from := c.Now()
	if from != now {
		t.Fatalf("Now returned %v, want %v", from, now)
	}
	now = now.Add(time.Minute)
	if got := c.Now().Sub(from); got != time.Minute {
		t.Errorf("Sub returned %v, want a minute", got)
	}
}

func TestRuntimeFollowsBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Runtime()
		from := c.Now()
		if from.Steady() <= 0 {
			t.Errorf("the first reading is %d, not positive", from.Steady())
		}
		<-time.After(72 * time.Hour)
		if got := c.Now().Sub(from); got != 72*time.Hour {
			t.Errorf("after 72 h of the bubble the clock has advanced by %v", got)
		}
		if got := c.Now().Skew() - from.Skew(); got != 0 {
			t.Errorf("the readings drifted apart by %v", time.Duration(got))
		}
	})
}

func TestClocksMayBeReadConcurrently(t *testing.T) {
	for name, c := range map[string]*clock.Clock{"real": nil, "runtime": clock.Runtime()} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					last := c.Now()
					for range 1000 {
						now := c.Now()
						if now.Steady() < last.Steady() {
							t.Errorf("the steady clock went back from %d to %d", last.Steady(), now.Steady())
							return
						}
						last = now
					}
				})
			}
			wg.Wait()
		})
	}
}
