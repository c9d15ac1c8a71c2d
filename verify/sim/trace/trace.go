package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// Kinds of events. The first five are calls that acquire, keep or end a lease.
const (
	Acquire = "acquire"
	Repair  = "repair"
	Import  = "import"
	Extend  = "extend"
	Release = "release"
	Admit   = "admit"  // a call that may have changed the admission record
	Forget  = "forget" // the master has lost its data
	Evict   = "evict"  // the master has lost a key
	Restart = "restart"
	Hold    = "hold"   // a client has begun a hold
	Shared  = "shared" // a call for a readers-writer lock
)

// An Event is one line of a trace. The fields that are set depend on its kind.
type Event struct {
	At       time.Duration `json:"at"` // since the schedule began
	Kind     string        `json:"kind"`
	Master   int           `json:"master"`
	Clock    int64         `json:"clock,omitempty"` // the master's time, in microseconds
	Name     string        `json:"name,omitempty"`
	Lease    string        `json:"lease,omitempty"`
	Previous string        `json:"previous,omitempty"` // the lease that a repair or an import may replace
	Ended    []string      `json:"ended,omitempty"`    // the leases that a release ends
	Stamp    string        `json:"stamp,omitempty"`    // stamp of the record that the call expects; "" if it expects none
	First    int64         `json:"first,omitempty"`    // First and Last are the ballots of an acquire
	Last     int64         `json:"last,omitempty"`     // for a release: the minimum fence after the release
	TTL      time.Duration `json:"ttl,omitempty"`      // for a release: how long the master still keeps the lease
	Reply    int64         `json:"reply,omitempty"`    // code of the reply; -1 for an error
	Admission
	Token  int64 `json:"token,omitempty"`
	Unread bool  `json:"unread,omitempty"` // the client has closed the connection, so it ignores the reply
}

// Admission is the part of an Event about the admission record of the master.
type Admission struct {
	Record string `json:"record,omitempty"` // the record after the call
	Step   string `json:"step,omitempty"`   // the step of an admission
	Own    bool   `json:"own,omitempty"`    // the record belongs to the master's current incarnation
}

const window = int64(skew.Window / time.Microsecond)

// A Checker holds the state of the masters after the events so far.
type Checker struct {
	quorum   int // 0 to skip checks of majorities
	masters  []master
	shared   map[string]bool
	ranges   map[string][]ballots // by name: the ballots of granted leases
	problems []string
}

type master struct {
	names   map[string]*name
	missing map[string]string // by lease: the record under which the master last reported that it lacks the lease
	record  string
	own     bool
	offset  int64 // how far the master's clock is ahead of the schedule's time, in microseconds
	far     bool  // the clock was far off the others since the server or the record changed: no quarantine can begin
}

// A name is the state of one name on one master.
type name struct {
	lease   string // the lease that holds the name; "" if the name is free
	expired string // the lease that has last expired by the master's clock, but perhaps not by a ballot; "" if replaced
	expires int64  // in the master's time
	fence   int64
	unknown bool // the master may have old data
	behind  bool // the fence of the master may be larger
}

type ballots struct {
	lease       string
	first, last int64
	masters     map[int]bool // the masters that have granted the range
}

// NewChecker returns a Checker of n masters. If the set of masters changes during the schedule, changes must be set;
// then the Checker does not check majorities.
func NewChecker(n int, changes bool) *Checker {
	c := &Checker{quorum: n/2 + 1, masters: make([]master, n), shared: map[string]bool{}, ranges: map[string][]ballots{}}
	if changes {
		c.quorum = 0
	}
	for i := range c.masters {
		c.masters[i] = master{names: map[string]*name{}, missing: map[string]string{}}
	}
	return c
}

// Check applies one event and returns a description of each rule that the event violates.
func (c *Checker) Check(e *Event) []string {
	c.problems = nil
	if e.Kind == Shared {
		c.shared[e.Name] = true
	}
	if c.shared[e.Name] {
		return nil
	}
	if e.Kind == Hold {
		c.hold(e)
		return c.problems
	}
	m := &c.masters[e.Master]
	if e.Clock != 0 {
		c.clock(m, e)
	}
	switch e.Kind {
	case Forget:
		m.forget()
		clear(m.missing)
	case Evict:
		m.forget()
	case Restart:
		clear(m.missing)
		m.own, m.far = false, false
	case Admit:
		c.admit(m, e)
	default:
		n := m.names[e.Name]
		if n == nil {
			n = &name{}
			m.names[e.Name] = n
		}
		if n.lease != "" && e.Clock >= n.expires { // the lease has expired, or expires within a millisecond
			n.lease, n.expired, n.unknown = "", n.lease, true
		}
		c.call(m, n, e)
	}
	return c.problems
}

