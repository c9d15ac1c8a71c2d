package lease

import (
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/quorum"
)

// sent records to which masters messages were sent that can create the lease. Only these masters may have the lease.
type sent struct {
	to     quorum.Set      // masters to which an acquire, an import or a repair may have been written
	view   *admission.View // the view of the first round, with the sessions of that round
	mixed  quorum.Set      // masters that were sent a repair, or a message over another session than in the first round
	ballot int64           // the largest ballot of all rounds
	repair map[int]int64   // the largest ballot of a repair, by master; nil: no repair was sent
}

// acquire records that an acquire or an import with this last ballot was sent to the masters of set.
func (s *sent) acquire(view *admission.View, set quorum.Set, last int64) {
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
