package ballot

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/property"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
)

// epoch is a plausible time of masters, in microseconds.
const epoch = int64(1_700_000_000_000_000)

// at returns an instant at which the steady clock and the wall clock both read us, in microseconds.
func at(us int64) clock.Instant { return clock.At(us*1000, us*1000) }

// knowing returns the ballots of a client that knows the clocks of all masters. The clocks differ from epoch by these
// offsets, in microseconds.
func knowing(offsets ...int64) *Ballots {
	b := New(quorum.Rule{Old: quorum.First(len(offsets))})
	for i, off := range offsets {
		b.Learn(i, epoch+off, at(0), 0)
	}
	return b
}

func mustPropose(t *testing.T, b *Ballots, us int64, name string, above int64) int64 {
	t.Helper()
	first, last, err := b.Propose(at(us), name, above, 0)
	if err != nil || first != last {
		t.Fatalf("Propose for %q above %d returned %d to %d, %v", name, above, first, last, err)
	}
	return first
}

func TestBallotIsAboveTheFence(t *testing.T) {
	for _, c := range []struct{ above, want int64 }{
		{epoch - 1, epoch}, {epoch, epoch + 1}, {epoch + 77, epoch + 78}, {scripts.MaxBallot - 2, scripts.MaxBallot - 1},
	} {
		if got := mustPropose(t, knowing(0, 0, 0), 0, "a", c.above); got != c.want {
			t.Errorf("above %d Propose returned %d, want %d", c.above, got, c.want)
		}
		if got, err := knowing(0, 0, 0).Repair(at(0), c.above); err != nil || got != c.want {
			t.Errorf("above %d Repair returned %d, %v, want %d", c.above, got, err, c.want)
		}
	}
}

// A range has spare ballots only if it begins at the present time. So fences are never ahead of the clock by more
// than one range.
func TestSpareBallotsOnlyAtPresentTime(t *testing.T) {
	b := knowing(0, 0, 0)
	if first, last, err := b.Propose(at(0), "a", 0, 32); err != nil || first != epoch || last != epoch+32 {
		t.Errorf("Propose returned %d to %d, %v, want 32 spare ballots", first, last, err)
	}
	if first, last, err := b.Propose(at(0), "a", epoch+32, 32); err != nil || first != epoch+33 || last != first {
		t.Errorf("above the last range Propose returned %d to %d, %v, want no spare ballots", first, last, err)
	}
}

// Lua's numbers are exact only below 2^53; larger ballots are refused, never wrapped around or rounded.
func TestBallotsEndBelow2To53(t *testing.T) {
	const most = scripts.MaxBallot
	for _, above := range []int64{most - 1, most, most + 1, 1 << 60, math.MaxInt64} {
		b := knowing(0, 0, 0)
		if got, _, err := b.Propose(at(0), "a", above, 0); !errors.Is(err, ErrTokensExhausted) || got != 0 {
			t.Errorf("above %d Propose returned %d, %v", above, got, err)
		}
		if got, err := b.Repair(at(0), above); !errors.Is(err, ErrTokensExhausted) {
			t.Errorf("above %d Repair returned %d, %v", above, got, err)
		}
		b.Saw(at(0), "b", above)
		if got, _, err := b.Propose(at(0), "b", 0, 0); !errors.Is(err, ErrTokensExhausted) || got != 0 {
			t.Errorf("above a fence of %d Propose returned %d, %v", above, got, err)
		}
	}
	late := New(quorum.Rule{Old: quorum.First(1)})
	late.Learn(0, scripts.MaxBallot-1, at(0), 0)
	if got, _, err := late.Propose(at(1), "a", 0, 0); !errors.Is(err, ErrTokensExhausted) {
		t.Errorf("at the end of time: %d, %v", got, err)
	}
}

// H59: a high fence that came from too few votes is replaced by the next fence that the masters report.
func TestHighFenceIsForgotten(t *testing.T) {
	b := knowing(0, 0, 0, 0, 0)
	for _, c := range []struct{ saw, want int64 }{
		{1 << 52, 1<<52 + 1}, {epoch + 50, epoch + 51}, {epoch - 50, epoch},
	} {
		b.Saw(at(0), "a", c.saw)
		if got := mustPropose(t, b, 0, "a", 0); got != c.want {
			t.Errorf("above a fence of %d Propose returned %d, want %d", c.saw, got, c.want)
		}
	}
	if len(b.high) != 0 {
		t.Error("a fence below the present time was stored")
	}
	b.Saw(at(0), "a", epoch+100)
	if got := mustPropose(t, b, 101, "a", 0); got != epoch+101 || len(b.high) != 0 {
		t.Errorf("once time is above the fence: %d, %d names stored", got, len(b.high))
	}
}

