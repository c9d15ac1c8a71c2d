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
	alone := s.mayActAlone(want.Rule.Old, want.Epoch)
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
	case now.Rule.Joint() && want.Rule.Old != now.Rule.Next:
		return fmt.Errorf("epoch %d is to have the next masters of epoch %d, and names others", want.Epoch, now.Epoch)
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
		return st.Admitted && st.Epoch <= want.Epoch && st.Alone >= want.Needs(i)
	})
}

// mayActAlone is the masters whose records let the set of this epoch act alone.
func (s Seen) mayActAlone(set quorum.Set, epoch int64) quorum.Set {
	return s.those(set, func(_ int, st *admission.State) bool { return st.Alone >= epoch })
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
	target, epoch := c.Rule.Old, c.Epoch
	if c.Rule.Joint() {
		target, epoch = c.Rule.Next, c.Epoch+1
	}
	p.Open = s.mayActAlone(target, epoch)
	p.OpenAll = p.Open.MajorityOf(target)
	p.Raised = s.those(c.Rule.Old, func(_ int, st *admission.State) bool { return st.Epoch >= c.Epoch })
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
	Record scripts.Record // N, Next, Epoch and Alone
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

func record(c *quorum.Config) scripts.Record {
	return scripts.Record{N: c.Rule.Old.Len(), Next: c.Rule.Next.Len(), Epoch: c.Epoch}
}

// Has reports whether a master has the numbers, or larger ones.
func (w *Writing) Has(st *admission.State) bool {
	return st.Epoch >= w.Record.Epoch && st.Alone >= w.Record.Alone
}
