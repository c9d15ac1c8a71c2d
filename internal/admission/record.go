package admission

import (
	"math"
	"time"

	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// write returns the action that sends step, which writes the record of master i. An observer does not write, but reads
// the record again later.
func (d *Deployment) write(step scripts.AdmitStep, i int) Move {
	if d.Observer && !d.Exempt.Has(i) {
		return Move{Look: Look}
	}
	return Move{Step: step, Record: d.record(i)}
}

// record returns the record to write to master i.
func (d *Deployment) record(i int) scripts.Record {
	r, own := d.largest(), &d.Facts[i].Record
	switch {
	case d.agrees(i) && own.Epoch >= r.Epoch: // a master of the next set may have a different list
		r.Epoch, r.Masters, r.Next = own.Epoch, own.Masters, own.Next
	case !d.Config.Rule.All().Has(i):
		r.Epoch, r.Masters, r.Next = d.Config.Epoch, d.Config.Upcoming, ""
	}
	r.Quarantine = d.span(i)
	fact := &d.Facts[i]
	r.Identity, r.Database, r.DurableName, r.Shard = fact.Identity, fact.Database, fact.durableName(), d.Shard
	r.Unproven = (!d.names(i) || own.Unproven) && !d.mayBegin(i)
	return r
}

// span returns how long a quarantine of master i must last. After a failover the quarantine is longer, because the
// replaced server may have continued to grant locks.
func (d *Deployment) span(i int) time.Duration {
	r := d.largest()
	return max(r.Quarantine, r.MaxTTL+d.Facts[i].Late)
}

// Request returns the arguments of the script that performs the step of m on master i. The script compares the clock of
// the master with the median of the clocks. A quarantine begins at the later of the master's time and the time that
// Request passes as Median. For a step that begins a quarantine, Request passes the latest clock instead of the median,
// so that the quarantine does not end early if other clocks are set forward to the latest one. Request then adds the
// difference between the latest clock and the median to the tolerance.
func (d *Deployment) Request(i int, m Move) scripts.AdmitRequest {
	fact := &d.Facts[i]
	req := scripts.AdmitRequest{
		Step: m.Step, Identity: fact.Identity, Seen: fact.Text, Record: m.Record,
		Median: d.Clocks.Median, Tolerance: skew.Window,
	}
	switch {
	case d.Exempt.Has(i): // an operator says that no lock is held
		req.Tolerance = math.MaxInt64
	case d.marks(i): // the record only ends the vote
		req.Median, req.Tolerance = d.Clocks.Latest+farAhead.Microseconds(), math.MaxInt64
	case m.Step == scripts.AdmitStart || m.Step == scripts.AdmitReplace:
		req.Median = d.Clocks.Latest
		req.Tolerance += ballot.Span(d.Clocks.Latest - d.Clocks.Median)
	}
	return req
}

// Quarantine returns the request that puts master i into quarantine, even for an observer, and even if the record lists
// other masters. It returns an error if the request must not be sent.
func (d *Deployment) Quarantine(i int) (scripts.AdmitRequest, error) {
	return d.Request(i, Move{Step: scripts.AdmitReplace, Record: d.record(i)}), d.mayReplace(i)
}

// Replacement returns the request that puts master i into quarantine as a master of shard g, whatever its record names.
// It is for an operator who changes the number of shards.
func (d *Deployment) Replacement(i int, g scripts.Shard) scripts.AdmitRequest {
	r := d.record(i)
	r.Shard, r.Unproven = g, true
	req := d.Request(i, Move{Step: scripts.AdmitReplace, Record: r})
	req.Tolerance = math.MaxInt64 // its quarantine does not end while its clock is wrong
	return req
}

// largest returns a record with the largest durations that were read on any master, and with the latest configuration
// that agrees with this client's.
//
// If there is no record, the result has the max TTL and the epoch of this client. Until this client has read the
// records of a quorum, it cannot know whether there is a record. In the meantime the longest TTL is at most [Shortest],
// because no quarantine is shorter.
func (d *Deployment) largest() scripts.Record {
	r := scripts.Record{Quarantine: max(d.MaxTTL, Shortest), Epoch: -1}
	var looked quorum.Set
	for j := range d.Config.Tracked.All().All() {
		fact := &d.Facts[j]
		if fact.Read {
			looked |= quorum.One(j)
		}
		if !fact.hasRecord() {
			continue
		}
		r.MaxTTL = max(r.MaxTTL, fact.Record.MaxTTL)
		r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.MaxTTL)
		if !d.agrees(j) || fact.Record.Epoch < d.Config.Epoch && !d.Config.Rule.Old.Has(j) {
			continue
		}
		r.Final = max(r.Final, fact.Record.Final)
		if fact.Record.Epoch > r.Epoch {
			r.Epoch, r.Masters, r.Next = fact.Record.Epoch, fact.Record.Masters, fact.Record.Next
		}
	}
	switch {
	case r.MaxTTL > 0:
	case d.Config.Tracked.Won(looked):
		r.MaxTTL = d.MaxTTL
	default:
		r.MaxTTL = min(d.MaxTTL, Shortest)
	}
	if r.Epoch < 0 {
		r.Epoch, r.Final = d.Config.Epoch, d.Config.Epoch&^1
	}
	if r.Epoch == d.Config.Epoch {
		r.Masters, r.Next = d.Config.Masters, d.Config.Next
	}
	return r
}
