package redlock

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/clock"
	"github.com/redlock-go/redlock/internal/admission"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/reconfig"
	"github.com/redlock-go/redlock/internal/round"
	"github.com/redlock-go/redlock/internal/scripts"
	"github.com/redlock-go/redlock/redlock/redlockinfo"
)

// Access to internals for the tests of this directory.

// Masters returns the states of the masters at this moment.
func (l *Locker) Masters() []redlockinfo.Master { return client.SetOf(l).Masters() }

// Ready waits until the state of each master is known.
func (l *Locker) Ready(ctx context.Context) []redlockinfo.Master {
	client.SetOf(l).AwaitKnown(ctx)
	return l.Masters()
}

// Set returns the configuration of the only shard.
func (l *Locker) Set() Configuration {
	return Configuration(client.SetOf(l).Clients[0].Configuration())
}

func (l *Locker) Warnings() []string { return client.SetOf(l).Warnings() }

func (l *Locker) Change(ctx context.Context) (reconfig.Progress, error) {
	return client.SetOf(l).Change(ctx)
}

func (l *Locker) RaiseEpoch(ctx context.Context) error { return client.SetOf(l).RaiseEpoch(ctx) }

func (l *Locker) FinishChange(ctx context.Context) error { return client.SetOf(l).FinishChange(ctx) }

func (l *Locker) AbortChange(ctx context.Context) error { return client.SetOf(l).AbortChange(ctx) }

// WithShard makes the Locker serve the shard with this number, out of a total of shards.
func WithShard(number, total int) Option { return client.WithShard(number, total) }

// Until returns the time at which the lock ends unless it is extended.
func (k *Lock) Until() time.Time { return time.Now().Add(k.Remaining()) }

func WithClock(k *clock.Clock) Option { return client.WithClock(k) }

func WithObserver() Option { return client.AsObserver() }

func WithMinValidity(d time.Duration) LockOption { return client.WithMinValidity(d) }

func WithHandoff(times int, atMost time.Duration) LockOption {
	return client.WithHandoffs(times, atMost)
}

// WithPoll sets the pauses of a call that no wake-ups can reach.
func WithPoll(d time.Duration) LockOption {
	return ofLock(func(s *client.Settings) { s.Poll = func(int) time.Duration { return d } })
}

const (
	MinTTL          = client.MinTTL
	MaxTTL          = client.MaxTTL
	DefaultTTL      = client.DefaultTTL
	DefaultHandoffs = client.DefaultHandoffs
	DefaultMaxTTL   = scripts.DefaultMaxTTL
	DefaultPrefix   = scripts.DefaultPrefix
	LongestPause    = client.LongestPause
)

// On returns a trace that calls f for events of one kind.
func On(kind redlockinfo.Kind, f func(redlockinfo.Event)) *redlockinfo.Trace {
	return &redlockinfo.Trace{Event: func(e redlockinfo.Event) {
		if e.Kind == kind {
			f(e)
		}
	}}
}

// Errors that are not exported to callers.
var (
	ErrTooSlow    = round.ErrTooSlow
	ErrQuarantine = admission.ErrQuarantine
	ErrOldMasters = admission.ErrOldMasters
	ErrIncomplete = admission.ErrIncomplete
	ErrForeign    = round.ErrForeign
	ErrUpgrade    = client.ErrUpgrade
	ErrOrder      = client.ErrOrder
)

// HeldOn returns how many of the n masters are connected and known to have the lock.
func (k *Lock) HeldOn() (on, n int) { return client.HeldOn(k) }

// ReconfigureSlowly is Reconfigure with a pause; see [client.Client.ReconfigureSlowly].
func (l *Locker) ReconfigureSlowly(ctx context.Context, c Configuration, pause time.Duration) error {
	return client.SetOf(l).Clients[0].ReconfigureSlowly(ctx, client.Configuration(c), pause)
}

// Interrupt makes l call f at certain moments; see [client.Set.Interrupt].
func Interrupt(l *Locker, f func(moment string)) { client.SetOf(l).Interrupt(f) }
