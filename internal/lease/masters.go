package lease

import (
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
	"github.com/redlock-go/redlock/internal/round"
)

// sent records to which masters messages were sent that can create the lease. Only these masters may have the lease.
type sent struct {
	to     quorum.Set      // masters to which an acquire, an import or a repair may have been written
	view   *admission.View // the view of the first round, with the sessions of that round
	mixed  quorum.Set      // masters that were sent a repair, or a message over another session than in the first round
	ballot int64           // the largest ballot of all rounds
	repair map[int]int64   // the largest ballot of a repair, by master; nil: no repair was sent
}

// touchAll records that an acquire or an import with this last ballot was sent to the masters of set.
func (s *sent) touchAll(view *admission.View, set quorum.Set, last int64) {
	for i := range set.All() {
		s.touch(view, i, last)
	}
}

// touch records that a message with this ballot goes to master i over the session in view.
func (s *sent) touch(view *admission.View, i int, ballot int64) {
	if s.view == nil {
		s.view = view
	}
	if i >= len(s.view.Masters) || s.view.Masters[i].Session != view.Masters[i].Session {
		s.mixed |= quorum.One(i)
	}
	s.to |= quorum.One(i)
	s.ballot = max(s.ballot, ballot)
}

// touchRepair records a repair, whose ballot concerns only master i. The release that is sent to this master always
// carries that ballot. So a repair that was refused is not granted if it is executed again after the release.
func (s *sent) touchRepair(view *admission.View, i int, ballot int64) {
	s.touch(view, i, 0)
	s.mixed |= quorum.One(i)
	if s.repair == nil {
		s.repair = make(map[int]int64)
	}
	s.repair[i] = ballot
}

// last returns the largest ballot that master i was sent; 0 if there is none.
func (s *sent) last(i int) int64 {
	if !s.to.Has(i) {
		return 0
	}
	return max(s.repair[i], s.ballot)
}

// session returns the session over which all messages to master i were sent; 0 if there were several sessions or a
// repair.
func (s *sent) session(i int) uint64 {
	if s.view == nil || s.mixed.Has(i) || i >= len(s.view.Masters) {
		return 0
	}
	return s.view.Masters[i].Session
}

// masters records which masters have the lease according to their last answer, and which have lost it.
type masters struct{ has, lost quorum.Set }

func (m *masters) gain(set quorum.Set) { m.has, m.lost = m.has|set, m.lost&^set }
func (m *masters) lose(set quorum.Set) { m.has, m.lost = m.has&^set, m.lost|set }

// same returns the masters with the same incarnation in both views: the same server is at the address, and has not lost
// data between the views.
func same(old, now *admission.View) quorum.Set {
	return quorum.First(min(len(old.Masters), len(now.Masters))).Where(func(i int) bool {
		return old.Masters[i].Incarnation == now.Masters[i].Incarnation
	})
}

// breaking returns those masters of a set that are declared durable, but do not remember every write at present.
func breaking(view *admission.View, set quorum.Set) quorum.Set {
	return set.Where(func(i int) bool { return view.Masters[i].Lossy != "" && view.Masters[i].Record.DurableName != "" })
}

// markHeldLocked records that master i has the lease according to a round that used view, unless the server of the
// master may have lost data since, or may forget the lease.
func (l *Lease) markHeldLocked(view *admission.View, i int) {
	now := l.m.View()
	l.on.gain(quorum.One(i))
	l.on.lose(quorum.One(i)&^same(view, now) | breaking(now, quorum.One(i)))
}

// recordVoteLocked records the vote of master i in a round.
func (l *Lease) recordVoteLocked(r *round.Round, i int, o quorum.Outcome) {
	switch o {
	case quorum.Granted:
		l.markHeldLocked(r.View, i)
		if r.Start == l.validity.start {
			l.validity.by |= quorum.One(i)
		}
	case quorum.Missing, quorum.OtherKind:
		l.on.lose(quorum.One(i))
	}
}
