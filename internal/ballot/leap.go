package ballot

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/quorum"
)

// A leap is time that this machine has missed. It is accepted if the clocks of a majority of masters show a leap. These
// clocks are read on heartbeats, so at different times: they must show the leap within leapWindow, or within the time
// between two readings of a clock, if that is longer. Leaps up to leapSlack plus a fiftieth of the time between two
// readings are ignored, because a slow clock can explain them.
const (
	leapWindow = 10 * time.Second
	leapSlack  = 20 * time.Millisecond
)

// leaps detects time that both clocks of this machine have missed, the steady clock and the wall clock. A hypervisor
// that pauses the machine stops both clocks, and may not correct them afterwards. Then only the masters' clocks show
// how long the pause was. A master's clock that is set forward looks the same, so a majority of the masters is
// required.
type leaps struct {
	missed atomic.Int64           // the total missed time in nanoseconds
	read   [quorum.Most]reading   // the last reading of each master
	shown  [quorum.Most]shownLeap // the last leap of each master
}

// A reading is the time t that a master's clock showed at the instant at, with a maximum error of within.
type reading struct {
	t      int64
	at     clock.Instant
	within time.Duration
}

// A shownLeap is a leap that the clock of one master has shown.
type shownLeap struct {
	by time.Duration // how much more time may have passed on the master's clock than on this machine; 0 for no leap
	at clock.Instant // when the leap was detected
}

// Counting returns a clock that follows base and adds the missed time to both of its readings. So the time between two
// of its instants is the largest of what the steady clock, the wall clock and the masters show. If a wall clock is set
// only after the masters have shown the same pause, the pause is counted twice, so a lock ends early.
func (c *Clocks) Counting(base *clock.Clock) *clock.Clock {
	return clock.New(func() clock.Instant { return c.counted(base.Now()) })
}

func (c *Clocks) counted(at clock.Instant) clock.Instant {
	return at.Add(time.Duration(c.leaps.missed.Load()))
}

// compareLocked compares a reading of master i with its last one.
func (c *Clocks) compareLocked(i int, now reading) {
	if !usable(now.t) {
		return // the master has no offset that missLocked could correct
	}
	l := &c.leaps
	last := l.read[i]
	if last.at != (clock.Instant{}) && now.at.Steady() < last.at.Steady() {
		return // out of order
	}
	passed := now.at.Sub(last.at) // on the clock of this machine that advanced more
	l.read[i] = now
	more, within := Span(now.t-last.t)-passed, now.within+last.within
	if last.at == (clock.Instant{}) || more-within <= leapSlack+passed/50 {
		return
	}
	l.shown[i] = shownLeap{more + within, now.at}
	if by := c.leapLocked(now.at, max(leapWindow, passed)); by > 0 {
		c.missLocked(by)
	}
}

// missLocked adds by to the missed time. It also corrects the readings that have shown the leap, because their instants
// do not include the missed time.
func (c *Clocks) missLocked(by time.Duration) {
	l := &c.leaps
	for i := range l.shown {
		if l.shown[i].by > 0 {
			l.shown[i] = shownLeap{}
			l.read[i].at = l.read[i].at.Add(by)
			if o := &c.by[i]; o.remembered == o.us {
				o.remembered -= by.Microseconds()
			}
			c.by[i].us -= by.Microseconds()
		}
	}
	//mutant:masters-time -> _ = by
	l.missed.Add(int64(by))
	for i := range c.by { // the other offsets are as exact as before
		c.by[i].readAt += int64(by)
	}
	c.sumLocked()
}

// leapLocked returns the leap that the clocks of a majority have shown in this time before now, or 0 if there is none.
func (c *Clocks) leapLocked(now clock.Instant, within time.Duration) time.Duration {
	var by []time.Duration
	for i, s := range c.leaps.shown {
		if s.by > 0 && c.members.Has(i) && time.Duration(now.Steady()-s.at.Steady()) <= within {
			by = append(by, s.by)
		}
	}
	q := quorum.Quorum(c.members.Len())
	if len(by) < q {
		return 0
	}
	slices.Sort(by)
	return by[len(by)-q]
}
