package admission

import (
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// otherNumber is the error if a record of our epoch names another number of masters. The groups of masters of two such
// programs need not share a master, so this one admits nothing and wins nothing.
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
	if f.Observer && !f.Now {
		return Move{Look: Look}
	}
	return Move{Step: step, Record: f.record(i)}
}

// record is what is written to master i.
func (f *Fleet) record(i int) scripts.Record {
	fact := &f.Facts[i]
	r := scripts.Record{Identity: fact.Identity, Home: fact.Home, Longest: f.longest(), Quarantine: f.needed()}
	r.Epoch, r.N, r.Next, r.Alone = f.epoch()
	return r
}

// Request is the step of m for master i as the script wants it. The script compares the master's clock with the
// median, and takes the later of the two for the begin of a quarantine. The latest clock stands there in the place of
// the median: of several clocks that are set forward during a quarantine, the latest was right before. The tolerance
// grows by the same.
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

// Quarantine is the step that puts master i into quarantine, whatever its record says. An observer takes it too: it is
// what somebody has asked for.
func (f *Fleet) Quarantine(i int) scripts.AdmitRequest {
	return f.Request(i, Move{Step: scripts.AdmitStart, Record: f.record(i)})
}

// longest is the longest TTL that a new record allows: the fleet's. Without any record this program's guard time
// begins a fleet. A program that has not even looked at a quorum cannot know that there is none: then it is at most
// [Shortest], since no quarantine is shorter.
func (f *Fleet) longest() (longest time.Duration) {
	var looked quorum.Set
	for j := range f.Config.Follow.All().All() {
		fact := &f.Facts[j]
		if fact.told() {
			longest = max(longest, fact.Record.Longest)
		}
		if fact.Read {
			looked |= quorum.One(j)
		}
	}
	switch {
	case longest > 0:
		return longest
	case f.Config.Follow.Won(looked):
		return f.Guard
	}
	return min(f.Guard, Shortest)
}

// needed is how long a quarantine must last.
func (f *Fleet) needed() time.Duration {
	needed := max(f.Guard, Shortest)
	for j := range f.Config.Follow.All().All() {
		if fact := &f.Facts[j]; fact.told() {
			needed = max(needed, fact.Record.Quarantine, fact.Record.Longest)
		}
	}
	return needed
}

// epoch is the largest epoch that was read, with the numbers of masters of a record that has it, and the largest epoch
// whose set may act alone. The program's own count if nothing was read: one that is ahead must not bar the others.
func (f *Fleet) epoch() (epoch int64, n, next int, alone int64) {
	epoch = -1
	for j := range f.Config.Follow.All().All() {
		fact := &f.Facts[j]
		if !fact.told() {
			continue
		}
		alone = max(alone, fact.Record.Alone)
		if fact.Record.Epoch > epoch {
			epoch, n, next = fact.Record.Epoch, fact.Record.N, fact.Record.Next
		}
	}
	if epoch < 0 {
		epoch, alone = f.Config.Epoch, f.Config.Epoch&^1
	}
	if epoch == f.Config.Epoch {
		n, next = f.numbers()
	}
	return epoch, n, next, alone
}
