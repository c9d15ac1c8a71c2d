package redlock

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
)

// epoch is a plausible time of masters, in microseconds.
const epoch = int64(1_700_000_000_000_000)

// atMicros is the instant at which the steady clock shows us.
func atMicros(us int64) clock.Instant { return clock.At(us*1000, us*1000) }

// knowing makes ballots of a client that knows the time of all masters, which differ from epoch by the given offsets.
func knowing(offsets ...int64) *ballots {
	b := newBallots(len(offsets))
	for i, off := range offsets {
		b.learn(i, epoch+off, atMicros(0))
	}
	return b
}

func mustPropose(t *testing.T, b *ballots, us int64, name string, floor int64) int64 {
	t.Helper()
	ballot, _, err := b.propose(atMicros(us), name, floor, 0)
	if err != nil {
		t.Fatalf("propose %q above %d: %v", name, floor, err)
	}
	return ballot
}

func TestBallotIsTheMastersTime(t *testing.T) {
	b := knowing(0, 0, 0)
	for _, us := range []int64{0, 1, 5_000_000, 86_400_000_000} {
		if got := mustPropose(t, b, us, "a", 0); got != epoch+us {
			t.Errorf("after %d us: %d, want %d", us, got, epoch+us)
		}
	}
}

func TestBallotIsAboveTheFloor(t *testing.T) {
	b := knowing(0, 0, 0)
	for _, c := range []struct{ floor, want int64 }{
		{epoch - 1, epoch}, {epoch, epoch + 1}, {epoch + 77, epoch + 78}, {scripts.MaxBallot - 2, scripts.MaxBallot - 1},
	} {
		if got := mustPropose(t, b, 0, fmt.Sprint("name", c.floor), c.floor); got != c.want {
			t.Errorf("above %d: %d, want %d", c.floor, got, c.want)
		}
	}
}

// Lua's numbers are exact only below 2^53; what is beyond is refused, never wrapped around or rounded.
func TestBallotsEndBelow2To53(t *testing.T) {
	for _, floor := range []int64{scripts.MaxBallot - 1, scripts.MaxBallot, scripts.MaxBallot + 1, 1 << 60, math.MaxInt64 - 1, math.MaxInt64} {
		b := knowing(0, 0, 0)
		if got, _, err := b.propose(atMicros(0), "a", floor, 0); !errors.Is(err, ErrTooFar) || got != 0 {
			t.Errorf("above a floor of %d: %d, %v", floor, got, err)
		}
		b.saw(atMicros(0), "b", floor)
		if got, _, err := b.propose(atMicros(0), "b", 0, 0); !errors.Is(err, ErrTooFar) || got != 0 {
			t.Errorf("above a bar of %d: %d, %v", floor, got, err)
		}
	}
	late := newBallots(1)
	late.learn(0, scripts.MaxBallot-1, atMicros(0))
	if got, _, err := late.propose(atMicros(1), "a", 0, 0); !errors.Is(err, ErrTooFar) {
		t.Errorf("at the end of time: %d, %v", got, err)
	}
}

// H59: a name whose bar somebody poisoned costs that name one step each, and no other name anything.
func TestPoisonedBarTouchesNoOtherName(t *testing.T) {
	b := knowing(0, 0, 0, 0, 0)
	b.saw(atMicros(0), "poisoned", 1<<52)
	b.saw(atMicros(0), "used up", math.MaxInt64)
	for i := range int64(3) {
		if got := mustPropose(t, b, 0, "poisoned", 0); got != 1<<52+1+i {
			t.Errorf("try %d: %d", i, got)
		}
	}
	for _, name := range []string{"", "poisone", "poisoned ", "another"} {
		if got := mustPropose(t, b, 0, name, 0); got != epoch {
			t.Errorf("%q: %d, want %d", name, got, epoch)
		}
	}
	if _, _, err := b.propose(atMicros(0), "used up", 0, 0); !errors.Is(err, ErrTooFar) {
		t.Errorf("used up: %v", err)
	}
	if got := mustPropose(t, b, 0, "used up", 0); got != epoch {
		t.Errorf("used up, the call after: %d, want %d, since the master may have been mended", got, epoch)
	}
}

// H59: a floor that came from too few votes does not stay: what the masters say next takes its place.
func TestHighBarIsForgottenWhenTheMastersShowALowerOne(t *testing.T) {
	b := knowing(0, 0, 0, 0, 0)
	b.saw(atMicros(0), "a", 1<<52)
	if got := mustPropose(t, b, 0, "a", 0); got != 1<<52+1 {
		t.Fatalf("above a bar of 2^52: %d", got)
	}
	b.saw(atMicros(0), "a", epoch+50)
	if got := mustPropose(t, b, 0, "a", 0); got != epoch+51 {
		t.Errorf("once the bar is known to be lower: %d, want %d", got, epoch+51)
	}
	b.saw(atMicros(0), "a", epoch-50)
	if got := mustPropose(t, b, 0, "a", 0); got != epoch || len(b.high) != 0 {
		t.Errorf("once the bar is known to be past: %d, want %d", got, epoch)
	}
}

func TestBarInThePastIsForgotten(t *testing.T) {
	b := knowing(0, 0, 0)
	b.saw(atMicros(0), "old", epoch-1)
	if len(b.high) != 0 {
		t.Error("a bar below the present time was remembered")
	}
	b.saw(atMicros(0), "a", epoch+100)
	if got := mustPropose(t, b, 101, "a", 0); got != epoch+101 || len(b.high) != 0 {
		t.Errorf("once time is above the bar: %d, %d names remembered", got, len(b.high))
	}
}

