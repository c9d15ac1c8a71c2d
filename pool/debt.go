package pool

import (
	"slices"

	"github.com/gomodule/redigo/redis"

	"github.com/redlock-go/redlock/internal/scripts"
)

// The bounds of what is owed to one master.
const (
	maxDebts   = 65536 // names
	maxDebtIDs = 8192  // ids of one name
	// payIDs is how many ids one payment carries; Lua's unpack has a limit of about 8000.
	payIDs = 1024
	// payWindow is how many payments are under way at once, so that paying them all keeps within the timeout of a
	// request.
	payWindow = 64
)

// A Debt is a release that a master still has to get: it could not be told, or it is not known to have heard.
type Debt struct {
	Name   string // key of the debt: one debt per master and Name; Name includes the prefix
	Fleet  scripts.Fleet
	Keys   scripts.Keys
	IDs    []string
	Ballot int64
}

type debt struct {
	Debt
	paying     bool
	sentIDs    int // how many of IDs the payment under way carries
	sentBallot int64
}

// Owe books a debt of master i. One of the same Name is merged with it: ids are appended without duplicates, the
// largest ballot counts. It is paid first thing on the next connection, before Send is let in, and tried again on
// each heartbeat. A payment that is lost with its connection, or answered by an error that may pass (OOM, MISCONF,
// READONLY, LOADING, BUSY, TRYAGAIN, NOREPLICAS, MASTERDOWN), leaves it owed; any other error reply ends it.
//
// Owe reports whether the debt was booked: beyond 65536 names a master, or 8192 ids a name, the newest is refused,
// and after Close every one. It never blocks, and keeps no reference to d.IDs.
func (p *Pool) Owe(i int, d Debt) bool {
	m := p.master(i)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shutting != nil {
		return false
	}
	known := m.debts[d.Name]
	if known == nil {
		if len(m.debts) >= maxDebts || len(d.IDs) > maxDebtIDs {
			return false
		}
		if m.debts == nil {
			m.debts = make(map[string]*debt)
		}
		d.IDs = slices.Clone(d.IDs)
		m.debts[d.Name] = &debt{Debt: d}
		return true
	}
	ids := known.IDs
	for _, id := range d.IDs {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > maxDebtIDs {
		return false
	}
	known.IDs, known.Ballot = ids, max(known.Ballot, d.Ballot)
	return true
}

// Owed is the number of debts of master i, those included whose payment is under way.
func (p *Pool) Owed(i int) int {
	m := p.master(i)
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.debts)
}

// collectDebtsLocked lists what is owed, in an order that does not depend on the map.
func (s *session) collectDebtsLocked() {
	s.toPay = s.toPay[:0]
	for name := range s.m.debts {
		s.toPay = append(s.toPay, name)
	}
	slices.Sort(s.toPay)
}

// payLocked queues payments up to the window, and reports whether the writer must be nudged.
func (s *session) payLocked() (wake bool) {
	for s.paying < payWindow && len(s.toPay) > 0 {
		d := s.m.debts[s.toPay[0]]
		s.toPay = s.toPay[1:]
		if d == nil || d.paying {
			continue
		}
		d.paying, d.sentIDs, d.sentBallot = true, min(len(d.IDs), payIDs), d.Ballot
		s.paying++
		call := d.Fleet.DebtCall(d.Keys, slices.Clone(d.IDs[:d.sentIDs]), d.Ballot)
		wake = s.queueLocked(request{call: call, kind: kindDebt, text: d.Name}) || wake
	}
	return wake
}

// paid books the answer to a payment, and queues the next. What was added to the debt while it was under way is paid
// by another.
func (s *session) paid(r *request, reply redis.Error, isReply bool) {
	m := s.m
	m.mu.Lock()
	s.paying--
	if d := m.debts[r.text]; d != nil {
		d.paying = false
		switch {
		case isReply && isTransient(reply):
		case d.Ballot > d.sentBallot:
			// All ids again, with the larger ballot: repeating a release is harmless.
			s.toPay = append(s.toPay, d.Name)
		case len(d.IDs) > d.sentIDs:
			d.IDs = slices.Delete(d.IDs, 0, d.sentIDs)
			s.toPay = append(s.toPay, d.Name)
		default:
			delete(m.debts, d.Name)
		}
	}
	wake := s.payLocked()
	m.mu.Unlock()
	if wake {
		s.nudge()
	}
}

// stopPayingLocked makes every debt ready for the next session.
func (s *session) stopPayingLocked() {
	for _, d := range s.m.debts {
		d.paying = false
	}
}
