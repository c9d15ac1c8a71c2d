package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
)

// What tests of package redlock need, beside the options.

// ReconfigureSlowly is Reconfigure without its checks, with a pause between taking the numbers of the masters and using
// them.
func (c *Client) ReconfigureSlowly(ctx context.Context, next Configuration, pause time.Duration) error {
	want, err := next.join(c.pool)
	if err != nil {
		return err
	}
	defer leave(c.pool, want)
	time.Sleep(pause)
	return c.changeTo(ctx, want)
}

// HandleOf returns the handle of a lock.
func HandleOf(prefix, name, id string, token int64) string {
	return exportedLock{prefix: prefix, name: name, id: id, token: token}.String()
}

// EventsIdle is closed when all events and log records have been delivered.
func (c *Client) EventsIdle() <-chan struct{} { return c.events.Idle() }

// Interrupt makes the only client of s call f, on the goroutines of its calls, at moments at which no callback of a
// user runs: when the vote that decides a round is counted ("vote"), when a round is decided ("attempt"), and when a
// lock was "acquired", "extended" or "released". In f a test can stop the client, its machine or its masters. Interrupt
// must be called before s is used.
func (s *Set) Interrupt(f func(moment string)) {
	c := s.Clients[0]
	c.leases.Events = interrupted{c.leases.Events, f}
	report := c.sender.OnVote
	c.sender.OnVote = func(r *round.Round, i int, v *round.Vote, decides bool) {
		if decides {
			f("vote")
		}
		if report != nil {
			report(r, i, v, decides)
		}
	}
}

// interrupted calls f before it passes certain events on to Events.
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
