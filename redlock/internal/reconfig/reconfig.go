package reconfig

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
	"github.com/redlock-go/redlock/redlock/internal/quorum"
)

// Seen is what one program sees of its fleet.
type Seen struct {
	Config  *quorum.Config    // what it goes by
	Masters []admission.State // by the pool's number
	Carried bool              // each grant here that is extended is on a majority of the next masters
}

// A Step is what comes next on the way to another configuration.
type Step uint8

// The steps.
const (
	Stay    Step = iota // the program goes by it already
	Prepare             // have the next masters admitted, and see again
	Carry               // have the grants extended, so that the next masters have them, and see again
	Adopt               // go by it
)

// Next is what comes next for a program that is to go by want. An error means that want cannot be right; one that wraps
// admission.ErrIncomplete, that the masters do not allow it yet.
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
	case want.Rule.Joint(), want.Epoch > now.Epoch+1: // one that is late is granted nothing: it has nothing to carry
		return Adopt, nil
	case !alone.MajorityOf(want.Rule.Old):
		return Stay, incomplete(alone, want.Rule.Old)
	case !s.Carried:
		return Carry, nil
	}
	return Adopt, nil
}

// MayFollow checks an epoch alone, before anything is done about its masters.
func MayFollow(s Seen, epoch int64) error {
	now := s.Config.Epoch
	switch {
	case epoch < now:
		return fmt.Errorf("the set of masters has epoch %d already, and %d goes back", now, epoch)
	case epoch > now+1 && !s.late():
		return fmt.Errorf("from epoch %d to %d, states are left out: a set of masters follows another by way of both "+
			"together", now, epoch)
	}
	return nil
}

// follows checks that the masters of want can come after those of the present configuration.
func (s Seen) follows(want *quorum.Config) error {
	now := s.Config
	switch {
	case want.Epoch == now.Epoch:
		return fmt.Errorf("the set of masters of epoch %d has other masters here", now.Epoch)
	case want.Epoch > now.Epoch+1: // this program is late
		return nil
	case now.Rule.Joint() && want.Rule.Old != now.Rule.Next && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("epoch %d is to have the next masters of epoch %d, or the old ones if the change was given up, "+
			"and names others", want.Epoch, now.Epoch)
	case !now.Rule.Joint() && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("epoch %d is to have the masters of epoch %d as the old ones, and names others",
			want.Epoch, now.Epoch)
	}
	return nil
}

// late reports whether the fleet has gone on without this program: nothing is granted to it any more.
func (s Seen) late() bool {
	old := s.Config.Rule.Old
	return s.those(old, func(_ int, st *admission.State) bool { return st.Epoch > s.Config.Epoch }).MajorityOf(old)
}

// able is the masters of the next set of want that would vote for a program that goes by it.
func (s Seen) able(want *quorum.Config) quorum.Set {
	return s.those(want.Rule.Next, func(i int, st *admission.State) bool {
		named := st.Epoch < want.Epoch && !want.Rule.Old.Has(i) || names(st, want)
		return st.Admitted && st.Epoch <= want.Epoch && st.Alone >= want.Needs(i) && named
	})
}

// mayActAlone returns the masters whose records let the set of this epoch, which has this list, act alone.
func (s Seen) mayActAlone(set quorum.Set, epoch int64, list string) quorum.Set {
	final := &quorum.Config{Epoch: epoch, Masters: list}
	return s.those(set, func(_ int, st *admission.State) bool { return st.Alone >= epoch && names(st, final) })
}

// names reports whether a record names the configuration c, or the one before it, or is of a later epoch.
func names(st *admission.State, c *quorum.Config) bool {
	switch {
	case st.Epoch > c.Epoch:
		return true
	case st.Epoch == c.Epoch:
		return st.Masters == c.Masters && st.Next == c.Next
	case st.Epoch%2 == 1:
		return st.Next == c.Masters
	}
	return st.Masters == c.Masters
}

// those is the masters of a set of which is is true. Of one that is down nothing is known.
func (s Seen) those(set quorum.Set, is func(i int, st *admission.State) bool) (yes quorum.Set) {
	for i := range set.All() {
		if i < len(s.Masters) && s.Masters[i].Phase != admission.Down && is(i, &s.Masters[i]) {
			yes |= quorum.One(i)
		}
	}
	return yes
}

// incomplete is the error of a step for which too few masters of a set are ready.
func incomplete(ready, set quorum.Set) error {
	return fmt.Errorf("%w: %d of %d masters are ready for it, %d are needed", admission.ErrIncomplete,
		(ready & set).Len(), set.Len(), quorum.Quorum(set.Len()))
}

// Progress is how far the change is that leads away from the old masters of an odd epoch, or has led to those of an
// even one.
type Progress struct {
	Raised    quorum.Set    // the old masters that have the epoch, or a later one
	RaisedAll bool          // they are a majority
	Open      quorum.Set    // the masters whose set is to act alone and whose records let it
	OpenAll   bool          // they are a majority
	Complete  bool          // a majority of the old masters has had the epoch for long enough
	Left      time.Duration // for how long yet, if RaisedAll
}

