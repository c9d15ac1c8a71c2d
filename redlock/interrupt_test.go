package redlock

import (
	"github.com/redlock-go/redlock/redlock/internal/grant"
	"github.com/redlock-go/redlock/redlock/internal/round"
)

// Interrupt makes l call f at moments of its calls, on their goroutines, where no callback of a user runs: when the vote
// that decides a round is counted ("vote"), when a round is decided ("attempt"), and when a lock was "acquired",
// "extended" or "released". So a test can stop the client, its machine or its masters there. It is called before l is
// used.
func Interrupt(l *Locker, f func(moment string)) {
	l.grants.Events = interrupted{l.grants.Events, f}
	report := l.sender.OnVote
	l.sender.OnVote = func(r *round.Round, i int, v *round.Vote, decides bool) {
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
	grant.Events
	f func(moment string)
}

func (e interrupted) Asked(g *grant.Grant, r *round.Round, ballot int64, err error) {
	e.f("attempt")
	e.Events.Asked(g, r, ballot, err)
}

func (e interrupted) Acquired(h *grant.Handle) {
	e.f("acquired")
	e.Events.Acquired(h)
}

func (e interrupted) Extended(g *grant.Grant, err error) {
	e.f("extended")
	e.Events.Extended(g, err)
}

func (e interrupted) Released(h *grant.Handle, err error) {
	e.f("released")
	e.Events.Released(h, err)
}
