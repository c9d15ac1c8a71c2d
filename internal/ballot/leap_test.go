package ballot

import (
	"slices"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// H118: time that has passed for a majority of the masters but not for this machine is counted once, as missed time.
func TestMissedTime(t *testing.T) {
	const s = time.Second
	type show struct {
		after time.Duration // time since the first readings, on this machine
		leap  time.Duration // time by which the masters' clocks have gained on this machine since
		of    quorum.Set    // masters with this leap
	}
	for name, c := range map[string]struct {
		shows    []show
		within   time.Duration
		at, most time.Duration // bounds of the missed time
	}{
		"nothing":                      {[]show{{s, 0, 0b11111}}, 0, 0, 0},
		"all":                          {[]show{{s, 20 * s, 0b11111}}, 0, 20 * s, 20 * s},
		"a majority":                   {[]show{{s, 20 * s, 0b111}}, 0, 20 * s, 20 * s},
		"a minority":                   {[]show{{s, 20 * s, 0b11}}, 0, 0, 0},
		"back":                         {[]show{{s, -20 * s, 0b11111}}, 0, 0, 0},
		"one after the other, in time": {[]show{{s, 9 * s, 1}, {2 * s, 9 * s, 2}, {3 * s, 9 * s, 4}}, 0, 9 * s, 9 * s},
		"one after the other, too late": {
			[]show{{s, 9 * s, 1}, {6 * s, 0, 30}, {7 * s, 9 * s, 2}, {13 * s, 9 * s, 4}}, 0, 0, 0,
		},
		"one after the other, read rarely": {
			[]show{{20 * s, 9 * s, 1}, {40 * s, 9 * s, 2}, {55 * s, 9 * s, 4}}, 0, 9 * s, 9 * s,
		},
		"the others later, once": {[]show{{s, 9 * s, 7}, {2 * s, 9 * s, 31}, {3 * s, 9 * s, 31}}, 0, 9 * s, 9 * s},
		"twice":                  {[]show{{s, 9 * s, 31}, {2 * s, 19 * s, 31}}, 0, 19 * s, 19 * s},
		"of unlike length": {
			[]show{{s, 9 * s, 1}, {s, 5 * s, 2}, {s, 7 * s, 4}, {s, time.Hour, 8}}, 0, 5 * s, 5 * s,
		},
		"a slow clock":                    {[]show{{s, s / 100, 31}, {2 * s, s / 50, 31}, {3 * s, s / 33, 31}}, 0, 0, 0},
		"what exact readings show":        {[]show{{s, s / 5, 31}}, 10 * time.Millisecond, s / 5, s/5 + 20*time.Millisecond},
		"what uncertain readings explain": {[]show{{s, s / 5, 31}}, s / 10, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clocks := NewClocks(quorum.Rule{Old: quorum.First(5)})
			now := time.Hour
			counting := clocks.Counting(clock.New(func() clock.Instant { return at(now.Microseconds()) }))
			began := counting.Now()
			for i := range 5 {
				clocks.Learn(i, epoch+now.Microseconds(), at(now.Microseconds()), c.within)
			}
			for _, show := range c.shows {
				now = time.Hour + show.after
				for i := range show.of.All() {
					clocks.Learn(i, epoch+(now+show.leap).Microseconds(), at(now.Microseconds()), c.within)
				}
			}
			if missed := counting.Now().Sub(began) - (now - time.Hour); missed < c.at || missed > c.most {
				t.Errorf("the missed time is %v, want %v to %v", missed, c.at, c.most)
			}
		})
	}
}

// H118: the elapsed time is the largest of the times that the boot clock, the wall clock and the masters' clocks show,
// never a sum of them.
func TestLargestOfThreeClocksCounts(t *testing.T) {
	clocks := NewClocks(quorum.Rule{Old: quorum.First(3)})
	boot, wall := time.Second, time.Second
	counting := clocks.Counting(clock.New(func() clock.Instant { return clock.At(int64(boot), int64(wall)) }))
	learn := func(d time.Duration) {
		for i := range 3 {
			clocks.Learn(i, epoch+d.Microseconds(), clock.At(int64(boot), int64(wall)), 0)
		}
	}
	began := counting.Now()
	learn(0)
	wall += 20 * time.Second // after a freeze of a virtual machine whose wall clock was set
	learn(20 * time.Second)
	if d := counting.Now().Sub(began); d != 20*time.Second {
		t.Errorf("%v passed, want 20 s", d)
	}
	boot, wall = boot+time.Second, wall+time.Second
	learn(41 * time.Second) // both clocks have missed another 20 s
	if d := counting.Now().Sub(began); d != 41*time.Second {
		t.Errorf("%v passed, want 41 s", d)
	}
	if got := clocks.Median(counting.Now()); got != epoch+41_000_000 {
		t.Errorf("the median is %d", got)
	}
}

// A master whose clock is beyond the range of ballots has no offset that could be corrected. The missed time is
// computed from the other masters.
func TestMissedTimeWithClockBeyondBallots(t *testing.T) {
	clocks := NewClocks(quorum.Rule{Old: quorum.First(3)})
	now := time.Hour
	counting := clocks.Counting(clock.New(func() clock.Instant { return at(now.Microseconds()) }))
	learn := func(missed time.Duration) {
		for i, origin := range slices.Backward([]int64{epoch, epoch, scripts.MaxBallot}) {
			clocks.Learn(i, origin+(now+missed).Microseconds(), at(now.Microseconds()), 0)
		}
	}
	learn(0)
	began := counting.Now()
	learn(20 * time.Second)
	if d := counting.Now().Sub(began); d != 20*time.Second {
		t.Errorf("%v passed, want 20 s", d)
	}
}
