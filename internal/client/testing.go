package client

import (
	"context"
	"math"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/round"
)

// What tests and the simulator need.

// LongestPause is the longest pause of a call with tries.
const LongestPause = longestPause + randomPause

// WithClock replaces the clock of the transport.
func WithClock(k *clock.Clock) Option { return OptionFunc(func(c *Config) { c.Clock = k }) }

// WithMinValidity sets the validity that must be left after an acquire. The default is half of the TTL.
func WithMinValidity(d time.Duration) CallOption {
	return CallOptionFunc(func(s *Settings) { s.Least = d })
}

// WithHandoffs bounds the local hand-offs of one lease: at most n, all within the time d.
func WithHandoffs(n int, d time.Duration) CallOption {
	return CallOptionFunc(func(s *Settings) { s.Handoffs, s.HandoffTime = n, d })
}

// WithPoll makes a call poll with these pauses before each retry (from 1), instead of waiting in the queues.
func WithPoll(pause func(retry int) time.Duration) CallOption {
	return CallOptionFunc(func(s *Settings) { s.Poll, s.Tries = pause, math.MaxInt })
}

// HeldOn returns the number of masters that are connected and known to have the lock k, a *redlock.Lock, and the number
// of all masters. The two are usually equal, but not just after Lock, when some masters have not answered yet.
func HeldOn(k interface {
	Context(parent context.Context) context.Context
}) (on, n int) {
	return lease.Innermost(k.Context(context.Background())).Lease().On()
}

// ReconfigureSlowly is Reconfigure without its checks, with a pause between taking the numbers of the masters and using
// them.
func (c *Client) ReconfigureSlowly(ctx context.Context, next Configuration, pause time.Duration) error {
	want, err := next.join(c.pool)
	if err != nil {
		return err
	}
	defer releaseMasters(c.pool, want)
	time.Sleep(pause)
	return c.changeTo(ctx, want)
}

// HandleOf returns the handle of a lock.
func HandleOf(prefix, name, id string, token int64) string {
	return Exported{prefix: prefix, name: name, id: id, token: token}.String()
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

func (e interrupted) Attempted(l *lease.Lease, r *round.Round, ballot int64, err error) {
	e.f("attempt")
	e.Events.Attempted(l, r, ballot, err)
}

func (e interrupted) Acquired(h *lease.Hold) {
	e.f("acquired")
	e.Events.Acquired(h)
}

func (e interrupted) Extended(l *lease.Lease, err error) {
	e.f("extended")
	e.Events.Extended(l, err)
}

func (e interrupted) Released(h *lease.Hold, err error) {
	e.f("released")
	e.Events.Released(h, err)
}
