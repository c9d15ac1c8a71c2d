package redlock

import (
	"github.com/redlock-go/redlock/redlock/internal/lease"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Interrupt makes l call f at moments of its calls, on their goroutines, if no callback of a user runs: when the vote
// that decides a round is counted ("vote"), when a round is decided ("attempt"), and when a lock was "acquired",
// "extended" or "released". So a test can stop the client, its machine or its masters there. It is called before l is
// used.
func Interrupt(l *Locker, f func(moment string)) {
	l.shards[0].leases.Events = interrupted{l.shards[0].leases.Events, f}
	report := l.shards[0].sender.OnVote
	l.shards[0].sender.OnVote = func(r *round.Round, i int, v *round.Vote, decides bool) {
		if decides {
			f("vote")
		}
		if report != nil {
			report(r, i, v, decides)
		}
	}
}

// interrupted are Events that come after a moment.
type interrupted struct {
	lease.Events
	f func(moment string)
}

func (e interrupted) Attempted(g *lease.Lease, r *round.Round, ballot int64, err error) {
	e.f("attempt")
	e.Events.Attempted(g, r, ballot, err)
}

func (e interrupted) Acquired(h lease.Holder) {
	e.f("acquired")
	e.Events.Acquired(h)
}

func (e interrupted) Extended(g *lease.Lease, err error) {
	e.f("extended")
	e.Events.Extended(g, err)
}

func (e interrupted) Released(h lease.Holder, err error) {
	e.f("released")
	e.Events.Released(h, err)
}