// naiveMedian is the lower middle one of what is known.
func naiveMedian(known map[int]int64) int64 {
	var all []int64
	for _, off := range known {
		at := 0
		for at < len(all) && all[at] < off {
			at++
		}
		all = slices.Insert(all, at, off)
	}
	if len(all) == 0 {
		return 0
	}
	return all[(len(all)-1)/2]
}

func TestMedianAndOwnTimeOfMasters(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(9)
		b, known := newBallots(n), map[int]int64{}
		for range r.IntN(3 * n) {
			i, us, off := r.IntN(n), r.Int64N(1<<40), r.Int64N(2_000_000)-1_000_000
			b.learn(i, epoch+off+us, atMicros(us))
			known[i] = epoch + off
		}
		us := r.Int64N(1 << 40)
		want := naiveMedian(known) + us
		for i := -1; i < n; i++ {
			wantOwn := want
			if off, ok := known[i]; ok {
				wantOwn = off + us
			}
			if median, own := b.time(atMicros(us), i); median != want || own != wantOwn {
				t.Errorf("of %v master %d at %d: %d and %d, want %d and %d", known, i, us, median, own, want, wantOwn)
			}
		}
	})
}

// One master with a wrong clock, however wrong, leaves the median within what the right ones show.
func TestOneWrongClockDoesNotMoveTheMedian(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		n := 3 + r.IntN(6)
		b := newBallots(n)
		low, high, wrong := int64(math.MaxInt64), int64(math.MinInt64), r.IntN(n)
		for _, i := range r.Perm(n) {
			at := epoch + r.Int64N(1000)
			if i == wrong {
				at = 1 + r.Int64N(scripts.MaxBallot-1)
			} else {
				low, high = min(low, at), max(high, at)
			}
			b.learn(i, at, atMicros(0))
		}
		if median, _ := b.time(atMicros(0), wrong); median < low || median > high {
			t.Errorf("of %d masters, the median is %d; all but one lie in %d..%d", n, median, low, high)
		}
	})
}

func TestTimesThatCannotBeAreNotLearnt(t *testing.T) {
	b := knowing(0, 0, 0)
	for _, bad := range []int64{0, -1, math.MinInt64, scripts.MaxBallot, math.MaxInt64} {
		for i := range 3 {
			b.learn(i, bad, atMicros(0))
		}
	}
	if median, own := b.time(atMicros(5), 1); median != epoch+5 || own != epoch+5 {
		t.Errorf("the time became %d and %d", median, own)
	}
}

// For one name, as time goes on, ballots do not fall until the masters show a bar, and are above it then; they are above
// each floor, and stay in range.
func TestBallotsOfANameDoNotFall(t *testing.T) {
	property(t, func(t *testing.T, r *rand.Rand) {
		b := knowing(r.Int64N(1000), r.Int64N(1000), r.Int64N(1000))
		last, told, us := map[string]int64{}, map[string]int64{}, int64(0)
		for range 20 {
			us += r.Int64N(500)
			name := string(rune('a' + r.IntN(3)))
			near := epoch + us + r.Int64N(4000) - 2000
			if r.IntN(3) == 0 {
				b.saw(atMicros(us), name, near)
				told[name], last[name] = near, 0
				continue
			}
			got, _, err := b.propose(atMicros(us), name, near, 0)
			if err != nil || got <= near || got <= told[name] || got < last[name] || got >= scripts.MaxBallot {
				t.Errorf("%q above %d, told %d, last %d: %d, %v", name, near, told[name], last[name], got, err)
			}
			last[name] = got
		}
	})
}

func TestMemoryForHighBarsIsBounded(t *testing.T) {
	b := knowing(0, 0, 0)
	for i := range maxHigh + 500 {
		name := fmt.Sprint(i)
		b.saw(atMicros(0), name, epoch+1_000_000+int64(i))
		if len(b.high) > maxHigh {
			t.Fatalf("%d names are remembered", len(b.high))
		}
		if got := mustPropose(t, b, 0, name, 0); got != epoch+1_000_001+int64(i) {
			t.Fatalf("the newest name was forgotten: %d", got)
		}
	}
	if len(b.high) != maxHigh {
		t.Fatalf("%d names are remembered, fewer than there is room for", len(b.high))
	}
	// Those below the present time go first, and all of them.
	b.saw(atMicros(1<<40), "new", epoch+1<<41)
	if len(b.high) != 1 {
		t.Errorf("%d names are remembered once time is above all others", len(b.high))
	}
}

func TestBallotsAreSafeForConcurrentUse(t *testing.T) {
	b := knowing(0, 0, 0, 0, 0)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			name, last := fmt.Sprint(g), int64(0)
			for i := range int64(2000) {
				b.learn(g, epoch+i, atMicros(i))
				b.saw(atMicros(i), name, epoch+i+10)
				b.saw(atMicros(i), "shared", epoch+i+20)
				b.time(atMicros(i), g)
				got, _, err := b.propose(atMicros(i), name, last, 0)
				if err != nil || got <= last {
					t.Errorf("%q after %d: %d, %v", name, last, got, err)
					return
				}
				last = got
			}
		})
	}
	wg.Wait()
}
