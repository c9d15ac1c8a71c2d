package reconfig

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/internal/skew"
	"github.com/redlock-go/redlock/redlock/internal/admission"
	"github.com/redlock-go/redlock/redlock/internal/ballot"
)

// Seen is the deployment as seen by one client.
type Seen struct {
	Config  *quorum.Config    // the configuration in use
	Masters []admission.State // indexed by the number in the pool
	Carried bool              // each lease that this client extends is on a majority of the next masters
}

// A Step is the next step towards another configuration.
type Step uint8

// Steps towards another configuration.
const (
	Stay    Step = iota // the client already uses it
	Prepare             // admit the next masters, and call Next again
	Carry               // extend the leases, so that the next masters have them, and call Next again
	Adopt               // use it
)

// Next returns the next step of a client that is to use want. An error means that want is invalid; one that wraps
// admission.ErrIncomplete means that the masters do not allow it yet.
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
	case want.Rule.Joint(), want.Epoch > now.Epoch+1: // a late client is granted nothing, so it has nothing to carry
		return Adopt, nil
	//mutant:together = false
	case !alone.MajorityOf(want.Rule.Old):
		return Stay, incomplete(alone.Len(), want.Rule.Old)
	case !s.Carried:
		return Carry, nil
	}
	return Adopt, nil
}

// MayFollow returns an error if this client must not change to a configuration of this epoch, regardless of its
// masters.
func MayFollow(s Seen, epoch int64) error {
	now := s.Config.Epoch
	switch {
	case epoch < now:
		return fmt.Errorf("the masters have epoch %d already, later than %d", now, epoch)
	case epoch > now+1 && !s.late():
		return fmt.Errorf("from epoch %d to %d, a step is missing: this client has missed a change, and cannot see "+
			"epoch %d on a majority of its masters; if they are stopped for good, restart it with the file", now, epoch,
			epoch)
	}
	return nil
}

// follows returns an error if the masters of want must not follow those of the present configuration.
func (s Seen) follows(want *quorum.Config) error {
	now := s.Config
	switch {
	case want.Epoch == now.Epoch:
		return fmt.Errorf("the configuration of epoch %d has other masters here", now.Epoch)
	case want.Epoch > now.Epoch+1: // this client is late
		return nil
	case now.Rule.Joint() && want.Rule.Old != now.Rule.Next && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("epoch %d must have the next masters of epoch %d, or the old ones if the change was cancelled, "+
			"but it names others", want.Epoch, now.Epoch)
	case !now.Rule.Joint() && want.Rule.Old != now.Rule.Old:
		return fmt.Errorf("epoch %d must have the masters of epoch %d as the old ones", want.Epoch, now.Epoch)
	}
	return nil
}

// late reports whether the deployment has a later epoch than this client, which is granted no locks then.
func (s Seen) late() bool {
	old := s.Config.Rule.Old
	return s.those(old, func(_ int, st *admission.State) bool { return st.Record.Epoch > s.Config.Epoch }).MajorityOf(old)
}

// able returns the masters in the next set of want that would vote for a client that uses want.
func (s Seen) able(want *quorum.Config) quorum.Set {
	return s.those(want.Rule.Next, func(i int, st *admission.State) bool {
		named := st.Record.Epoch < want.Epoch && !want.Rule.Old.Has(i) || names(st, want)
		return st.Admitted && st.Record.Epoch <= want.Epoch && st.Record.Alone >= want.Needs(i) && named
	})
}

// mayActAlone returns the masters whose records allow the configuration of this epoch, with this list, to be final.
func (s Seen) mayActAlone(set quorum.Set, epoch int64, list string) quorum.Set {
	final := &quorum.Config{Epoch: epoch, Masters: list}
	return s.those(set, func(_ int, st *admission.State) bool { return st.Record.Alone >= epoch && names(st, final) })
}

// names reports whether a record contains the configuration c, or the one before it, or a later epoch.
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

// those returns the masters of a set for which the function is returns true. It omits masters that are down.
func (s Seen) those(set quorum.Set, is func(i int, st *admission.State) bool) quorum.Set {
	return set.Where(func(i int) bool {
		return i < len(s.Masters) && s.Masters[i].Phase != admission.Down && is(i, &s.Masters[i])
	})
}

// incomplete returns the error of a step for which too few masters of a set are ready.
func incomplete(ready int, set quorum.Set) error {
	return fmt.Errorf("%w: %d of %d masters are ready for it, %d are needed", admission.ErrIncomplete,
		ready, set.Len(), quorum.Quorum(set.Len()))
}