// Look says how far the change is.
func Look(s Seen) (p Progress) {
	c := s.Config
	target, epoch, list := c.Rule.Old, c.Epoch, c.Masters
	if c.Rule.Joint() {
		target, epoch, list = c.Rule.Next, c.Epoch+1, c.Next
	}
	p.Open = s.mayActAlone(target, epoch, list)
	p.OpenAll = p.Open.MajorityOf(target)
	p.Raised = s.those(c.Rule.Old, func(_ int, st *admission.State) bool { return st.Epoch >= c.Epoch && names(st, c) })
	p.RaisedAll = p.Raised.MajorityOf(c.Rule.Old)
	if !p.RaisedAll || !c.Rule.Joint() {
		return p
	}
	var lefts []time.Duration
	for i := range p.Raised.All() {
		lefts = append(lefts, s.needed()-ballot.Span(s.Masters[i].Read-s.Masters[i].Raised))
	}
	slices.Sort(lefts)
	p.Left = max(0, lefts[quorum.Quorum(c.Rule.Old.Len())-1])
	p.Complete = p.Left == 0
	return p
}

// needed is for how long a majority of the old masters must have had the epoch: until the last lock of the old set
// alone has ended, and every ballot that a next master accepts is above all that the old masters have accepted. A
// ballot is accepted within 15 s of a master's time on either side. A quarantine counts like a TTL: it is never shorter
// than the longest TTL of a master that cannot be seen now.
func (s Seen) needed() (longest time.Duration) {
	for i := range s.Config.Rule.All().All() {
		longest = max(longest, s.Masters[i].Longest, s.Masters[i].Quarantine)
	}
	return longest + 2*scripts.Window
}

// A Writing is numbers that are to be written into the records of masters.
type Writing struct {
	Rule   quorum.Rule    // the masters; a majority of each set must have them
	Record scripts.Record // Masters, Next, Epoch and Alone
}

// Raise is what to write so that programs with an earlier epoch are refused.
func Raise(s Seen) (Writing, error) {
	c := s.Config
	if c.Epoch == 0 {
		return Writing{}, fmt.Errorf("the set of masters has epoch 0, which is the first and need not be written")
	}
	w := Writing{Rule: c.Rule, Record: record(c)}
	if !c.Rule.Joint() {
		if p := Look(s); !p.OpenAll {
			return Writing{}, incomplete(p.Open, c.Rule.Old)
		}
		w.Record.Alone = c.Epoch
	}
	return w, nil
}

// Finish is what to write so that the next masters may act alone.
func Finish(s Seen) (Writing, error) {
	c, p := s.Config, Look(s)
	switch {
	case !c.Rule.Joint():
		return Writing{}, fmt.Errorf("the set of masters has epoch %d, and no change under way", c.Epoch)
	case p.OpenAll || p.Complete:
	case !p.RaisedAll:
		return Writing{}, fmt.Errorf("%w: %d of %d old masters have epoch %d, and a majority is needed; see RaiseEpoch",
			admission.ErrIncomplete, p.Raised.Len(), c.Rule.Old.Len(), c.Epoch)
	default:
		return Writing{}, fmt.Errorf("%w: locks of the old masters alone may live for another %v",
			admission.ErrIncomplete, p.Left.Round(time.Millisecond))
	}
	w := Writing{Rule: quorum.Rule{Old: c.Rule.Next}, Record: record(c)}
	w.Record.Alone = c.Epoch + 1
	return w, nil
}

// Abort is what to write so that the old masters act alone again. The first writing keeps the next ones from acting
// alone, for which a majority of them must not have been allowed to; only then may the second be made.
func Abort(s Seen) (list []Writing, err error) {
	c, p := s.Config, Look(s)
	switch {
	case !c.Rule.Joint():
		return nil, fmt.Errorf("the set of masters has epoch %d, and no change under way", c.Epoch)
	case p.OpenAll:
		return nil, fmt.Errorf("the next masters of epoch %d may act alone already: go on to epoch %d", c.Epoch, c.Epoch+1)
	}
	final := scripts.Record{Masters: c.Masters, Epoch: c.Epoch + 1}
	list = []Writing{{Rule: quorum.Rule{Old: c.Rule.Next}, Record: final}, {Rule: quorum.Rule{Old: c.Rule.Old}, Record: final}}
	list[1].Record.Alone = final.Epoch
	return list, nil
}

// May reports whether the numbers may be written to a master: a later epoch, or the same one with the same lists; and
// never the old masters over a record that lets the next ones act alone.
func (w *Writing) May(st *admission.State) bool {
	switch {
	case st.Epoch > w.Record.Epoch:
		return false
	case st.Epoch == w.Record.Epoch:
		return st.Masters == w.Record.Masters && st.Next == w.Record.Next
	}
	return w.Record.Epoch%2 == 1 || st.Alone < w.Record.Epoch || st.Next == w.Record.Masters
}

func record(c *quorum.Config) scripts.Record {
	return scripts.Record{Masters: c.Masters, Next: c.Next, Epoch: c.Epoch}
}

// Has reports whether a master has the numbers, or larger ones.
func (w *Writing) Has(st *admission.State) bool {
	c := &quorum.Config{Epoch: w.Record.Epoch, Masters: w.Record.Masters, Next: w.Record.Next}
	return st.Epoch >= w.Record.Epoch && st.Alone >= w.Record.Alone && names(st, c)
}
