package ballot

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// window is skew.Window in microseconds. A master whose clock is further off the median refuses every ballot that the
// others accept.
const window = int64(skew.Window / time.Microsecond)

// Clocks estimates the masters' clocks for one client. The offset of each master is read when a connection is made and
// on each heartbeat, and refined by replies. Ballots and deadlines are bounded by correct clocks, so a minority of
// wrong clocks has no effect on them: see boundLocked. Clocks are safe for concurrent use.
type Clocks struct {
	mu      sync.Mutex
	by      [quorum.Most]offset
	members quorum.Set   // the masters whose clocks are used
	sets    []quorum.Set // the sets of the configuration: a minority of each may have wrong clocks
	known   quorum.Set   // the members whose offset is known
	early   int64        // the median; the earlier of the two middle offsets if the number of offsets is even
	upper   int64        // the later of the two middle offsets; early if the number is odd
	late    int64        // the latest offset that is at most window after early
	first   int64        // the earliest offset that is at most window before upper
	ballot  int64        // an offset that is not later than some correct clock of each set
	until   int64        // an offset that is not earlier than the correct clocks that are known
	read    int64        // when the latest known offset was read, on the steady clock
	leaps   leaps
}

// An offset is a master's time minus the steady time of this machine, in microseconds.
type offset struct {
	us         int64
	known      bool
	within     time.Duration // the maximum error if us was set by Refine; otherwise 0
	error      int64         // the maximum error of us
	at         int64         // when it was learned, on the steady clock
	readAt     int64         // when us was set, on the steady clock: later than at if Refine has set it
	remembered int64         // us at the last call of Remember
	absurd     time.Duration // ±furthest if ballots cannot follow this clock, which is wrong: us is earlier; else 0
}

// NewClocks returns Clocks for the masters of rule. No offset is known yet.
func NewClocks(rule quorum.Rule) *Clocks { return &Clocks{members: rule.All(), sets: rule.Sets()} }

// Use makes the estimate follow the masters in all from now on. Ballots and deadlines follow those of rule.
func (c *Clocks) Use(rule quorum.Rule, all quorum.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members, c.sets = all, rule.Sets()
	c.sumLocked()
}

// Learn records that the clock of master i showed t, in microseconds, at the instant at of the pool's clock. The
// maximum error of the reading is within.
func (c *Clocks) Learn(i int, t int64, at clock.Instant, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learnLocked(i, t, c.counted(at), within)
}

// Look is like Learn, but at must be an instant of the clock that Counting returns.
func (c *Clocks) Look(i int, t int64, at clock.Instant, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learnLocked(i, t, at, within)
}

func (c *Clocks) learnLocked(i int, t int64, at clock.Instant, within time.Duration) {
	c.setLocked(i, t, at, 0, within)
	c.compareLocked(i, reading{t, at, within})
}

// Refine records a reading from a reply. Its parameters are those of Learn, but at must be an instant of the clock that
// Counting returns. Refine replaces the offset if the reading is more precise than the last refinement, or contradicts
// the last refinement because this machine was frozen or a clock was set, or if the offset is old because this client
// was paused. Waiters need the precision: a waiter may acquire the lock less than a round trip after the last holder
// did, and needs a larger ballot than that holder.
func (c *Clocks) Refine(i int, t int64, at clock.Instant, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.by[i]
	apart, old := Span(t-micros(at)-last.us).Abs(), at.Steady()-last.readAt > int64(exactFor)
	if last.known && (last.within == 0 || old || within < last.within || apart > last.within+within) {
		c.setLocked(i, t, at, max(within, 1), within)
		c.by[i].at = last.at // refusals come too often for Standing
	}
	if last.known {
		c.compareLocked(i, reading{t, at, within})
	}
}

// usable reports whether ballots can follow a clock that shows t. Other readings are ignored.
func usable(t int64) bool { return t > 0 && t < scripts.MaxBallot }

