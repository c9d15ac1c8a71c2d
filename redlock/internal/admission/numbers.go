package admission

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// otherNumber is the error if a record of our epoch names another number of masters.
func (f *Fleet) otherNumber(i int) error {
	all := f.Config.Rule.All()
	if !all.Has(i) { // it is being prepared: it is no reason to stop the others
		all = quorum.One(i)
	}
	for j := range all.All() {
		fact := &f.Facts[j]
		if !fact.told() || fact.Record.Epoch != f.Config.Epoch || f.sameNumber(j) {
			continue
		}
		return fmt.Errorf("%w: the record on %s says %s in epoch %d, this program has %s; if no program needs that "+
			"record, %s", ErrNumber, f.Addr(j), numbers(fact.Record.N, fact.Record.Next), f.Config.Epoch, numbers(f.numbers()),
			f.replace(j))
	}
	return nil
}

// replace names the command that replaces the record on master j.
func (f *Fleet) replace(j int) string {
	return fmt.Sprintf("replace it by a quarantine: redlock quarantine -master %s URL...", f.Addr(j))
}

// numbers are how many masters the sets have.
func (f *Fleet) numbers() (n, next int) { return f.Config.Rule.Old.Len(), f.Config.Rule.Next.Len() }

// sameNumber reports whether the record of master j, which is of our epoch, has our numbers. A master that is only
// being prepared may have been admitted as one of the next set alone.
func (f *Fleet) sameNumber(j int) bool {
	r := &f.Facts[j].Record
	n, next := f.numbers()
	if r.N == n && r.Next == next {
		return true
	}
	return !f.Config.Rule.All().Has(j) && r.Next == 0 && r.N == f.Config.Follow.Next.Len()
}

func numbers(n, next int) string {
	if next == 0 {
		return fmt.Sprintf("%d masters", n)
	}
	return fmt.Sprintf("%d masters together with %d next ones", n, next)
}

// write is a step that writes the record of master i: with the largest numbers that were read anywhere.
func (f *Fleet) write(step scripts.AdmitStep, i int) Move {
	if f.Observer && !f.Now.Has(i) {
		return Move{Look: Look}
	}
	return Move{Step: step, Record: f.record(i)}
}

// record is what is written to master i.
func (f *Fleet) record(i int) scripts.Record {
	r := f.largest()
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
	if m.Step == scripts.AdmitStart {
		req.Median = f.Clocks.Latest
		req.Tolerance += ballot.Span(f.Clocks.Latest - f.Clocks.Median)
	}
	return req
}

// Quarantine is the step that puts master i into quarantine, whatever its record says, also for an observer.
func (f *Fleet) Quarantine(i int) scripts.AdmitRequest {
	return f.Request(i, Move{Step: scripts.AdmitStart, Record: f.record(i)})
}

// largest has the largest numbers that were read anywhere, and how long a quarantine must last.
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
		r.Longest, r.Alone = max(r.Longest, fact.Record.Longest), max(r.Alone, fact.Record.Alone)
		r.Quarantine = max(r.Quarantine, fact.Record.Quarantine, fact.Record.Longest)
		if fact.Record.Epoch > r.Epoch {
			r.Epoch, r.N, r.Next = fact.Record.Epoch, fact.Record.N, fact.Record.Next
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
		r.N, r.Next = f.numbers()
	}
	return r
}
