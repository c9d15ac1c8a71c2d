package admission

import (
	"math"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// write is a step that writes the record of master i: with the largest numbers that were read anywhere.
func (f *Fleet) write(step scripts.AdmitStep, i int) Move {
	if f.Observer && !f.Now.Has(i) {
		return Move{Look: Look}
	}
	return Move{Step: step, Record: f.record(i)}
}

// record is what is written to master i.
func (f *Fleet) record(i int) scripts.Record {
	r, own := f.largest(), &f.Facts[i].Record
	switch {
	case f.agrees(i) && own.Epoch >= r.Epoch: // a next master may have a list of its own
		r.Epoch, r.Masters, r.Next = own.Epoch, own.Masters, own.Next
	case !f.Config.Rule.All().Has(i):
		r.Epoch, r.Masters, r.Next = f.Config.Epoch, f.Config.Prepared, ""
	}
	r.Quarantine = f.span(i)
	r.Identity, r.Home, r.Group = f.Facts[i].Identity, f.Facts[i].Home, f.Group
	return r
}

// span is how long a quarantine of master i must last. One that was promoted waits for longer: the server that it
// replaces may have given a lock until then.
func (f *Fleet) span(i int) time.Duration {
	r := f.largest()
	return max(r.Quarantine, r.Longest+f.Facts[i].Late)
}

// Request is the step of m for master i as the script wants it. The script compares the master's clock with the
// median, and a quarantine begins at the later of the two. There the latest clock stands in the place of the median: if
// several clocks are set forward during a quarantine, the latest was right before. The tolerance grows by the same.
func (f *Fleet) Request(i int, m Move) scripts.AdmitRequest {
	fact := &f.Facts[i]
	req := scripts.AdmitRequest{
		Step: m.Step, Identity: fact.Identity, Seen: fact.Text, Record: m.Record,
		Median: f.Clocks.Median, Tolerance: scripts.Window,
	}
	switch {
	case f.Now.Has(i): // an operator says that nothing is held
		req.Tolerance = math.MaxInt64
	case m.Step == scripts.AdmitStart || m.Step == scripts.AdmitReplace:
		req.Median = f.Clocks.Latest
		req.Tolerance += ballot.Span(f.Clocks.Latest - f.Clocks.Median)
	}
	return req
}

// Quarantine is the step that puts master i into quarantine, also for an observer, and also if its record names other
// masters. The error is why that is not safe.
func (f *Fleet) Quarantine(i int) (scripts.AdmitRequest, error) {
	return f.Request(i, Move{Step: scripts.AdmitReplace, Record: f.record(i)}), f.mayReplace(i)
}

// largest has the largest numbers that were read anywhere, how long a quarantine must last, and the latest of the
// configurations that agree with this client's.
//
// Without any record this program begins the fleet, with its guard time and its epoch. Before it has read the records
// of a quorum, it cannot know that there is none: then the longest TTL is at most [Shortest], since no quarantine is
// shorter.
func (f *Fleet) largest() scripts.Record {
	r := scripts.Record{Quarantine: max(f.Guard, Shortest), Epoch: -1}
	var looked quorum.Set
	for j := range f.Config.Follow.All().All() {
		fact := &f.Facts[j]
		if fact.Read {
			looked |= quorum.One(j)
		}
		if !fact.told() {
			continue
		}
		r.Longest = max(r.Longest, fact.Record.Longest)
		r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.Longest)
		if !f.agrees(j) || fact.Record.Epoch < f.Config.Epoch && !f.Config.Rule.Old.Has(j) {
			continue
		}
		r.Alone = max(r.Alone, fact.Record.Alone)
		if fact.Record.Epoch > r.Epoch {
			r.Epoch, r.Masters, r.Next = fact.Record.Epoch, fact.Record.Masters, fact.Record.Next
		}
	}
	switch {
	case r.Longest > 0:
	case f.Config.Follow.Won(looked):
		r.Longest = f.Guard
	default:
		r.Longest = min(f.Guard, Shortest)
	}
	if r.Epoch < 0 {
		r.Epoch, r.Alone = f.Config.Epoch, f.Config.Epoch&^1
	}
	if r.Epoch == f.Config.Epoch {
		r.Masters, r.Next = f.Config.Masters, f.Config.Next
	}
	return r
}