// H59: if a quorum of the masters has replied, the fences of at least a quorum are at or below Floor. A minority of
// poisoned masters does not raise Floor above the fences of the healthy masters, however few votes a round has.
func TestFloorAsNaive(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(7)
		minority := n - quorum.Quorum(n)
		ill := r.IntN(minority + 1)
		poisoned := r.IntN(minority - ill + 1)
		heard := r.IntN(n - ill + 1)
		var fences []int64
		highest := int64(0)
		for k := range heard {
			if k < poisoned {
				fences = append(fences, 1<<52+r.Int64N(100))
				continue
			}
			fences = append(fences, 1+r.Int64N(1000))
			highest = max(highest, fences[k])
		}
		if got := Floor(slices.Clone(fences), n, ill); got > highest {
			t.Errorf("with the fences %v, of %d masters, %d of which cannot vote, Floor returned %d", fences, n, ill, got)
		}
		if got := Floor(slices.Clone(fences), n, n-heard); heard >= quorum.Quorum(n) {
			below := 0
			for _, f := range fences {
				if f <= got {
					below++
				}
			}
			if below < quorum.Quorum(n) {
				t.Errorf("the fences are %v, of %d masters: only %d are at or below the floor %d", fences, n, below, got)
			}
		}
	})
}

// naiveMiddle returns the middle offset. Of two middle offsets it returns the earlier one if less is 1, and the
// later one if less is 0.
func naiveMiddle(known map[int]int64, less int) int64 {
	var all []int64
	for _, off := range known {
		all = append(all, off)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-less)/2]
}

// Median, Latest, Own and Off return what a simple computation over the known clocks returns.
func TestClockEstimates(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(9)
		members := quorum.Set(r.Uint64()) & quorum.First(n)
		c, known, counted := NewClocks(quorum.Rule{Old: members}), map[int]int64{}, map[int]int64{}
		for range r.IntN(3 * n) {
			i, us, off := r.IntN(n), r.Int64N(1<<40), r.Int64N(60_000_000)-30_000_000
			c.Learn(i, epoch+off+us, at(us), time.Hour) // so uncertain that no missed time is detected
			if known[i] = epoch + off; members.Has(i) {
				counted[i] = epoch + off
			}
		}
		us := r.Int64N(1 << 40)
		want := naiveMiddle(counted, 1) + us
		latest, upper := want, naiveMiddle(counted, 0)+us
		first := upper
		for _, off := range counted {
			if off+us-want <= 15_000_000 {
				latest = max(latest, off+us)
			}
			if upper-off-us <= 15_000_000 {
				first = min(first, off+us)
			}
		}
		if got := c.Read(at(us)); got.First != first {
			t.Errorf("with the clocks %v at %d Read returned %+v, want the first %d", counted, us, got, first)
		} else if got.Median != want || got.Latest != latest || got.Known.Len() != len(counted) {
			t.Errorf("with the clocks %v at %d Read returned %+v, want %d and %d", counted, us, got, want, latest)
		}
		for i := range n {
			own, ok := known[i]
			if own += us; !ok {
				own = want
			}
			away := time.Duration(max(own-want, naiveMiddle(counted, 0)+us-own)) * time.Microsecond
			if len(counted) == 0 || !ok {
				away = 0
			}
			if c.Own(at(us), i) != own || c.Off(i).Abs() != away {
				t.Errorf("of %v master %d: own %d, away %v", known, i, c.Own(at(us), i), c.Off(i).Abs())
			}
		}
	})
}

// H176: a minority of wrong clocks neither moves a ballot past all correct clocks nor a deadline before all of them,
// however many clocks are known, and in each set of a joint configuration.
func TestMinorityOfWrongClocks(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		rule := quorum.Rule{Old: quorum.First(1 + r.IntN(7))}
		if r.IntN(2) == 0 {
			rule.Next = quorum.First(9) &^ quorum.First(r.IntN(5))
		}
		c := NewClocks(rule)
		wrong, correct := map[int]bool{}, map[int]int64{}
		for _, i := range r.Perm(9) {
			bad := true // whether one more wrong clock leaves a minority of wrong clocks in each set
			for _, set := range rule.Sets() {
				count := 0
				for j := range wrong {
					if set.Has(j) {
						count++
					}
				}
				bad = bad && (!set.Has(i) || count < (set.Len()-1)/2)
			}
			us := epoch + r.Int64N(1_000_000)
			if bad && r.IntN(2) == 0 {
				wrong[i], us = true, 1+r.Int64N(scripts.MaxBallot-1)
			} else {
				correct[i] = us
			}
			within := time.Duration(r.IntN(1000)) * time.Microsecond
			if r.IntN(3) > 0 {
				c.Learn(i, us+r.Int64N(2*within.Microseconds()+1)-within.Microseconds(), at(0), within)
			}
			if !rule.Won(c.Read(at(0)).Known) {
				continue // no majority is known, so the client cannot win
			}
			low, high := int64(math.MaxInt64), int64(math.MinInt64)
			for _, us := range correct {
				low, high = min(low, us), max(high, us)
			}
			if ballot := c.Ballot(at(0)); ballot > high {
				t.Errorf("%+v: the ballot is %d, and all correct clocks are before %d", rule, ballot, high)
			}
			if until := c.Term(at(0), time.Second).Until; until < low+1_000_000 {
				t.Errorf("%+v: the deadline is %d, and all correct clocks are after %d", rule, until, low)
			}
		}
	})
}