// forget makes the recorded data of a master unknown, because the master may be empty, or have old data.
func (m *master) forget() {
	for _, n := range m.names {
		*n = name{unknown: true, behind: true}
	}
}

// clock makes the recorded fences and leases of a master unknown if its clock was set since the last event.
func (c *Checker) clock(m *master, e *Event) {
	offset := e.Clock - e.At.Microseconds()
	if d := offset - m.offset; m.offset != 0 && (d > 1e6 || d < -1e6) {
		m.forget()
	}
	m.offset = offset
	m.far = m.far || c.farOff(m)
}

// farOff reports whether the clock of m differs by more than the window from the median of the clocks that were seen.
func (c *Checker) farOff(m *master) bool {
	var offsets []int64
	for i := range c.masters {
		if o := &c.masters[i]; o == m || o.offset != 0 { // 0: no event yet
			offsets = append(offsets, o.offset)
		}
	}
	slices.Sort(offsets)
	d := m.offset - offsets[len(offsets)/2]
	return d > window || d < -window
}

func (c *Checker) broken(rule string, e *Event, format string, args ...any) {
	where := fmt.Sprintf("trace: rule %q: %s of %s on master %d: ", rule, e.Kind, e.Lease, e.Master)
	c.problems = append(c.problems, where+fmt.Sprintf(format, args...))
}

func (c *Checker) call(m *master, n *name, e *Event) {
	switch e.Kind {
	case Acquire, Repair, Import:
		switch quorum.Outcome(e.Reply) {
		case quorum.Granted:
			c.grant(m, n, e)
		case quorum.Missing:
			m.missing[e.Lease] = e.Record
		}
	case Extend:
		c.extend(m, n, e)
	case Release:
		c.release(n, e)
	}
}

// grant checks a granted acquire, repair or import.
func (c *Checker) grant(m *master, n *name, e *Event) {
	// A repeated acquire changes nothing. Its ballot is not past the deadline, so it finds a lease that has expired by the
	// master's clock alone.
	again := e.Kind == Acquire && e.Lease != "" && (n.lease == e.Lease || n.lease == "" && n.expired == e.Lease)
	if again && n.lease == "" {
		return
	}
	if e.Stamp != "" && !again {
		r, err := scripts.ParseRecord(e.Record)
		switch {
		case err != nil || !e.Own && !e.Unread && !m.repairable(e, &r) || !strings.HasPrefix(e.Record, e.Stamp):
			c.broken("votes", e, "the call expects the record %q, but the master has %q (own: %v)", e.Stamp, e.Record, e.Own)
		case !r.Admitted && e.Kind != Repair:
			c.broken("votes", e, "the master is in quarantine")
		}
	}
	replaced := e.Previous != "" && n.lease == e.Previous
	switch {
	case n.unknown:
	case e.Kind == Import && !replaced && n.lease != e.Lease:
		c.broken("import", e, "the master has the lease %q, want %q", n.lease, e.Previous)
	case n.lease != "" && n.lease != e.Lease && !replaced:
		c.broken("free", e, "the master already has the lease %q", n.lease)
	}
	if !again && n.lease != e.Lease && e.First <= n.fence {
		c.broken("fence", e, "the ballot %d is not above the fence %d", e.First, n.fence)
	}
	latest := e.Clock + window
	if e.First == e.Last { // the fence may be ahead of the clock, which may have been set back
		latest = max(latest, n.fence+window)
	}
	if !again && (e.First <= e.Clock-window || e.Last > latest && !n.behind) {
		c.broken("window", e, "the ballots differ from the master's time by %d and %d us, want at most %d", e.First-e.Clock,
			e.Last-e.Clock, window)
	}
	if e.Kind == Repair {
		c.repair(m, e)
	}
	if expires := e.Clock + e.TTL.Microseconds(); n.lease != e.Lease {
		n.expires = expires
	} else if !again {
		n.expires = max(n.expires, expires)
	}
	n.lease, n.expired, n.fence, n.unknown, n.behind = e.Lease, "", max(n.fence, e.Last), false, false
	c.rangeOf(e).masters[e.Master] = true
}

