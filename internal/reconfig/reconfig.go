package reconfig

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/ballot"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
)

// Seen is what one client knows about the deployment.
type Seen struct {
	Config  *quorum.Config    // the configuration in use
	Masters []admission.State // indexed by the number in the pool
	Carried bool              // whether each lease that this client extends is on a majority of the next masters
}

// A Step is the next step towards another configuration.
type Step uint8

// Steps towards another configuration.
const (
	Stay    Step = iota // none: the client already uses the configuration
	Prepare             // admit the next masters, and call Next again
	Carry               // extend the leases on the next masters, and call Next again
	Adopt               // use the configuration
)

// Next returns the next step of a client towards the configuration want. An error that wraps admission.ErrIncomplete
// means that the masters do not allow the step yet. Any other error means that the client must not use want.
func Next(s Seen, want *quorum.Config) (Step, error) {
	now := s.Config
	if want.Same(now) {
		return Stay, nil
	}
	if err := MayFollow(s, want.Epoch); err != nil {
		return Stay, err
	}
	if err := s.follows(want); err != nil {
		return Stay, err
	}
	alone := s.mayActAlone(want.Rule.Old, want.Epoch, want.Masters)
	switch {
	case want.Rule.Joint() && !s.able(want).MajorityOf(want.Rule.Next):
		return Prepare, nil
	case want.Rule.Joint(), want.Epoch > now.Epoch+1: // a late client is granted no locks, so it has none to carry
		return Adopt, nil
	//mutant:together = false
	case !alone.MajorityOf(want.Rule.Old):
		return Stay, incomplete(alone.Len(), want.Rule.Old)
	case !s.Carried:
		return Carry, nil
	}
	return Adopt, nil
}

// MayFollow returns an error if this client must not change to any configuration with this epoch.
func MayFollow(s Seen, epoch int64) error {
	now := s.Config.Epoch
	switch {
	case epoch < now:
		return fmt.Errorf("the masters already have epoch %d, which is later than %d", now, epoch)
	case epoch > now+1 && !s.late():
		return fmt.Errorf("from epoch %d to %d, a step is missing: this client has missed a change, and cannot see "+
			"epoch %d on a majority of its masters; if these masters are stopped for good, restart the client with the file",
			now, epoch, epoch)
	}
	return nil
}

// follows returns an error if the masters of want must not follow those of the present configuration.
func (s Seen) follows(want *quorum.Config) error {
	now := s.Config
	switch {
	case want.Epoch == now.Epoch:
		return fmt.Errorf("the configuration of epoch %d has other masters here, and no client changes from one list of an "+
			"epoch to another: redlock set FILE shows what to do", now.Epoch)
	case want.Epoch > now.Epoch+1: // this client is late
		return nil
	case now.Rule.Joint() && want.Rule.Old != now.Rule.Next && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("the old masters of epoch %d must be the next masters of epoch %d, or its old masters if that "+
			"change was cancelled", want.Epoch, now.Epoch)
	case !now.Rule.Joint() && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("the old masters of epoch %d must be the masters of epoch %d", want.Epoch, now.Epoch)
	}
	return nil
}

// late reports whether a majority of the old masters has a later epoch than this client, and grants it no locks.
func (s Seen) late() bool {
	old := s.Config.Rule.Old
	return s.those(old, func(_ int, st *admission.State) bool { return st.Record.Epoch > s.Config.Epoch }).MajorityOf(old)
}

// able returns the masters in the next set of want that would vote for a client with the configuration want.
func (s Seen) able(want *quorum.Config) quorum.Set {
	return s.those(want.Rule.Next, func(i int, st *admission.State) bool {
		named := st.Record.Epoch < want.Epoch && !want.Rule.Old.Has(i) || names(st, want)
		return st.Admitted && st.Record.Epoch <= want.Epoch && st.Record.Final >= want.LeastFinal(i) && named
	})
}

// mayActAlone returns the masters in set whose records allow the masters in list to act alone at this epoch.
func (s Seen) mayActAlone(set quorum.Set, epoch int64, list string) quorum.Set {
	final := &quorum.Config{Epoch: epoch, Masters: list}
	return s.those(set, func(_ int, st *admission.State) bool { return st.Record.Final >= epoch && names(st, final) })
}