func (c *Clocks) setLocked(i int, t int64, at clock.Instant, within, err time.Duration) {
	c.by[i].at = at.Steady()
	switch {
	case t <= 0:
		c.by[i].absurd = -furthest
	case !usable(t):
		c.by[i].absurd = furthest
	default:
		c.by[i] = offset{
			us: t - micros(at), known: true, within: within, error: (err + 999).Microseconds(), at: at.Steady(),
			readAt: at.Steady(), remembered: c.by[i].remembered,
		}
		c.sumLocked()
	}
}

// sumLocked recomputes the median and the fields that depend on it.
func (c *Clocks) sumLocked() {
	c.known = 0
	var array [quorum.Most]int64
	list := array[:0]
	for i := range c.members.All() {
		if o := c.by[i]; o.known {
			c.known |= quorum.One(i)
			list = append(list, o.us)
		}
	}
	if len(list) == 0 {
		return
	}
	slices.Sort(list)
	c.early, c.upper = list[(len(list)-1)/2], list[len(list)/2]
	c.late, c.first = c.early, c.upper
	for _, us := range list {
		if us <= c.early+window {
			c.late = us
		}
		if us >= c.upper-window {
			c.first = min(c.first, us)
		}
	}
	c.boundLocked()
}

// exactFor is the time after which an offset that is not read any more is less exact: its master is down, or this
// client was paused.
const exactFor = 10 * time.Second

// drift returns the error, in microseconds, of an offset that was read this many nanoseconds ago: clocks differ in rate
// by up to 1 %.
func drift(age int64) int64 {
	if age <= int64(exactFor) {
		return 0
	}
	return age / 1000 / 100
}

// driftLocked returns the error of the estimates at now, beside those of the offsets, if no clock was read for long.
func (c *Clocks) driftLocked(now clock.Instant) int64 {
	if c.known == 0 {
		return 0
	}
	return drift(now.Steady() - c.read)
}

// boundLocked computes the offsets that bound ballots and deadlines. With k readings of n masters, f = (n-1)/2 of which
// may be wrong, the (k-f)-th smallest reading is not later than some correct clock, and the (f+1)-th smallest is not
// earlier than some correct clock. If all are known, both are the median. The errors of the readings widen the bounds.
// In a joint configuration, a ballot is not later than some correct clock of each set, and a deadline not earlier.
func (c *Clocks) boundLocked() {
	c.ballot, c.until, c.read = math.MaxInt64, math.MinInt64, math.MinInt64
	for i := range c.known.All() {
		c.read = max(c.read, c.by[i].readAt)
	}
	var lowest, highest [quorum.Most]int64
	for _, set := range c.sets {
		low, high := lowest[:0], highest[:0]
		for i := range (set & c.known).All() {
			o := &c.by[i]
			e := o.error + drift(c.read-o.readAt)
			low, high = append(low, o.us-e), append(high, o.us+e)
		}
		k, f := len(low), (set.Len()-1)/2
		if k == 0 {
			continue
		}
		slices.Sort(low)
		slices.Sort(high)
		//mutant:ballot-bound = min(c.ballot, low[k-1])
		c.ballot = min(c.ballot, low[max(0, k-f-1)])
		//mutant:until-bound = max(c.until, high[0])
		c.until = max(c.until, high[min(f, k-1)])
	}
	if c.ballot == math.MaxInt64 { // only masters that do not vote are known
		c.ballot, c.until = c.early, c.upper
	}
	// Correct clocks may differ. When the one that the deadline follows jumps, a rival's ballot may follow a later one. So
	// the deadline also counts from the latest clock that may be correct: until is not earlier than some correct clock, so
	// all of them are near it. They may be far above the median if some clocks are not known.
	near := c.until + window
	for i := range c.known.All() {
		if o := c.by[i]; o.us-o.error <= near {
			c.until = max(c.until, o.us+o.error)
		}
	}
}

// A Standing says how the clock of a master compares with those of the other masters.
type Standing uint8

