package redlock

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/private"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Access to internals for the tests of this directory.

// Masters returns the states of the masters at this moment.
func (l *Locker) Masters() []redlockinfo.Master { return l.Admin().Masters() }

// Ready waits until the state of each master is known.
func (l *Locker) Ready(ctx context.Context) []redlockinfo.Master {
	private.Of(l).Settle(ctx)
	return l.Admin().Masters()
}

// Set returns the configuration of the only shard.
func (l *Locker) Set() Configuration { return l.Admin().Configuration()[0] }

func (l *Locker) Warnings() []string { return private.Of(l).Warnings() }

func (l *Locker) Change(ctx context.Context) (private.Change, error) {
	return private.Of(l).Change(ctx)
}

func (l *Locker) RaiseEpoch(ctx context.Context) error { return private.Of(l).RaiseEpoch(ctx) }

func (l *Locker) FinishChange(ctx context.Context) error { return private.Of(l).FinishChange(ctx) }

func (l *Locker) AbortChange(ctx context.Context) error { return private.Of(l).AbortChange(ctx) }

// ReconfigureSlowly is Reconfigure without its checks, with a pause between taking the numbers of the masters and using
// them.
func (l *Locker) ReconfigureSlowly(ctx context.Context, c Configuration, pause time.Duration) error {
	s := l.shards[0]
	want, err := c.join(s.pool)
	if err != nil {
		return err
	}
	defer leave(s.pool, want)
	time.Sleep(pause)
	return operator{s}.changeTo(ctx, want)
}

// WithShard makes the Locker serve the shard with this number, out of a total of shards.
func WithShard(number, total int) Option {
	return private.Option[Option](private.Settings{Shard: number, Shards: total})
}

// Until returns the time at which the lock ends unless it is extended.
func (k *Lock) Until() time.Time { return time.Now().Add(k.Remaining()) }

func WithClock(k *clock.Clock) Option { return private.Option[Option](private.Settings{Clock: k}) }

func WithObserver() Option { return private.Option[Option](private.Settings{Observer: true}) }

func WithMinValidity(d time.Duration) LockOption {
	return private.Option[LockOption](private.Settings{MinValidity: d})
}

func WithHandoff(times int, atMost time.Duration) LockOption {
	return private.Option[LockOption](private.Settings{Handoffs: &private.Handoffs{Most: times, Within: atMost}})
}

// WithPoll sets the pauses of a call that no wake-ups can reach.
func WithPoll(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) { c.poll = func(int) time.Duration { return d } })
}

const (
	MinTTL          = minTTL
	LongestPause    = longestPause + randomPause
	MaxTTL          = maxTTL
	DefaultTTL      = private.DefaultTTL
	DefaultMaxTTL   = private.DefaultMaxTTL
	DefaultPrefix   = private.DefaultPrefix
	DefaultHandoffs = defaultHandoffs
)

// On returns a trace that calls f for events of one kind.
func On(kind string, f func(redlockinfo.Event)) *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(e redlockinfo.Event) {
		if e.Kind == kind {
			f(e)
		}
	}}
}

// Errors that are not exported to callers.
var (
	ErrTooSlow    = errTooSlow
	ErrQuarantine = errQuarantine
	ErrOldMasters = errOldMasters
	ErrIncomplete = errIncomplete
	ErrForeign    = round.ErrForeign
	ErrUpgrade    = errUpgrade
	ErrOrder      = errOrder
)

// HeldOn returns how many of the n masters are connected and known to have the lock.
func (k *Lock) HeldOn() (on, n int) { return heldOn(k) }

// Interrupt makes l call f, on the goroutines of its calls, at moments at which no callback of a user runs: when the
// vote that decides a round is counted ("vote"), when a round is decided ("attempt"), and when a lock was
// "acquired", "extended" or "released". In f a test can stop the client, its machine or its masters. Interrupt must
// be called before l is used.
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