// names reports whether a record contains the configuration c, the configuration before c, or any later epoch.
func names(st *admission.State, c *quorum.Config) bool {
	switch {
	case st.Record.Epoch > c.Epoch:
		return true
	case st.Record.Epoch == c.Epoch:
		return st.Record.Masters == c.Masters && st.Record.Next == c.Next
	case st.Record.Epoch%2 == 1:
		return st.Record.Next == c.Masters
	}
	return st.Record.Masters == c.Masters
}

// those returns the masters in set that are not down and for which match returns true.
func (s Seen) those(set quorum.Set, match func(i int, st *admission.State) bool) quorum.Set {
	return set.Where(func(i int) bool {
		return i < len(s.Masters) && s.Masters[i].Phase != admission.Down && match(i, &s.Masters[i])
	})
}

// incomplete returns the error for a step that too few masters in set are ready for.
func incomplete(ready int, set quorum.Set) error {
	return fmt.Errorf("%w: %d of %d masters are ready for it, %d are needed", admission.ErrIncomplete,
		ready, set.Len(), quorum.Quorum(set.Len()))
}

// Progress is that of a change of the masters, as the masters report it.
type Progress struct {
	// Raised is the number of old masters whose records contain the epoch or a later one, so that they refuse clients
	// with an earlier configuration. RaisedAll reports whether these masters are a majority.
	Raised    int
	RaisedAll bool
	// Complete reports whether a majority has stored the epoch for long enough: no lease depends on the old masters alone.
	// Left is the time until Complete becomes true.
	// Differ reports whether Left does not get shorter, because the clocks of old masters differ, and too few can be read
	// to show which are right.
	Complete bool
	Left     time.Duration
	Differ   bool
	// Open is the number of next masters, or of all masters if the epoch is even, whose records say that the configuration
	// of only these masters is final. OpenAll reports whether Open is a majority.
	Open    int
	OpenAll bool
	// Cancels reports whether a record is still in the change that the masters of the configuration cancel.
	Cancels bool
	// Skips reports whether the configuration skips an epoch: Latest is the latest one of a majority of its old masters.
	Skips  bool
	Latest int64
}

// Differ says what to do if [Progress] has Differ.
const Differ = "the clocks of old masters differ, and too few can be read to show which are right: start the old " +
	"masters that are down, and repeat redlock set --raise; or follow redlock check"

// Look returns the progress of a change. At an odd epoch, it is the change from the old masters to the next masters. At
// an even epoch, it is the change that has led to the present masters.
func Look(s Seen) (p Progress) {
	c := s.Config
	target, epoch, list := c.Rule.Old, c.Epoch, c.Masters
	if c.Rule.Joint() {
		target, epoch, list = c.Rule.Next, c.Epoch+1, c.Next
	}
	open := s.mayActAlone(target, epoch, list)
	p.Open, p.OpenAll = open.Len(), open.MajorityOf(target)
	raised := s.those(c.Rule.Old, func(_ int, st *admission.State) bool {
		return st.Record.Epoch >= c.Epoch && names(st, c)
	})
	p.Raised, p.RaisedAll = raised.Len(), raised.MajorityOf(c.Rule.Old)
	p.Cancels = s.those(c.Rule.Old, func(_ int, st *admission.State) bool {
		return c.Epoch%2 == 0 && st.Record.Epoch == c.Epoch-1 && st.Record.Masters == c.Masters
	}) != 0
	known := s.those(c.Rule.Old, func(_ int, st *admission.State) bool {
		p.Latest = max(p.Latest, st.Record.Epoch, st.Record.Final)
		return st.Record.Masters != ""
	})
	p.Skips = known.MajorityOf(c.Rule.Old) && p.Latest < c.Epoch-1
	if !p.RaisedAll || !c.Rule.Joint() {
		return p
	}
	var lefts []time.Duration
	// Those whose time counts now or in a moment, since a correct clock may have shown it. A record has the time of a
	// clock that is ahead of its master's, if only by a microsecond.
	inTime := raised
	for i := range raised.All() {
		lefts = append(lefts, s.needed()-s.since(i, s.Masters[i].Read, s.Masters[i].Record.Raised))
		if min(s.Masters[i].Read, s.latest(i))+skew.Agree.Microseconds() < s.Masters[i].Record.Raised {
			inTime &^= quorum.One(i)
		}
	}
	slices.Sort(lefts)
	p.Left = max(0, lefts[quorum.Quorum(c.Rule.Old.Len())-1])
	p.Complete, p.Differ = p.Left == 0, !inTime.MajorityOf(c.Rule.Old)
	return p
}