// repairable reports whether e is a repair of a master whose record is not its own, as in a quarantine. While its clock
// is far off, no client can replace a record that admits an earlier server.
func (m *master) repairable(e *Event, r *scripts.Record) bool {
	return e.Kind == Repair && (!r.Admitted || m.far)
}

// repair checks that the master has reported that it lacks the lease that a repair restores.
func (c *Checker) repair(m *master, e *Event) {
	lacks, ok := m.missing[e.Lease]
	switch {
	case !ok:
		c.broken("missing", e, "the master has not reported the lease as missing since it last lost its data")
	case e.Stamp != "" && !strings.HasPrefix(lacks, e.Stamp):
		c.broken("missing", e, "the master reported the lease as missing under the record %q, want %q", lacks, e.Stamp)
	}
}

func (c *Checker) extend(m *master, n *name, e *Event) {
	switch quorum.Outcome(e.Reply) {
	case quorum.Granted:
		if n.lease != e.Lease && !n.unknown {
			c.broken("present", e, "the master has the lease %q instead", n.lease)
		}
		if n.unknown {
			*n = name{lease: e.Lease, fence: n.fence, behind: n.behind}
		}
		n.expires = max(n.expires, e.Clock+e.TTL.Microseconds())
	case quorum.Missing:
		m.missing[e.Lease] = e.Record
	}
}

func (c *Checker) release(n *name, e *Event) {
	if e.Reply < 0 {
		return
	}
	if e.Last > n.fence && e.Last <= max(e.Clock, n.fence)+window {
		n.fence = e.Last
	}
	for _, lease := range e.Ended {
		if n.expired == lease {
			n.expired = ""
		}
		if n.lease != lease {
			continue
		}
		if e.TTL > 0 {
			n.expires = min(n.expires, e.Clock+e.TTL.Microseconds())
		} else {
			n.lease = ""
		}
	}
}

// rangeOf returns the entry of c.ranges for the lease of e. If there is none, rangeOf adds the ballots of e.
func (c *Checker) rangeOf(e *Event) *ballots {
	list := c.ranges[e.Name]
	for i := range list {
		if b := &list[i]; b.lease == e.Lease && (b.first == e.First || e.Kind == Repair) {
			return b
		}
	}
	c.ranges[e.Name] = append(list, ballots{e.Lease, e.First, e.Last, map[int]bool{}})
	return &c.ranges[e.Name][len(list)]
}

// hold checks that a majority has granted the token of a hold.
func (c *Checker) hold(e *Event) {
	have := 0
	for _, b := range c.ranges[e.Name] {
		if b.first <= e.Token && e.Token <= b.last {
			have = max(have, len(b.masters))
		}
	}
	if have < c.quorum {
		c.problems = append(c.problems, fmt.Sprintf(
			"trace: rule \"token\": a hold of %s has token %d, granted by %d masters, want at least %d", e.Name, e.Token, have,
			c.quorum))
	}
}

// admit checks a change of an admission record.
func (c *Checker) admit(m *master, e *Event) {
	before, err := scripts.ParseRecord(m.record)
	known := err == nil && m.own
	after, err := scripts.ParseRecord(e.Record)
	changed := err == nil && e.Reply == int64(scripts.AdmitDone) && e.Record != m.record
	defer func() {
		if m.record, m.own = e.Record, e.Own; changed {
			m.far = c.farOff(m)
		}
	}()
	step, voted := scripts.AdmitStep(e.Step), known && before.Admitted
	if !changed || step == scripts.AdmitRead {
		return
	}
	over := known && e.Clock >= before.Since+before.Quarantine.Microseconds()
	if after.Admitted && !voted && !over && step != scripts.AdmitNow {
		c.broken("quarantine", e, "step %s admits the master too early: it changes the record %q to %q at %d", step, m.record,
			e.Record, e.Clock)
	}
	shorter := known && after.Quarantine < before.Quarantine && step != scripts.AdmitReplace
	longer := voted && after.Admitted && after.MaxTTL > before.MaxTTL && step != scripts.AdmitMaxTTL
	if shorter || longer {
		c.broken("record", e, "step %s must not change the record %q to %q", step, m.record, e.Record)
	}
}