// H176: correct clocks differ by ten seconds, and the middle one jumps forward. The ballot of a rival, which then
// follows the latest one, is not past the deadline of a lease before its TTL has passed.
func TestDeadlineWithCorrectClocksThatDiffer(t *testing.T) {
	until := knowing(-10_000_000, 0, 10_000_000).Term(at(0), 10*time.Second).Until
	rival := knowing(-10_000_000, 20_000_000, 10_000_000)
	if ballot := rival.Ballot(at(9_900_000)); ballot > until {
		t.Errorf("the ballot %d is past the deadline %d", ballot-epoch, until-epoch)
	}
}

// H176: a deadline is not before that of any correct clock that is known, although correct clocks differ by up to the
// window, some are not known, and a minority of wrong clocks is elsewhere.
func TestDeadlineFollowsEachCorrectClock(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(7)
		c, latest := NewClocks(quorum.Rule{Old: quorum.First(n)}), int64(0)
		for k, i := range r.Perm(n)[:quorum.Quorum(n)+r.IntN(n-quorum.Quorum(n)+1)] {
			us := epoch + r.Int64N(window+1)
			if k < (n-1)/2 && r.IntN(4) > 0 {
				us += r.Int64N(8*window) - 4*window // a wrong clock
			} else {
				latest = max(latest, us)
			}
			c.Learn(i, us, at(0), 0)
		}
		if until := c.Term(at(0), time.Second).Until - 1_000_000; until < latest {
			t.Errorf("of %d masters: the deadline is %d us before the latest correct clock", n, latest-until)
		}
	})
}

// H176: the client's clock is fast or slow by 1 %, and master 0 has been down for forty minutes, so its reading is too
// late or too early by 24 s. Together with the one wrong clock, it moves no bound past the correct clock.
func TestOldReadingIsLessExact(t *testing.T) {
	const now = int64(40 * 60 * 1_000_000)
	for _, c := range []struct{ correct, wrong int64 }{
		{epoch + now*99/100, 14_000_000}, {epoch + now*101/100, -40_000_000},
	} {
		b := knowing(0, 0, 0)
		b.Learn(1, c.correct, at(now), 0)
		b.Learn(2, c.correct+c.wrong, at(now), 0)
		if ballot := b.Ballot(at(now)); ballot > c.correct {
			t.Errorf("the ballot is %d us past the correct clock", ballot-c.correct)
		}
		if until := b.Term(at(now), time.Second).Until - 1_000_000; until < c.correct {
			t.Errorf("the deadline is %d us before the correct clock", c.correct-until)
		}
	}
}

// H176: a client that was paused for forty minutes, and whose clock is fast or slow by 1 %, has read no clock since. No
// bound is past the correct clocks.
func TestReadingsBeforeAPauseAreLessExact(t *testing.T) {
	const now = int64(40 * 60 * 1_000_000)
	b, slowest, fastest := knowing(0, 0, 0), epoch+now*99/100, epoch+now*101/100
	for i := range 3 {
		b.Refine(i, epoch, at(0), time.Microsecond)
	}
	if ballot := b.Ballot(at(now)); ballot > slowest {
		t.Errorf("the ballot is %d us past the correct clocks", ballot-slowest)
	}
	term := b.Term(at(now), time.Second)
	if term.Asked > slowest || term.Until-1_000_000 < fastest {
		t.Errorf("the term is %+v, and the correct clocks are between %d and %d", term, slowest, fastest)
	}
	if latest := b.LatestCorrect(at(now)); latest < fastest {
		t.Errorf("the latest correct clock is %d us late", fastest-latest)
	}
	for i := range 3 { // a refusal shows the time, less exactly than the one before the pause
		b.Refine(i, epoch+now, at(now), time.Millisecond)
	}
	if ballot := b.Ballot(at(now)); ballot < epoch+now-1000 {
		t.Errorf("after a refusal, the ballot is %d us behind", epoch+now-ballot)
	}
}