// since returns how long ago a master with number i, whose clock shows read, has written the time t. A clock that has
// jumped forward counts no more than the others: see latest. If the clock was behind, t is that of the others.
func (s Seen) since(i int, read, t int64) time.Duration {
	return ballot.Span(max(0, min(read, s.latest(i))-t))
}

// latest returns the latest time that a correct clock of a master may have shown when the records were read.
func (s Seen) latest(i int) int64 {
	_, latest := s.bounds(s.Config.Rule.Of(i).Sets()[0])
	return latest
}

// bounds returns two bounds of the time that correct clocks of a set showed when the records were read. Of the k
// readings of n masters, f = (n-1)/2 may be wrong, so the (f+1)-th smallest is not earlier than some correct clock, and
// the (k-f)-th smallest is not later. Correct clocks differ by up to skew.Window.
func (s Seen) bounds(set quorum.Set) (earliest, latest int64) {
	var reads []int64
	for j := range s.those(set, func(_ int, st *admission.State) bool { return st.Read > 0 }).All() {
		reads = append(reads, s.Masters[j].Read)
	}
	k, f := len(reads), (set.Len()-1)/2
	if k == 0 {
		return 0, 0
	}
	slices.Sort(reads)
	return reads[min(f, k-1)], reads[max(0, k-1-f)] + skew.Window.Microseconds()
}

// needed returns how long a majority of the old masters must have had the epoch. By then the last lock of the old set
// alone has ended, and every ballot that a next master accepts is above all ballots that the old masters have accepted.
// Ballots are accepted up to skew.Window before and after a master's time. The result also covers every quarantine,
// because a quarantine is never shorter than the longest TTL of a master whose record cannot be read now.
func (s Seen) needed() (longest time.Duration) {
	for i := range s.Config.Rule.All().All() {
		longest = max(longest, s.Masters[i].Record.MaxTTL, s.Masters[i].Record.Quarantine)
	}
	return longest + 2*skew.Window
}

// A Writing is a configuration to write into the records of masters.
type Writing struct {
	Rule   quorum.Rule    // the masters whose records are written; a majority of each set must have the configuration
	Record scripts.Record // only Masters, Next, Epoch and Final are written
	Voting bool           // whether masters in quarantine are neither written nor counted

	seen  Seen
	added quorum.Set // masters on which no lock depends alone yet, so that they may have been admitted just now
}

// Raise returns the writing that makes the masters refuse clients with an earlier epoch.
func Raise(s Seen) ([]Writing, error) {
	c := s.Config
	if c.Epoch == 0 {
		return nil, fmt.Errorf("the configuration has epoch 0, the first, which is not written")
	}
	w, p := s.writing(c.Rule, record(c)), Look(s)
	earliest, latest := s.bounds(c.Rule.Old)
	switch {
	case p.Skips:
		return nil, fmt.Errorf("the masters have epoch %d, and no change skips an epoch", p.Latest)
	case c.Rule.Joint() && earliest > latest: // the records would get a time that may be far ahead
		return nil, fmt.Errorf("%w: %s", admission.ErrIncomplete, Differ)
	case !c.Rule.Joint() && !p.OpenAll:
		return nil, incomplete(p.Open, c.Rule.Old)
	case !c.Rule.Joint():
		w.Record.Final = c.Epoch
	case !p.RaisedAll: // Finish comes long after this
		w.added = c.Rule.Next &^ c.Rule.Old
	}
	return []Writing{w}, nil
}

