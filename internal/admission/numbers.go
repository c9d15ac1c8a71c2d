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
func (f *Deployment) write(step scripts.AdmitStep, i int) Move {
	if f.Observer && !f.Exempt.Has(i) {
		return Move{Look: Look}
	}
	return Move{Step: step, Record: f.record(i)}
}

// record returns the record to write to master i.
func (f *Deployment) record(i int) scripts.Record {
	r, own := f.largest(), &f.Facts[i].Record
	switch {
	case f.agrees(i) && own.Epoch >= r.Epoch: // a master of the next set may have a different list
		r.Epoch, r.Masters, r.Next = own.Epoch, own.Masters, own.Next
	case !f.Config.Rule.All().Has(i):
		r.Epoch, r.Masters, r.Next = f.Config.Epoch, f.Config.Upcoming, ""
	}
	r.Quarantine = f.span(i)
	fact := &f.Facts[i]
	r.Identity, r.Database, r.DurableName, r.Shard = fact.Identity, fact.Database, fact.durableName(), f.Shard
	r.Unproven = (!f.names(i) || own.Unproven) && !f.mayBegin(i)
	return r
}

// span returns how long a quarantine of master i must last. After a failover the quarantine is longer, because the
// replaced server may have continued to grant locks.
func (f *Deployment) span(i int) time.Duration {
	r := f.largest()
	return max(r.Quarantine, r.MaxTTL+f.Facts[i].Late)
}

// Request returns the arguments of the script that performs the step of m on master i. The script compares the clock of
// the master with the median of the clocks. A quarantine begins at the later of the master's time and the time that
// Request passes as Median. For a step that begins a quarantine, Request passes the latest clock instead of the median,
// so that the quarantine does not end early if other clocks are set forward to the latest one. Request then adds the
// difference between the latest clock and the median to the tolerance.
func (f *Deployment) Request(i int, m Move) scripts.AdmitRequest {
	fact := &f.Facts[i]
	req := scripts.AdmitRequest{
		Step: m.Step, Identity: fact.Identity, Seen: fact.Text, Record: m.Record,
		Median: f.Clocks.Median, Tolerance: skew.Window,
	}
	switch {
	case f.Exempt.Has(i): // an operator says that no lock is held
		req.Tolerance = math.MaxInt64
	case f.marks(i): // the record only ends the vote
		req.Median, req.Tolerance = f.Clocks.Latest+farAhead.Microseconds(), math.MaxInt64
	case m.Step == scripts.AdmitStart || m.Step == scripts.AdmitReplace:
		req.Median = f.Clocks.Latest
		req.Tolerance += ballot.Span(f.Clocks.Latest - f.Clocks.Median)
	}
	return req
}

// Quarantine returns the request that puts master i into quarantine, even for an observer, and even if the record lists
// other masters. It returns an error if the request must not be sent.
func (f *Deployment) Quarantine(i int) (scripts.AdmitRequest, error) {
	return f.Request(i, Move{Step: scripts.AdmitReplace, Record: f.record(i)}), f.mayReplace(i)
}

// Replacement returns the request that puts master i into quarantine as a master of shard g, whatever its record names.
// It is for an operator who changes the number of shards.
func (f *Deployment) Replacement(i int, g scripts.Shard) scripts.AdmitRequest {
	r := f.record(i)
	r.Shard, r.Unproven = g, true
	req := f.Request(i, Move{Step: scripts.AdmitReplace, Record: r})
	req.Tolerance = math.MaxInt64 // its quarantine does not end while its clock is wrong
	return req
}

// largest returns a record with the largest durations that were read on any master, and with the latest configuration
// that agrees with this client's.
//
// If there is no record, the result has the max TTL and the epoch of this client. Until this client has read the
// records of a quorum, it cannot know whether there is a record. In the meantime the longest TTL is at most [Shortest],
// because no quarantine is shorter.
func (f *Deployment) largest() scripts.Record {
	r := scripts.Record{Quarantine: max(f.MaxTTL, Shortest), Epoch: -1}
	var looked quorum.Set
	for j := range f.Config.Tracked.All().All() {
		fact := &f.Facts[j]
		if fact.Read {
			looked |= quorum.One(j)
		}
		if !fact.hasRecord() {
			continue
		}
		r.MaxTTL = max(r.MaxTTL, fact.Record.MaxTTL)
		r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.MaxTTL)
		if !f.agrees(j) || fact.Record.Epoch < f.Config.Epoch && !f.Config.Rule.Old.Has(j) {
			continue
		}
		r.Final = max(r.Final, fact.Record.Final)
		if fact.Record.Epoch > r.Epoch {
			r.Epoch, r.Masters, r.Next = fact.Record.Epoch, fact.Record.Masters, fact.Record.Next
		}
	}
	switch {
	case r.MaxTTL > 0:
	case f.Config.Tracked.Won(looked):
		r.MaxTTL = f.MaxTTL
	default:
		r.MaxTTL = min(f.MaxTTL, Shortest)
	}
	if r.Epoch < 0 {
		r.Epoch, r.Final = f.Config.Epoch, f.Config.Epoch&^1
	}
	if r.Epoch == f.Config.Epoch {
		r.Masters, r.Next = f.Config.Masters, f.Config.Next
	}
	return r
}