// Look returns the progress of the change away from the old masters of an odd epoch, or to the masters of an even one.
func Look(s Seen) (p private.Change) {
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
	if !p.RaisedAll || !c.Rule.Joint() {
		return p
	}
	var lefts []time.Duration
	for i := range raised.All() {
		lefts = append(lefts, s.needed()-ballot.Span(s.Masters[i].Read-s.Masters[i].Record.Raised))
	}
	slices.Sort(lefts)
	p.Left = max(0, lefts[quorum.Quorum(c.Rule.Old.Len())-1])
	p.Complete = p.Left == 0
	return p
}

// needed returns how long a majority of the old masters must have had the epoch: until the last lock of the old set
// alone has ended, and every ballot that a next master accepts is above all that the old masters have accepted. A
// ballot is accepted within 15 s of a master's time on either side. A quarantine is treated like a TTL, because it is
// never shorter than the longest TTL of a master that cannot be seen now.
func (s Seen) needed() (longest time.Duration) {
	for i := range s.Config.Rule.All().All() {
		longest = max(longest, s.Masters[i].Record.Longest, s.Masters[i].Record.Quarantine)
	}
	return longest + 2*skew.Window
}

// A Writing holds numbers to write into the records of masters.
type Writing struct {
	Rule   quorum.Rule    // the masters; a majority of each set must get them
	Record scripts.Record // Masters, Next, Epoch and Alone
	Voting bool           // a master in quarantine must not get them, and is not counted if it has them
}

// Raise returns the numbers that make the masters refuse clients with an earlier epoch.
func Raise(s Seen) ([]Writing, error) {
	c := s.Config
	if c.Epoch == 0 {
		return nil, fmt.Errorf("the configuration has epoch 0, the first, which is not written")
	}
	w := Writing{Rule: c.Rule, Record: record(c)}
	if !c.Rule.Joint() {
		if p := Look(s); !p.OpenAll {
			return nil, incomplete(p.Open, c.Rule.Old)
		}
		w.Record.Alone = c.Epoch
	}
	return []Writing{w}, nil
}

// Finish returns the numbers that allow the next masters to act alone.
func Finish(s Seen) ([]Writing, error) {
	c, p := s.Config, Look(s)
	aborted := s.those(c.Rule.Old, func(_ int, st *admission.State) bool {
		return st.Record.Epoch > c.Epoch && st.Record.Masters == c.Masters
	})
	switch {
	case !c.Rule.Joint():
		return nil, fmt.Errorf("the configuration has epoch %d, and no change is in progress", c.Epoch)
	//mutant:finish-given-up = false
	case aborted != 0:
		return nil, fmt.Errorf("the change of epoch %d was cancelled", c.Epoch)
	case p.OpenAll || p.Complete:
	case !p.RaisedAll:
		return nil, fmt.Errorf("%w: %d of %d old masters have epoch %d, and a majority is needed; see redlock set --raise",
			admission.ErrIncomplete, p.Raised, c.Rule.Old.Len(), c.Epoch)
	default:
		return nil, fmt.Errorf("%w: locks of the old masters alone may live for another %v",
			admission.ErrIncomplete, p.Left.Round(time.Millisecond))
	}
	w := Writing{Rule: quorum.Rule{Old: c.Rule.Next}, Record: record(c)}
	w.Record.Alone = c.Epoch + 1
	return []Writing{w}, nil
}

// Abort returns two writings that make the old masters act alone again. The first prevents the next masters from
// acting alone. It requires a majority of next masters that vote and have not been allowed to act alone, because a
// master in quarantine may have forgotten that it was allowed, and that it granted a lock. The second writing must
// follow the first.
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
	list = []Writing{
		{Rule: quorum.Rule{Old: c.Rule.Next}, Record: final, Voting: true},
		{Rule: quorum.Rule{Old: c.Rule.Old}, Record: final},
	}
	list[1].Record.Alone = final.Epoch
	return list, nil
}

// May reports whether the numbers may be written to a master: a later epoch, or the same one with the same lists, but
// never the old masters over a record that allows the next ones to act alone.
func (w *Writing) May(st *admission.State) bool {
	switch {
	case st.Record.Epoch > w.Record.Epoch:
		return false
	case st.Record.Epoch == w.Record.Epoch:
		return st.Record.Masters == w.Record.Masters && st.Record.Next == w.Record.Next
	}
	return w.Record.Epoch%2 == 1 || st.Record.Alone < w.Record.Epoch || st.Record.Next == w.Record.Masters
}

func record(c *quorum.Config) scripts.Record {
	return scripts.Record{Masters: c.Masters, Next: c.Next, Epoch: c.Epoch}
}

// Has reports whether a master has the numbers, or larger ones.
func (w *Writing) Has(st *admission.State) bool {
	c := &quorum.Config{Epoch: w.Record.Epoch, Masters: w.Record.Masters, Next: w.Record.Next}
	return st.Record.Epoch >= w.Record.Epoch && st.Record.Alone >= w.Record.Alone && names(st, c)
}