// Finish returns the writing that allows the next masters to act alone.
func Finish(s Seen) ([]Writing, error) {
	c, p := s.Config, Look(s)
	aborted := s.those(c.Rule.Old, func(_ int, st *admission.State) bool {
		return st.Record.Epoch > c.Epoch && st.Record.Masters == c.Masters
	})
	switch {
	case !c.Rule.Joint():
		return nil, fmt.Errorf("the configuration has epoch %d, and no change is in progress", c.Epoch)
	case aborted != 0:
		return nil, fmt.Errorf("the change of epoch %d was cancelled", c.Epoch)
	case p.OpenAll || p.Complete:
	case !p.RaisedAll:
		return nil, fmt.Errorf("%w: %d of %d old masters have epoch %d, and a majority is needed; see redlock set --raise",
			admission.ErrIncomplete, p.Raised, c.Rule.Old.Len(), c.Epoch)
	case p.Differ:
		return nil, fmt.Errorf("%w: %s", admission.ErrIncomplete, Differ)
	default:
		return nil, fmt.Errorf("%w: locks of the old masters alone may live for another %v",
			admission.ErrIncomplete, p.Left.Round(time.Millisecond))
	}
	w := s.writing(quorum.Rule{Old: c.Rule.Next}, record(c))
	w.Record.Final = c.Epoch + 1
	return []Writing{w}, nil
}

// Abort returns two writings, to be made in this order, that let the old masters act alone again. The first prevents
// the next masters from acting alone. For the first, a majority of the next masters must vote and must not have been
// allowed to act alone. A master in quarantine does not count, because it may have forgotten that it was allowed to
// act alone, and that it granted a lock.
func Abort(s Seen) (list []Writing, err error) {
	c, p := s.Config, Look(s)
	switch {
	case !c.Rule.Joint():
		return nil, fmt.Errorf("the configuration has epoch %d, and no change is in progress", c.Epoch)
	case p.OpenAll:
		return nil, fmt.Errorf("the next masters of epoch %d may already act alone: continue with epoch %d", c.Epoch,
			c.Epoch+1)
	}
	final := scripts.Record{Masters: c.Masters, Epoch: c.Epoch + 1}
	list = []Writing{s.writing(quorum.Rule{Old: c.Rule.Next}, final), s.writing(quorum.Rule{Old: c.Rule.Old}, final)}
	list[0].Voting, list[0].added, list[1].Record.Final = true, c.Rule.Next&^c.Rule.Old, final.Epoch
	return list, nil
}

func (s Seen) writing(rule quorum.Rule, r scripts.Record) Writing {
	return Writing{Rule: rule, Record: r, seen: s}
}

// May reports whether w may be written to master i. The epoch of w must be later than that of the record, or be the
// same with the same lists. The list of the old masters must not replace a record that allows the next masters to act
// alone. A master that was not added just now, but has the record of another deployment, may have lost its data and
// have been admitted by mistake, so it must have been admitted for long enough.
func (w *Writing) May(i int, st *admission.State) bool {
	stray := !w.added.Has(i) && !names(st, w.seen.Config)
	switch {
	//mutant:stray-raised 2= false
	case stray && w.seen.since(i, st.Read, st.Record.Since) < w.seen.needed():
		return false
	case st.Record.Epoch > w.Record.Epoch:
		return false
	case st.Record.Epoch == w.Record.Epoch:
		return st.Record.Masters == w.Record.Masters && st.Record.Next == w.Record.Next
	}
	return w.Record.Epoch%2 == 1 || st.Record.Final < w.Record.Epoch || st.Record.Next == w.Record.Masters
}

func record(c *quorum.Config) scripts.Record {
	return scripts.Record{Masters: c.Masters, Next: c.Next, Epoch: c.Epoch}
}

// Has reports whether the record of a master already contains w, or a later configuration.
func (w *Writing) Has(st *admission.State) bool {
	c := &quorum.Config{Epoch: w.Record.Epoch, Masters: w.Record.Masters, Next: w.Record.Next}
	return st.Record.Epoch >= w.Record.Epoch && st.Record.Final >= w.Record.Final && names(st, c)
}