// The standings.
const (
	Unclear  Standing = iota // the clocks of other connected masters have not been read since
	Near                     // a majority of the masters, with this one, has clocks within skew.Window
	Doubtful                 // neither Near nor Far: this clock may be wrong, or those that can be compared
	Far                      // a majority, read since, is more than skew.Window away, on one side: this clock is wrong
)

// Standing compares the clock of master i with the other clocks, after those of all masters in up, which are connected,
// have been read later: time that this machine has missed must not look like a clock that is ahead. As long as a
// minority of the masters has a wrong clock, a clock that is Far is wrong, and one that is Near is right.
func (c *Clocks) Standing(i int, up quorum.Set) Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.by[i]
	switch {
	case o.absurd != 0:
		return Far
	case !o.known:
		return Unclear
	}
	result := Unclear
	for _, set := range c.sets {
		if c.members.Has(i) && !set.Has(i) && len(c.sets) > 1 {
			continue
		}
		near, away, ahead, behind := 1, 0, 0, 0
		for j := range (set & c.known &^ quorum.One(i)).All() {
			p := c.by[j]
			fresh := p.at >= o.at
			switch {
			case !fresh && up.Has(j):
				return Unclear
			case p.absurd != 0:
				away++
			case o.us-o.error > p.us+p.error+window:
				away++
				if fresh {
					ahead++
				}
			case o.us+o.error < p.us-p.error-window:
				away++
				if fresh {
					behind++
				}
			default:
				near++
			}
		}
		switch least := quorum.Quorum(set.Len()); {
		case ahead >= least, behind >= least:
			return Far
		case near >= least:
			result = max(result, Near)
		case away > 0:
			result = Doubtful
		}
	}
	return result
}

// Remember records the present offset of master i, for Moved.
func (c *Clocks) Remember(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[i].remembered = c.by[i].us
}

// Moved returns by how much the clock of master i has been set since Remember.
func (c *Clocks) Moved(i int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Span(c.by[i].us - c.by[i].remembered)
}

// A Reading is an estimate of all the masters' clocks at one instant, in microseconds.
type Reading struct {
	Median int64      // the earlier of the two middle clocks if the number of known clocks is even
	Latest int64      // the latest clock that is at most skew.Window after the median
	First  int64      // the earliest clock that is at most skew.Window before the later of the two middle clocks
	Known  quorum.Set // the masters whose clocks are known
}

// Read estimates the clocks at now.
func (c *Clocks) Read(now clock.Instant) Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Reading{
		Median: c.early + micros(now), Latest: c.late + micros(now), First: c.first + micros(now), Known: c.known,
	}
}

// Median estimates the masters' time at now.
func (c *Clocks) Median(now clock.Instant) int64 { return c.Read(now).Median }

// Own estimates the clock of master i at now. It returns the median if the clock is not known.
func (c *Clocks) Own(now clock.Instant, i int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.by[i]; o.known {
		return o.us + micros(now)
	}
	return c.early + micros(now)
}

// Off returns how far the clock of master i is ahead of the median. The result is negative if the clock is behind, and
// 0 if the clock is not known. It is the longest for a clock that ballots cannot follow. With two middle clocks, Off
// uses the one that is farther from the clock of master i: if the two differ much, it is not known which one is right.
func (c *Clocks) Off(i int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.by[i]
	switch {
	case o.absurd != 0:
		return o.absurd
	case !o.known || c.known == 0:
		return 0
	}
	ahead, behind := Span(o.us-c.early), Span(c.upper-o.us)
	if behind > ahead {
		return -behind
	}
	return ahead
}

// furthest is the longest Duration in whole microseconds.
const furthest = math.MaxInt64 / time.Microsecond * time.Microsecond

// Span converts a difference of two times in microseconds. It saturates at furthest.
func Span(us int64) time.Duration {
	const most = int64(furthest / time.Microsecond)
	return time.Duration(max(-most, min(us, most))) * time.Microsecond
}

func micros(at clock.Instant) int64 { return at.Steady() / 1000 }
