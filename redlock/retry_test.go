package redlock

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
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
		{"capped for ever", Delays{Fixed: 10 * ms, Growth: 2, Cap: 50 * ms}, math.MaxInt32, 0, 50 * ms},
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
	d := Delays{Fixed: span(), Random: span(), Cap: span(), Tries: r.IntN(5)}
	switch r.IntN(3) {
	case 0:
		d.Growth = 1 + r.Float64()*2
	case 1:
		d.Growth = math.Exp(r.Float64() * 709)
	}
	return d
}

// stepwise is Delay by repeated multiplication, one retry after the other.
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
		if d.check() != nil {
			return
		}
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

func TestTriesCountTheFirstAttempt(t *testing.T) {
	for tries, pauses := range map[int]int{1: 0, 2: 1, 3: 2, 100: 99} {
		b := Delays{Fixed: ms, Tries: tries}.Start()
		for i := range pauses {
			if pause, again := b.Next(); !again || pause != ms {
				t.Errorf("%d tries: pause %d is %v, %v", tries, i+1, pause, again)
			}
		}
		for range 3 {
			if _, again := b.Next(); again {
				t.Errorf("%d tries: another after the last", tries)
			}
		}
	}
}

func TestNoTriesGoOnForEver(t *testing.T) {
	b := Delays{Fixed: ms, Random: ms, Growth: 1.5, Cap: 2 * ms}.Start()
	for i := range 10_000 {
		if pause, again := b.Next(); !again || pause < ms || pause >= 3*ms {
			t.Fatalf("pause %d is %v, %v", i+1, pause, again)
		}
	}
}

// H41: pauses are spread, so that those who were refused together do not come back together.
func TestRandomPartSpreads(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		pause, _ := Delays{Random: time.Hour}.Start().Next()
		seen[pause] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 calls paused for %d different times", len(seen))
	}
}

// H44: what one call used up is not missing in the next.
func TestBackoffIsMadeAnewForEachCall(t *testing.T) {
	cfg := defaultConfig()
	cfg.lock.delays = Delays{Fixed: ms, Growth: 2, Tries: 4}
	for call := range 3 {
		b := cfg.lock.start()
		for i, want := range []time.Duration{ms, 2 * ms, 4 * ms} {
			if pause, again := b.Next(); !again || pause != want {
				t.Errorf("call %d: pause %d is %v, %v", call, i+1, pause, again)
			}
		}
		if _, again := b.Next(); again {
			t.Errorf("call %d: a fifth attempt", call)
		}
	}
	made := 0
	WithBackoff(func() Backoff { made++; return DefaultDelays.Start() }).applyLock(&cfg.lock)
	for range 3 {
		cfg.lock.start()
	}
	if made != 3 {
		t.Errorf("a policy of one's own was started %d times in 3 calls", made)
	}
}

// A call that waits and cannot hear the masters pauses as it was told itself, not as its Locker was; and it goes on when
// its own policy would give up.
func TestPausesAreThoseOfTheCall(t *testing.T) {
	c := defaultConfig()
	cfg, err := c.lock.with([]LockOption{WithDelays(Delays{Fixed: 7 * ms, Growth: 2, Cap: 20 * ms})}, &c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // each call begins anew
		next := cfg.delays.pauses()
		for _, want := range []time.Duration{7 * ms, 14 * ms, 20 * ms, 20 * ms} {
			if got := next(); got != want {
				t.Errorf("a pause of %v, want %v", got, want)
			}
		}
	}
	next := Delays{Fixed: ms, Tries: 1}.pauses()
	for range 3 {
		if got := next(); got != ms {
			t.Errorf("a pause of %v after the last try", got)
		}
	}
}

func TestDelaysCheckNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		delays Delays
		want   string
	}{
		{Delays{Fixed: -3 * ms}, "-3ms"},
		{Delays{Fixed: ms, Random: -4 * ms}, "-4ms"},
		{Delays{Fixed: ms, Cap: -5 * ms}, "-5ms"},
		{Delays{Fixed: ms, Growth: -1.5}, "-1.5"},
		{Delays{Fixed: ms, Growth: 0.75}, "0.75"},
		{Delays{Fixed: ms, Growth: math.NaN()}, "NaN"},
		{Delays{Fixed: ms, Growth: math.Inf(1)}, "+Inf"},
		{Delays{Fixed: ms, Growth: math.Inf(-1)}, "-Inf"},
		{Delays{}, "flood"},
		{Delays{Growth: 2, Cap: time.Second}, "flood"},
		{Delays{Fixed: ms, Tries: -7}, "-7 tries"},
		{Delays{Fixed: 61 * time.Minute}, "1h1m0s"},
		{Delays{Fixed: ms, Random: 62 * time.Minute}, "1h2m0s"},
		{Delays{Fixed: ms, Cap: 63 * time.Minute}, "1h3m0s"},
	} {
		err := c.delays.check()
		if !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an ErrInvalidOption with %q", c.delays, err, c.want)
		}
	}
	most := Delays{Fixed: time.Hour, Random: time.Hour, Cap: time.Hour, Growth: 1, Tries: 1}
	for _, d := range []Delays{DefaultDelays, {Fixed: 1}, {Random: 1}, most} {
		if err := d.check(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
