package ballot

import (
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// window is how far a master's clock may be from the median. A master further off refuses every ballot that the others
// accept.
const window = int64(scripts.Window / time.Microsecond)

// Clocks are the masters' clocks as one program knows them: one offset for each master, read when a connection is made
// and on its heartbeat, and made more exact by replies. The median counts, so one wrong clock moves nothing. Clocks are
// safe for concurrent use.
type Clocks struct {
	mu      sync.Mutex
	by      []offset   // by master
	members quorum.Set // the masters that count
	known   quorum.Set // those of them whose offset was read
	early   int64      // of two middle offsets the earlier one
	upper   int64      // of two middle offsets the later one
	late    int64      // the latest offset that is not too far from early
}

// An offset is a master's time less the steady time of this machine, in microseconds.
type offset struct {
	us     int64
	known  bool
	within time.Duration // by how much it may be wrong, if it came by Refine; else 0
}

// NewClocks returns the clocks of the masters in set, all of them unknown.
func NewClocks(set quorum.Set) *Clocks { return &Clocks{members: set} }

// Use counts only the masters in set from now on.
func (c *Clocks) Use(set quorum.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = set
	c.sumLocked()
}

// Learn takes note that master i showed the time t, in microseconds, at the instant at.
func (c *Clocks) Learn(i int, t int64, at clock.Instant) {
	if t <= 0 || t >= scripts.MaxBallot {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := i + 1 - len(c.by); n > 0 {
		c.by = append(c.by, make([]offset, n)...)
	}
	c.by[i] = offset{us: t - micros(at), known: true}
	c.sumLocked()
}

// Refine is Learn for a reading from a reply, which may be wrong by as much as within. It counts if it is better than
// the last refinement. Waiters need it: they follow each other within a round trip, and a ballot that lags behind the
// clock of the last holder is refused.
func (c *Clocks) Refine(i int, t int64, at clock.Instant, within time.Duration) {
	if t <= 0 || t >= scripts.MaxBallot {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i >= len(c.by) || !c.by[i].known || c.by[i].within != 0 && within >= c.by[i].within {
		return
	}
	c.by[i] = offset{us: t - micros(at), known: true, within: max(within, 1)}
	c.sumLocked()
}

// sumLocked reckons the median anew.
func (c *Clocks) sumLocked() {
	c.known = 0
	var room [quorum.Most]int64
	list := room[:0]
	for i := range c.by {
		if c.by[i].known && c.members.Has(i) {
			c.known |= quorum.One(i)
			list = append(list, c.by[i].us)
		}
	}
	if len(list) == 0 {
		return
	}
	slices.Sort(list)
	c.early, c.upper = list[(len(list)-1)/2], list[len(list)/2]
	c.late = c.early
	for _, us := range list {
		if us <= c.early+window {
			c.late = us
		}
	}
}

// A Reading is what all the masters' clocks show at one instant, in microseconds.
type Reading struct {
	Median int64      // of two middle clocks the earlier one
	Latest int64      // the latest clock that is not more than 15 s from the median
	Known  quorum.Set // the masters whose clocks are known
}

// Read reckons what the clocks show at now.
func (c *Clocks) Read(now clock.Instant) Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Reading{Median: c.early + micros(now), Latest: c.late + micros(now), Known: c.known}
}

// Median reckons the masters' time at now.
func (c *Clocks) Median(now clock.Instant) int64 { return c.Read(now).Median }

// Own reckons what the clock of master i shows at now: the median if it is not known.
func (c *Clocks) Own(now clock.Instant, i int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < len(c.by) && c.by[i].known {
		return c.by[i].us + micros(now)
	}
	return c.early + micros(now)
}

// Off reports whether the clock of master i is known to be more than 15 s from the median. Such a master refuses the
// ballots that the others accept.
func (c *Clocks) Off(i int) bool { return c.Away(i) > scripts.Window }

// Away is how far the clock of master i is from the median, never negative; 0 if that is not known. Of two middle
// clocks the farther one counts: if they differ much, nobody can tell which is right.
func (c *Clocks) Away(i int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i >= len(c.by) || !c.by[i].known || c.known == 0 {
		return 0
	}
	return Span(max(c.by[i].us-c.early, c.upper-c.by[i].us))
}

// Span converts a difference of two times in microseconds. What no Duration holds becomes the largest one.
func Span(us int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(-most, min(us, most))) * time.Microsecond
}

func micros(at clock.Instant) int64 { return at.Steady() / 1000 }