// Ballots and deadlines do not follow a time that no clock shows. A clock that shows it is as far off as can be.
func TestImpossibleTimesAreIgnored(t *testing.T) {
	b := knowing(0, 0, 0)
	for _, bad := range []int64{0, -1, math.MinInt64, scripts.MaxBallot, math.MaxInt64} {
		for i := range 3 {
			b.Learn(i, bad, at(0), 0)
			b.Refine(i, bad, at(0), 1)
		}
	}
	if b.Median(at(5)) != epoch+5 || b.Own(at(5), 1) != epoch+5 {
		t.Errorf("the times are %d and %d", b.Median(at(5)), b.Own(at(5), 1))
	}
	for _, first := range []bool{true, false} { // whether it is the first time that the master shows
		for t0, ahead := range map[int64]bool{0: false, math.MinInt64: false, scripts.MaxBallot: true, math.MaxInt64: true} {
			c := NewClocks(quorum.Rule{Old: quorum.First(1)})
			if !first {
				c.Learn(0, epoch, at(0), 0)
			}
			c.Learn(0, t0, at(0), 0)
			if off := c.Off(0); off.Abs() != furthest || off > 0 != ahead || c.Standing(0, 0) != Far {
				t.Errorf("a clock that shows %d is off by %v, standing %v", t0, off, c.Standing(0, 0))
			}
			if c.Learn(0, epoch, at(0), 0); c.Off(0) != 0 {
				t.Errorf("a clock that was set right is off by %v", c.Off(0))
			}
		}
	}
}

// A refinement is used if it is more exact than the last one. After a new reading of INFO any refinement is used.
func TestRefinementsGetBetter(t *testing.T) {
	c := NewClocks(quorum.Rule{Old: quorum.First(1)})
	c.Refine(0, epoch, at(0), time.Millisecond)
	if c.Read(at(0)).Known != 0 {
		t.Error("a refinement without a reading was used")
	}
	c.Learn(0, epoch, at(0), 0)
	for _, x := range []struct {
		within time.Duration
		taken  bool
	}{{time.Second, true}, {time.Second, false}, {2 * time.Second, false}, {time.Millisecond, true}} {
		before := c.Own(at(0), 0)
		c.Refine(0, before+1, at(0), x.within)
		if taken := c.Own(at(0), 0) != before; taken != x.taken {
			t.Errorf("within %v: the refinement was used: %v", x.within, taken)
		}
	}
	c.Learn(0, epoch, at(0), 0)
	if c.Refine(0, epoch+7, at(0), time.Hour); c.Own(at(0), 0) != epoch+7 {
		t.Error("the first refinement after a new reading was not used")
	}
}

// As time passes, the ballots of a name do not decrease until the masters report a fence, and from then on they are
// above that fence. They are always above the fence given to Propose, and below the maximum.
func TestBallotsOfANameDoNotFall(t *testing.T) {
	property.Check(t, func(t *testing.T, r *rand.Rand) {
		b := knowing(r.Int64N(1000), r.Int64N(1000), r.Int64N(1000))
		last, told, us := map[string]int64{}, map[string]int64{}, int64(0)
		for range 20 {
			us += r.Int64N(500)
			name := string(rune('a' + r.IntN(3)))
			near := epoch + us + r.Int64N(4000) - 2000
			if r.IntN(3) == 0 {
				b.Saw(at(us), name, near)
				told[name], last[name] = near, 0
				continue
			}
			got, _, err := b.Propose(at(us), name, near, 0)
			if err != nil || got <= near || got <= told[name] || got < last[name] || got >= scripts.MaxBallot {
				t.Errorf("Propose for %q above %d, with fence %d and last ballot %d, returned %d, %v", name, near, told[name],
					last[name], got, err)
			}
			last[name] = got
		}
	})
}

func TestMemoryForHighFencesIsBounded(t *testing.T) {
	b := knowing(0, 0, 0)
	for i := range maxHigh + 500 {
		name := fmt.Sprint(i)
		b.Saw(at(0), name, epoch+1_000_000+int64(i))
		if len(b.high) > maxHigh {
			t.Fatalf("%d names are stored", len(b.high))
		}
		if got := mustPropose(t, b, 0, name, 0); got != epoch+1_000_001+int64(i) {
			t.Fatalf("the newest name was dropped: %d", got)
		}
	}
}

func TestBallotsAreSafeForConcurrentUse(t *testing.T) {
	b := knowing(0, 0, 0, 0, 0)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			name, last := fmt.Sprint(g), int64(0)
			for i := range int64(2000) {
				b.Learn(g, epoch+i, at(i), 0)
				b.Saw(at(i), name, epoch+i+10)
				b.Use(quorum.Rule{Old: quorum.First(2 + g)}, quorum.First(2+g))
				b.Own(at(i), g)
				got, _, err := b.Propose(at(i), name, last, 0)
				if err != nil || got <= last {
					t.Errorf("Propose for %q above %d returned %d, %v", name, last, got, err)
					return
				}
				last = got
			}
		})
	}
	wg.Wait()
}
